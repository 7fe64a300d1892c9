"""Checks of arguments that are numbers: which ones are, and one sentence for those that are not what was expected."""

from math import inf
from numbers import Integral, Real
from typing import Any

from haptera.errors import HapteraError


def is_whole_number(value: Any) -> bool:
    """Say whether a value is an int, NumPy's too; true and false are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Say whether a value is an int or a float; true and false are not numbers, infinity is one."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_whole_number(
    name: str, value: Any, least: int = 1, most: int | None = None, what: str = "a whole number"
) -> None:
    """Refuse anything but a whole number within bounds.

    >>> check_whole_number("views", 1.5, 2, what="a number of views")
    Traceback (most recent call last):
    haptera.errors.HapteraError: views is 1.5; a number of views of at least 2 was expected
    """
    if not is_whole_number(value) or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise HapteraError(f"{name} is {value!r}; {what} {bounds} was expected")


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float = inf,
    below: float | None = None,
    what: str = "a number",
) -> None:
    """Refuse anything but a number within bounds, and what is not a number at all (NaN); NumPy's floats are numbers.

    Args:
        name: of the argument.
        value: of the argument.
        least: the smallest valid number; or `above`, the largest that is too small.
        above: see `least`.
        most: the largest valid number; or `below`, the smallest that is too large (infinity: only finite numbers).
        below: see `most`.
        what: such as `a share`.

    >>> check_number("decay", 1.5, least=0, most=1, what="a share")
    Traceback (most recent call last):
    haptera.errors.HapteraError: decay is 1.5; a share from 0 to 1 was expected
    """
    right = not isinstance(value, bool) and isinstance(value, Real) and bool(value <= most)
    right = right and (least is None or bool(value >= least)) and (above is None or bool(value > above))
    if right and (below is None or bool(value < below)):
        return
    low = "" if least is above is None else f" above {above:g}" if above is not None else f" of at least {least:g}"
    high = f" and below {below:g}" if below not in (None, inf) else f" and at most {most:g}" if most < inf else ""
    both = low + high
    if least is not None and most < inf:
        both = f" from {least:g} to {most:g}"
    elif above is not None and below not in (None, inf):
        both = f" between {above:g} and {below:g}"
    raise HapteraError(f"{name} is {value!r}; {what}{both} was expected")
