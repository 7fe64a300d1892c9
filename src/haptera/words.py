"""Numbers and names as sentences say them: one way for every command, finding and note."""

from collections.abc import Sequence
from math import isnan


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "cell"), count(0, "cell")
    ('1 cell', '0 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_names(names: Sequence[str]) -> str:
    """Return all names, the last after an "and".

    >>> join_names(["fog"]), join_names(["fog", "snow", "frost"])
    ('fog', 'fog, snow and frost')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shorten(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and how many more there are.

    >>> shorten(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def interval(low: float, high: float, *, digits: int = 2) -> str:
    """Return the ends of an interval in brackets, after a space; nothing where an end is not known.

    >>> interval(0.1, 0.25), interval(float("nan"), 1)
    (' (0.10 to 0.25)', '')
    """
    return "" if isnan(low) or isnan(high) else f" ({low:.{digits}f} to {high:.{digits}f})"


def duration(seconds: float) -> str:
    """Return a time in the unit that a reader would choose.

    >>> duration(7.4), duration(130), duration(9000), duration(300000)
    ('7 s', '2 min', '2.5 h', '3.5 days')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
