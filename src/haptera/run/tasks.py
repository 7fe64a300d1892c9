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
Without a folder results are made in memory. With several `jobs`, tasks are made in processes of their own, which
write them; without a folder there is one for as long as it takes.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from haptera import __version__
from haptera.errors import Unfinished
from haptera.files.atomic import whole, whole_folder
from haptera.files.fingerprint import fingerprint
from haptera.files.json import plain, read_json
from haptera.progress import Progress
from haptera.run.execute import in_processes
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
    jobs: int = 1,
    each: Callable[[Task[T], T], None] | None = None,
    held: Mapping[str, T] | None = None,
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
        jobs: processes; 1 is this one.
        each: called with every task and its result as soon as it is there, those found finished first.
        held: results by key that the caller has; found finished, they are neither read again nor told of.
        progress: show a bar; None does on a terminal.
    """
    once: dict[str, Task[T]] = {}
    for task in tasks:
        once.setdefault(task.piece.key, task)
    making = _Making(kind, noun, tolerate, min(jobs, len(once)), each, progress)
    if out is None and making.jobs > 1:
        with TemporaryDirectory(prefix="haptera-") as folder:
            return finish(tasks, folder, kind, noun=noun, tolerate=tolerate, jobs=jobs, each=each, progress=progress)
    if out is None:
        made, failures = making.run(list(once.values()), None)
        return Outcome([made.get(task.piece.key) for task in tasks], failures)
    own = {key: task.piece for key, task in once.items()}
    with Ledger(out, kind, noun=noun) as ledger, _noted(ledger, own):
        if ledger.pieces and ledger.about.get(VERSION) != __version__:
            log.info("%s was begun by another version of haptera; its %ss are made again", ledger.folder, noun)
            ledger.journal.clear()
        ledger.plan([*own.values(), *_others(ledger, own)], {VERSION: __version__, **(about or {})})
        todo = [once[piece.key] for piece in ledger.missing(own.values())]
        made = dict(held or {})
        made |= {key: making.told(task, ledger) for key, task in once.items() if task not in todo and key not in made}
        new, failures = making.run(todo, ledger)
        made |= new
    if kept := len(once) - len(todo):
        log.info("%s run, %d found finished, %d failed", count(len(todo) - len(failures), noun), kept, len(failures))
    return Outcome([made.get(task.piece.key) for task in tasks], failures)


@dataclass(frozen=True)
class _Making(Generic[T]):
    """How tasks are made, and who is told of it."""

    kind: str
    noun: str
    tolerate: tuple[type[Exception], ...]
    jobs: int
    each: Callable[[Task[T], T], None] | None
    progress: bool | None

    def run(self, todo: Sequence[Task[T]], ledger: Ledger | None) -> tuple[dict[str, T], list[str]]:
        """Return results by key, which are written into a ledger if there is one; and the failures."""
        made: dict[str, T] = {}
        failures: list[str] = []
        for task in todo:
            task.check()
        share = len(todo) / max(sum(task.work for task in todo), 1e-300)
        with Progress(self.kind, len(todo), self.progress, unit=f"{self.noun}s") as bar:
            for task, result, failure in self._results(todo, ledger):
                if failure:
                    failures.append(f"{task.piece.title}: {failure}")
                    log.warning(failures[-1])
                    if ledger is not None:
                        ledger.fail(task.piece, failure)
                elif ledger is None:
                    assert result is not None
                    made[task.piece.key] = self._tell(task, result)
                else:
                    made[task.piece.key] = self.told(task, ledger)
                bar.advance(task.piece.title, task.work * share)
        return made, failures

    def told(self, task: Task[T], ledger: Ledger) -> T:
        """Return a result that a ledger has, after telling of it."""
        return self._tell(task, task.read(ledger.path(task.piece)))

    def _tell(self, task: Task[T], result: T) -> T:
        if self.each is not None:
            self.each(task, result)
        return result

    def _results(self, todo: Sequence[Task[T]], ledger: Ledger | None) -> Iterator[tuple[Task[T], T | None, str]]:
        """Yield every task with its result, unless a ledger has it, and why it failed, in the order of their ends."""
        if ledger is not None and self.jobs > 1:
            places = [ledger.path(task.piece).resolve() for task in todo]
            work = partial(_write_one, todo, places, ledger.folder.resolve(), self.tolerate)
            for index, failure in in_processes(work, range(len(todo)), self.jobs):
                if failure and not self.tolerate:
                    ledger.fail(todo[index].piece, failure)
                    raise Unfinished(f"{todo[index].piece.title}: {failure}; the same call goes on")
                if not failure:
                    ledger.done(todo[index].piece)
                yield todo[index], None, failure
            return
        for task in todo:
            try:
                result = task.make()
            except self.tolerate as error:
                yield task, None, str(error)
                continue
            if ledger is not None:
                _write(task, result, ledger.path(task.piece), ledger.folder)
                ledger.done(task.piece)
            yield task, result, ""


def _write(task: Task[T], result: T, path: Path, folder: Path) -> None:
    """Write a result, whole, to its place in the folder of a ledger."""
    if not path.suffix:
        with whole_folder(path, beside=folder) as inside:
            task.write(result, inside)
        return
    with whole(path) as file:
        task.write(result, Path(file.name))


def _write_one(
    tasks: Sequence[Task[Any]],
    places: Sequence[Path],
    folder: Path,
    tolerate: tuple[type[Exception], ...],
    index: int,
) -> str:
    """Make a task in another process and write it; return why it failed."""
    try:
        result = tasks[index].make()
    except tolerate as error:
        return str(error) or type(error).__name__
    _write(tasks[index], result, places[index], folder)
    return ""


def _others(ledger: Ledger, own: Mapping[str, Piece]) -> list[Piece]:
    """Return what calls with other settings finished; the plan forgets what is damaged of it, so that is said."""
    others = [piece for key, piece in ledger.pieces.items() if key not in own]
    for piece in others:
        if not ledger.there(piece) and (wrong := ledger.damage(piece)):
            log.warning("%s; it is made again where it is asked for", wrong)
    return [piece for piece in others if ledger.there(piece)]


@contextmanager
def _noted(ledger: Ledger, own: Mapping[str, Piece]) -> Iterator[None]:
    """Let an interruption say how far it came."""
    try:
        yield
    except KeyboardInterrupt as error:
        done = sum(ledger.there(piece) for piece in own.values())
        error.add_note(f" after {done} of {count(len(own), ledger.noun)}")
        raise
