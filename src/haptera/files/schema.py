"""Schema: what the values of a file must be, said once for each file and checked before anything uses them.

    check(content, {"name": TEXT, "samples": whole_number(1), "shifts": list_of(TEXT)}, "calibration.json")

An error names the file, the key, what was found and what was expected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from haptera.errors import HapteraError, hint

LARGEST = 2**53
"""Whole numbers beyond it are not the same in every program that reads JSON."""
SHOWN = 60


@dataclass(frozen=True)
class Kind:
    """What a value must be: in words, and as a test."""

    expected: str
    fits: Callable[[Any], bool]


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TABLE = Kind("keys and values", lambda value: isinstance(value, Mapping))
ANYTHING = Kind("anything", lambda value: True)


def whole_number(low: int = 0, high: int = LARGEST) -> Kind:
    """A whole number within bounds; true and false are not numbers."""
    words = f"a whole number of at least {low}" if high == LARGEST else f"a whole number from {low} to {high}"
    return Kind(words, lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high)


def number(low: float = -inf, high: float = inf) -> Kind:
    """A finite number within bounds."""
    words = "a number" if (low, high) == (-inf, inf) else f"a number from {low:g} to {high:g}"

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) == inf:
            return False
        return low <= value <= high and abs(value) < 1e300 and isfinite(value)

    return Kind(words, fits)


def list_of(kind: Kind, length: int | None = None) -> Kind:
    """A list whose every entry is of a kind."""
    words = f"a list{'' if length is None else f' of {length}'}, of which every entry is {kind.expected}"

    def fits(value: Any) -> bool:
        return isinstance(value, list) and length in (None, len(value)) and all(map(kind.fits, value))

    return Kind(words, fits)


def table_of(kind: Kind) -> Kind:
    """Keys of any name, each with a value of a kind."""
    return Kind(
        f"keys and values, of which every value is {kind.expected}",
        lambda value: isinstance(value, Mapping) and all(map(kind.fits, value.values())),
    )


def either(*kinds: Kind) -> Kind:
    """One of several kinds."""
    return Kind(" or ".join(kind.expected for kind in kinds), lambda value: any(kind.fits(value) for kind in kinds))


def optional(kind: Kind) -> Kind:
    """A kind, or null."""
    return Kind(f"{kind.expected}, or null", lambda value: value is None or kind.fits(value))


def check(content: Any, kinds: Mapping[str, Kind], where: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return keys and values of a file after checking each against its kind; others are left alone.

    Args:
        content: what was read.
        kinds: key -> what its value must be.
        where: what errors call the file, or a part of it.
        missing: keys that may be left out.
    """
    if not isinstance(content, Mapping):
        raise HapteraError(f"{where} holds {shown(content)}; keys and values were expected")
    for key, kind in kinds.items():
        if key not in content:
            if key in missing:
                continue
            near = hint(key, [str(each) for each in content if each not in kinds])
            raise HapteraError(f"{where} has no {key!r};{near} {kind.expected} was expected")
        if not kind.fits(content[key]):
            raise HapteraError(f"{where}: {key} is {shown(content[key])}; {kind.expected} was expected")
    return dict(content)


def shown(value: Any) -> str:
    """Return a value as messages show it, cut short.

    >>> shown(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1...'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        return f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
