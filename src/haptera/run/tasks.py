"""Task: a result that is costly to make, and is kept in a folder as soon as it is finished.

    class Square(Task[int]):
        def __init__(self, number):
            self.number, self.piece = number, Piece(str(number), f"squares/{number}.txt", f"the square of {number}")

        def make(self):
            return self.number**2

        def write(self, result, path):
            path.write_text(str(result))

        def read(self, path):
            return int(path.read_text())

    finish([Square(2), Square(3)], "squares", "table of squares").results      # [4, 9]

With a folder, results are pieces of its ledger: the same call after a kill makes what is missing or damaged, and
returns what was read from the folder, so that it ends the same. What another version of haptera made is made again.
Without a folder results are made in memory.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from haptera import __version__
from haptera.files.fingerprint import fingerprint
from haptera.files.json import plain, read_json
from haptera.progress import Progress
from haptera.run.ledger import Ledger, Piece
from haptera.words import count

log = logging.getLogger("haptera")

VERSION = "haptera"
"""What the plan says the version under: the same call of another version may come to other results."""
T = TypeVar("T")


class Task(ABC, Generic[T]):
    """One result to make.

    Attributes:
        piece: its key, title and place; a place without an ending, such as `fits/seed 0`, is a folder.
        work: how long it takes, in any unit: the bar goes by it.
    """

    piece: Piece
    work: float = 1.0

    def check(self) -> None:
        """Raise what would make it fail for want of something; it is asked before any task is run."""

    @abstractmethod
    def make(self) -> T:
        """Return the result."""

    @abstractmethod
    def write(self, result: T, path: Path) -> None:
        """Write a result to a file, or into a folder that exists."""

    @abstractmethod
    def read(self, path: Path) -> T:
        """Return what `write` wrote."""


class JsonTask(Task[Any]):
    """A task whose result is kept as JSON, and is the same whether it was made or read: None for what is not finite."""

    @abstractmethod
    def run(self) -> Any:
        """Return the result, which JSON can hold."""

    def make(self) -> Any:
        """Return the result as it will be read."""
        return plain(self.run())

    def write(self, result: Any, path: Path) -> None:
        """Write JSON."""
        path.write_text(json.dumps(result, allow_nan=False), "utf-8")

    def read(self, path: Path) -> Any:
        """Read JSON."""
        return read_json(path)


class Call(JsonTask):
    """A function and its arguments, whose result is kept as JSON.

    Args:
        function: of JSON-like results; another name, or other arguments, make another piece.
        title: what people call the result.
        arguments: of the function, which may be arrays.
    """

    def __init__(self, function: Callable[..., Any], title: str, **arguments: Any) -> None:
        self.function, self.arguments = function, arguments
        key = fingerprint(function.__qualname__, arguments)
        self.piece = Piece(key, f"{function.__name__}/{key}.json", title)

    def run(self) -> Any:
        """Call the function."""
        return self.function(**self.arguments)


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What came of tasks.

    Attributes:
        results: in the order of the tasks; None for one that failed.
        failures: a sentence for each that failed.
    """

    results: list[T | None]
    failures: list[str]

    @property
    def finished(self) -> list[T]:
        """The results that there are."""
        return [result for result in self.results if result is not None]


def finish(
    tasks: Sequence[Task[T]],
    out: Path | str | None,
    kind: str,
    *,
    noun: str = "fit",
    about: Mapping[str, Any] | None = None,
    tolerate: tuple[type[Exception], ...] = (),
    progress: bool | None = None,
) -> Outcome[T]:
    """Make the results that are missing, and return all of them.

    Args:
        tasks: what to make; of two with the same key, the first is made.
        out: the folder; None keeps nothing.
        kind: what the folder holds, such as `embedding`; a folder of another kind is refused.
        noun: what messages call a result.
        about: what the plan in the folder should say.
        tolerate: errors that make a task fail and not the others.
        progress: show a bar; None does on a terminal.
    """
    once: dict[str, Task[T]] = {}
    for task in tasks:
        once.setdefault(task.piece.key, task)
    if out is None:
        made, failures = _make(list(once.values()), None, kind, noun, tolerate, progress)
        return Outcome([made.get(task.piece.key) for task in tasks], failures)
    own = {key: task.piece for key, task in once.items()}
    with Ledger(out, kind, noun=noun) as ledger, _noted(ledger, own):
        if ledger.pieces and ledger.about.get(VERSION) != __version__:
            log.info("%s was begun by another version of haptera; its %ss are made again", ledger.folder, noun)
            ledger.journal.clear()
        others = [piece for piece in ledger.finished if piece.key not in own]  # of calls with other settings
        ledger.plan([*own.values(), *others], {VERSION: __version__, **(about or {})})
        todo = [once[piece.key] for piece in ledger.missing(own.values())]
        _, failures = _make(todo, ledger, kind, noun, tolerate, progress)
        made = {key: task.read(ledger.path(task.piece)) for key, task in once.items() if ledger.there(task.piece)}
    if kept := len(once) - len(todo):
        log.info("%s run, %d found finished, %d failed", count(len(todo) - len(failures), noun), kept, len(failures))
    return Outcome([made.get(task.piece.key) for task in tasks], failures)


def _make(
    todo: Sequence[Task[T]],
    ledger: Ledger | None,
    kind: str,
    noun: str,
    tolerate: tuple[type[Exception], ...],
    progress: bool | None,
) -> tuple[dict[str, T], list[str]]:
    """Return results by key, or write them into a ledger; and the failures."""
    made, failures = {}, []
    for task in todo:
        task.check()
    share = len(todo) / max(sum(task.work for task in todo), 1e-300)
    with Progress(kind, len(todo), progress, unit=f"{noun}s") as bar:
        for task in todo:
            try:
                result = task.make()
            except tolerate as error:
                failures.append(f"{task.piece.title}: {error}")
                log.warning(failures[-1])
                if ledger is not None:
                    ledger.fail(task.piece, str(error))
            else:
                if ledger is None:
                    made[task.piece.key] = result
                else:
                    _write(ledger, task, result)
            bar.advance(task.piece.title, task.work * share)
    return made, failures


def _write(ledger: Ledger, task: Task[T], result: T) -> None:
    if not Path(task.piece.path).suffix:
        with ledger.writing_folder(task.piece) as folder:
            task.write(result, folder)
        return
    with ledger.writing(task.piece) as file:
        task.write(result, Path(file.name))


@contextmanager
def _noted(ledger: Ledger, own: Mapping[str, Piece]) -> Iterator[None]:
    """Let an interruption say how far it came."""
    try:
        yield
    except KeyboardInterrupt as error:
        done = sum(ledger.there(piece) for piece in own.values())
        error.add_note(f" after {done} of {count(len(own), ledger.noun)}")
        raise
