"""A progress bar on stderr of a terminal, or in a notebook, and nothing elsewhere."""

import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Protocol, Self


class _Bar(Protocol):
    def start(self) -> None: ...
    def show(self, done: int, last: str) -> None: ...
    def stop(self) -> None: ...


class Progress:
    """Counts cells and says which one ended last.

    Args:
        name: what is running.
        total: how many there are.
        show: None decides by whether anybody is looking.
        unit: what is counted.
    """

    def __init__(self, name: str, total: int, show: bool | None = None, unit: str = "cells") -> None:
        self._bar: _Bar | None = None
        self.done = 0
        notebook = "ipykernel" in sys.modules
        if total and (show if show is not None else notebook or sys.stderr.isatty()):
            self._bar = _Notebook(name, total, unit) if notebook else _Terminal(name, total, unit)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def advance(self, last: str) -> None:
        """One more is done."""
        self.done += 1
        if self._bar:
            self._bar.show(self.done, last)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


class _Terminal:
    """One line that is gone when all is done."""

    def __init__(self, name: str, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn(" {task.description} "),
            MofNCompleteColumn(),
            TextColumn(unit),
            BarColumn(),
            TextColumn("{task.fields[last]}"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(name, total=total, last="")

    def start(self) -> None:
        self._progress.start()

    def show(self, done: int, last: str) -> None:
        self._progress.update(self._task, completed=done, last=last)

    def stop(self) -> None:
        self._progress.stop()


class _Notebook:
    """An HTML bar that is redrawn in its place; needs no widgets."""

    def __init__(self, name: str, total: int, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._handle: Any = None
        self._start = time.monotonic()

    def start(self) -> None:
        from IPython.display import HTML, display

        self._start = time.monotonic()
        self._handle = display(HTML(self._text(0, "")), display_id=True)

    def show(self, done: int, last: str) -> None:
        from IPython.display import HTML

        self._handle.update(HTML(self._text(done, last)))

    def stop(self) -> None:
        pass

    def _text(self, done: int, last: str) -> str:
        left = (time.monotonic() - self._start) / done * (self._total - done) if done else 0
        rest = f"{left:.0f} s left" if 0 < done < self._total else ""
        words = " · ".join(filter(None, [f"{done}/{self._total} {self._unit}", escape(last), rest]))
        return f"{escape(self._name)} <progress value='{done}' max='{self._total}'></progress> {words}"
