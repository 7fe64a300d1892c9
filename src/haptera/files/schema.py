"""Schema: what the values of a file must be, said once for each file and checked before anything uses them.

    check(content, {"name": TEXT, "samples": whole_number(1), "shifts": list_of(TEXT)}, "calibration.json")

What people write by hand is a dataclass, of which `read_as` makes an object; its annotations are the schema:

    @dataclass(frozen=True)
    class DataSettings:
        path: str
        size: Annotated[int, whole_number(1, 2**14)] | None = None

    read_as(DataSettings, content, "data", "key of data")

An error names the file, the key, what was found, what was expected and, for an unknown key, the nearest that is known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from math import inf, isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from haptera.checks import is_number, is_whole_number
from haptera.errors import HapteraError, check_keys, hint

T = TypeVar("T")

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
    words = "a whole number" if (low, high) == (-LARGEST, LARGEST) else words
    return Kind(words, lambda value: is_whole_number(value) and low <= value <= high)


def number(low: float = -inf, high: float = inf) -> Kind:
    """A finite number within bounds."""
    words = "a number" if (low, high) == (-inf, inf) else f"a number from {low:g} to {high:g}"

    def fits(value: Any) -> bool:
        if not is_number(value) or abs(value) == inf:
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


def read_as(kind: type[T], content: Any, where: str, key: str) -> T:
    """Return keys and values of a file as a dataclass, each checked against the annotation of its field.

    Args:
        kind: the dataclass; a field without a default must be given.
        content: what was read.
        where: what errors call the file, or a part of it.
        key: what errors call a key that the dataclass does not have, such as `key of data`.
    """
    known: tuple[Field[Any], ...] = fields(kind)  # type: ignore[arg-type]
    if isinstance(content, Mapping):
        check_keys(key, content, [field.name for field in known])
    given = tuple(field.name for field in known if (field.default, field.default_factory) != (MISSING, MISSING))
    content = check(content, kinds_of(kind), where, missing=given)
    hints = get_type_hints(kind)
    tuples = [
        name for name in content if any(get_origin(each) is tuple for each in (hints[name], *get_args(hints[name])))
    ]
    return kind(**content | {name: tuple(content[name]) for name in tuples if content[name] is not None})


def kinds_of(kind: type) -> dict[str, Kind]:
    """Return what each field of a dataclass must be in a file."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: kind_of(hints[field.name]) for field in fields(kind)}


def kind_of(annotation: Any) -> Kind:
    """Return what a value of a type must be in a file; `ANYTHING` for a type that a file cannot hold.

    >>> kind_of(list[int]).expected, kind_of(float | None).expected, kind_of(bool).fits(1)
    ('a list, of which every entry is a whole number', 'a number', False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next((each for each in arguments[1:] if isinstance(each, Kind)), kind_of(arguments[0]))
    if origin in (Union, UnionType):
        kind = either(*(kind_of(each) for each in arguments if each is not NoneType))
        return Kind(kind.expected, optional(kind).fits) if NoneType in arguments else kind
    if origin in (list, tuple, Sequence):
        return list_of(kind_of(arguments[0]))
    return _PLAIN.get(origin or annotation, ANYTHING)


_PLAIN = {
    str: TEXT,
    bool: FLAG,
    int: whole_number(-LARGEST),
    float: Kind("a number", is_number),
    Path: Kind("a path", lambda value: isinstance(value, str | Path)),
    dict: TABLE,
    Mapping: TABLE,
}


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
