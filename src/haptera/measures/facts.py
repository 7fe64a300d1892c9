"""What is known about a measure, attached to the function: its bounds, which direction is good, and what it reads."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def measure(
    *,
    bounds: tuple[float, float],
    higher_is_better: bool | None = None,
    of: Literal["outputs", "table", "rows"] = "outputs",
    reads: Literal["classes", "keypoints"] = "classes",
) -> Callable[[Function], Function]:
    """Declare a measure; the function itself stays as it is.

    Args:
        bounds: between which every value and interval lies.
        higher_is_better: None where neither direction is.
        of: what its first argument is: the outputs of one cell; the table of all cells, which it compares; or all rows,
            those that compare cells among them, which it summarises.
        reads: what these are of.
    """

    def declare(function: Function) -> Function:
        function.bounds = bounds  # type: ignore[attr-defined]
        function.higher_is_better = higher_is_better  # type: ignore[attr-defined]
        function.of = of  # type: ignore[attr-defined]
        function.reads = reads  # type: ignore[attr-defined]
        return function

    return declare


def fact(function: Callable[..., Any], name: str, default: Any = None) -> Any:
    """Return what was declared about a measure, or about the one within a partial."""
    return getattr(getattr(function, "func", function), name, default)


def required_settings(function: Callable[..., Any]) -> list[str]:
    """Settings without a default: a measure that has any runs only where somebody gives them.

    >>> required_settings(lambda table, reference: []), required_settings(lambda table, against="clean": [])
    (['reference'], [])
    """
    settings = list(inspect.signature(function).parameters.values())[1:]
    return [setting.name for setting in settings if setting.default is setting.empty]
