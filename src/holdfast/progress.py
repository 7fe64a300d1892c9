"""A progress bar on stderr, on a terminal or in a notebook, and nothing elsewhere."""

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """Counts cells and says which one ended last.

    Args:
        name: what is running.
        total: how many there are.
        show: None decides by whether anybody is looking.
    """

    def __init__(self, name: str, total: int, show: bool | None = None, unit: str = "cells") -> None:
        self.shown = bool(total) and (_looking() if show is None else show)
        self._bar: Any = None
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn(" {task.description} "),
                MofNCompleteColumn(),
                TextColumn(unit),
                BarColumn(),
                TextColumn("{task.fields[last]}"),
                TimeRemainingColumn(compact=True),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(name, total=total, last="")

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def advance(self, last: str) -> None:
        """One more is done."""
        if self._bar:
            self._bar.update(self._task, advance=1, last=last)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


def _looking() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
