"""The nearest name to one that was expected, as the end of an error message."""

from collections.abc import Iterable
from difflib import get_close_matches


def hint(name: str, candidates: Iterable[str], cutoff: float = 0.5) -> str:
    """A question that names the candidate most like `name`, or nothing at all; case does not count.

    >>> hint("images", ["Imags", "y"])
    " did you mean 'Imags'?"
    >>> hint("images", ["y"])
    ''
    """
    near = nearest(name, candidates, cutoff)
    return f" did you mean {near!r}?" if near else ""


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The candidate most like `name`, or None if none is like it."""
    lower = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=cutoff)
    return lower[near[0]] if near else None
