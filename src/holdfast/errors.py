"""What goes wrong in a way the user can fix, each with one sentence that says how.

Anything raised from here ends a command with its exit code and its message, never a traceback.
"""

from collections.abc import Iterable

from holdfast.nearest import hint


class HoldfastError(ValueError):
    """Bad input or wrong usage: the message names the argument or file, what was found, what was expected."""

    exit_code = 2


class Unfinished(HoldfastError):
    """A run that had to stop in the middle; what was finished is intact."""

    exit_code = 1


class NotApplicable(HoldfastError):
    """A combination that makes no sense (BatchNorm statistics of a model without BatchNorm), left out of a study."""


class WriteError(HoldfastError):
    """A file could not be written: a full disk, a missing permission."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> HoldfastError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("adapter", "batchnrom", ["none", "batchnorm"]))
    unknown adapter 'batchnrom'; did you mean 'batchnorm'? valid: batchnorm, none
    """
    names = sorted(valid)
    return HoldfastError(f"unknown {kind} {name!r};{hint(name, names)} valid: {', '.join(names) or 'none'}")


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
