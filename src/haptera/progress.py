"""A progress bar on stderr of a terminal, or in a notebook, and nothing elsewhere."""

import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Protocol, Self

from haptera.words import duration


def _in_a_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; one that merely imported ipykernel is not."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class _Bar(Protocol):
    def start(self) -> None: ...
    def show(self, done: int, last: str, left: str) -> None: ...
    def stop(self) -> None: ...


class Progress:
    """Counts cells, says which one ended last, and how long the rest will take if it goes on like this.

    Args:
        name: what is running.
        total: how many there are.
        show: None decides by whether anybody is looking.
        unit: what is counted.
        seconds: how long all of it may take, where that is known; `advance` then says how long each was thought to
            take. Without it all count the same.
    """

    def __init__(
        self, name: str, total: int, show: bool | None = None, unit: str = "cells", seconds: float | None = None
    ) -> None:
        self._bar: _Bar | None = None
        self.done = 0
        self._work, self._worked, self._guess = seconds or float(total), 0.0, seconds
        self._start = time.monotonic()
        notebook = _in_a_notebook()
        if total and (show if show is not None else notebook or sys.stderr.isatty()):
            self._bar = _Notebook(name, total, unit) if notebook else _Terminal(name, total, unit)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        if self._bar:
            self._bar.start()
            self._bar.show(0, "", self._left())
        return self

    def advance(self, last: str, seconds: float = 1.0) -> None:
        """One more is done."""
        self.done += 1
        self._worked += seconds
        if self._bar:
            self._bar.show(self.done, last, self._left())

    def _left(self) -> str:
        """Return a text such as `2 min left`: the time until now, in proportion to what is left of the work."""
        rest = max(self._work - self._worked, 0.0)
        if not self.done:
            return f"{duration(self._guess)} left" if self._guess else ""
        left = (time.monotonic() - self._start) / self._worked * rest
        return f"{duration(left)} left" if rest > 1e-9 * self._work else ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


class _Terminal:
    """One line that is gone when all is done."""

    def __init__(self, name: str, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn(" {task.description} "),
            MofNCompleteColumn(),
            TextColumn(unit),
            BarColumn(),
            TextColumn("{task.fields[last]}"),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(name, total=total, last="", left="")

    def start(self) -> None:
        self._progress.start()

    def show(self, done: int, last: str, left: str) -> None:
        self._progress.update(self._task, completed=done, last=last, left=left)

    def stop(self) -> None:
        self._progress.stop()


class _Notebook:
    """An HTML bar that is redrawn in its place; needs no widgets."""

    def __init__(self, name: str, total: int, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._handle: Any = None

    def start(self) -> None:
        from IPython.display import HTML, display

        self._handle = display(HTML(""), display_id=True)

    def show(self, done: int, last: str, left: str) -> None:
        from IPython.display import HTML

        words = " · ".join(filter(None, [f"{done}/{self._total} {self._unit}", escape(last), left]))
        bar = f"<progress value='{done}' max='{self._total}'></progress>"
        self._handle.update(HTML(f"{escape(self._name)} {bar} {words}"))

    def stop(self) -> None:
        pass
