"""A law is a function that raises when it is broken; running laws collects why."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from haptera.errors import NotApplicable

Law = Callable[..., None]


class Broken(AssertionError):
    """A law does not hold; the message says why."""


def demand(holds: bool, why: str) -> None:
    """Raise `Broken` unless something holds."""
    if not holds:
        raise Broken(why)


def run_laws(laws: Iterable[Law], cases: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    """Law -> why it is broken, or an empty text; every law on every case to which it applies."""
    return {law.__name__: _first_break(law, cases) for law in laws}


def _first_break(law: Law, cases: Sequence[tuple[Any, ...]]) -> str:
    for case in cases:
        try:
            law(*case)
        except NotApplicable:
            continue
        except Broken as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""
