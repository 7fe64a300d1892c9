"""What goes wrong in a way the user can fix, each with one sentence that says how and names the nearest valid word.

Anything raised from here ends a command with its exit code and its message, never a traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HapteraError(ValueError):
    """Bad input or wrong usage: the message names the argument or file, what was found, what was expected."""

    exit_code = 2


class Unfinished(HapteraError):
    """A run that had to stop in the middle; what was finished is intact."""

    exit_code = 1


class Busy(HapteraError):
    """Another run is writing into the folder."""


class NotApplicable(HapteraError):
    """A combination that makes no sense (BatchNorm statistics of a model without BatchNorm), left out of a study."""


class WriteError(HapteraError):
    """A file could not be written: a full disk, a missing permission."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> HapteraError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("adapter", "batchnrom", ["none", "batchnorm"]))
    unknown adapter 'batchnrom'; did you mean 'batchnorm'? valid: batchnorm, none
    """
    names = sorted(valid)
    return HapteraError(f"unknown {kind} {name!r};{hint(name, names)} valid: {', '.join(names) or 'none'}")


def check_keys(kind: str, found: Iterable[str], valid: Iterable[str]) -> None:
    """Raise for the first key that is not among the valid ones."""
    valid = list(valid)
    for key in found:
        if key not in valid:
            raise unknown(kind, key, valid)


def first_line(error: BaseException) -> str:
    """Return an error of somebody else's code in one line.

    >>> first_line(RuntimeError("no memory\\nat line 3"))
    'RuntimeError: no memory'
    """
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def hint(name: str, candidates: Iterable[str], cutoff: float | None = None) -> str:
    """A question that names the candidate most like `name`, or nothing at all; case does not count.

    >>> hint("images", ["Imags", "y"])
    " did you mean 'Imags'?"
    >>> hint("images", ["y"])
    ''
    """
    near = nearest(name, candidates, cutoff)
    return f" did you mean {near!r}?" if near else ""


def nearest(name: str, candidates: Iterable[str], cutoff: float | None = None) -> str | None:
    """The candidate most like `name`, or None; of very short names half of the letters are enough."""
    if cutoff is None:
        cutoff = 0.55 if len(name) > 3 else 0.5
    lower = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=cutoff)
    return lower[near[0]] if near else None
