"""Ledger: a folder of finished pieces, and the one way to plan, write, check and go on with them.

    with Ledger(folder, "study", noun="cell") as ledger:       # one writer at a time; later ones wait or are told
        ledger.plan([Piece("k1", "cells/k1.npz", "net · fog 1")], about={"data": "val"})
        for piece in ledger.missing():                           # not there, cut short, or changed since
            with ledger.writing(piece) as file:
                file.write(...)

`plan.json` says which pieces belong to the folder and what they are about. `journal.jsonl` gets a line when a piece is
finished, with its size, checksum and stamp, or when it failed. A piece counts as finished when it is what its line
says, so a file that was cut short, changed, or put in the place of another is made again. Pieces are written beside
their place and renamed; the journal follows, so a run that is killed in between makes one piece again and loses none.
A piece may be a folder of files; its checksum then covers their names and contents. Pieces that come one at a time,
such as imports, join the plan by a line of their own (`haptera.run.additions`).
Cost: checking reads every finished piece once, about a gigabyte per second; a study that goes on reads those whose
stamp is another (`haptera.run.journal`).
"""

import logging
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from filelock import BaseFileLock

from haptera.errors import HapteraError, Unfinished, WriteError
from haptera.files.atomic import HALF_WRITTEN, sweep, whole, whole_folder, writable_folder, write_text
from haptera.files.fingerprint import fingerprint, of_file
from haptera.files.json import plain
from haptera.run.additions import ADDITIONS, Addition, add_all, read_additions
from haptera.run.folder import GENERATION, PIECE, PLAN, check_same, read_plan, write_plan
from haptera.run.journal import JOURNAL, Line, compare, ends_whole, finished_line, line_of, look_at, read_journal
from haptera.run.locks import PATIENCE, is_locked, release_lock, take_lock
from haptera.run.piece import Piece
from haptera.words import count

__all__ = ["PLAN", "Ledger", "Piece"]

log = logging.getLogger("haptera")

ANY = ""
"""The kind of a ledger that is not opened yet, which may be any."""
FILES = (PLAN, JOURNAL, ADDITIONS)


class Ledger:
    """A folder of finished pieces; reading needs no lock, writing happens inside `with`.

    Args:
        folder: where; it is made when something is written.
        kind: what it holds, such as `study`; a folder of another kind is refused.
        noun: what messages call a piece.
        wait: seconds to wait for another writer; None waits until it is done.
    """

    def __init__(self, folder: Path | str, kind: str, *, noun: str = "piece", wait: float | None = PATIENCE) -> None:
        self.folder, self.kind, self.noun, self.wait = Path(folder), kind, noun, wait
        self._folder = str(self.folder)
        self.about: dict[str, Any] = {}
        self.pieces: dict[str, Piece] = {}
        self.journal: dict[str, Line] = {}
        self.unreadable: list[str] = []
        self.intact: set[str] = set()
        self._generation = 0
        self._additions: list[Addition] = []
        self._files: dict[str, str] = {}
        self._noted, self._restamped = 0, False
        self._lock: BaseFileLock | None = None
        self.read()

    # Reading

    @property
    def exists(self) -> bool:
        """Say whether the folder has a plan."""
        return (self.folder / PLAN).is_file()

    @classmethod
    def open(cls, folder: Path | str, kind: str | None = None, **settings: Any) -> Self:
        """Return the ledger of a folder that must have one, of any kind by default."""
        folder = Path(folder)
        if not folder.is_dir():
            raise HapteraError(f"there is no folder {folder}")
        ledger = cls(folder, kind or ANY, **settings)
        if not ledger.exists:
            what = f"a {kind}" if kind else "finished pieces"
            raise HapteraError(f"{folder} is not a folder of {what}: it has no {PLAN}")
        return ledger

    def read(self) -> None:
        """Read plan, additions and journal again, unless they are as they were."""
        files = {name: of_file(self.folder / name) for name in FILES if (self.folder / name).is_file()}
        if files and files == self._files:
            return
        self.about, self.pieces, self.journal, self.unreadable = {}, {}, {}, []
        self._additions, self._files, self._restamped = [], {}, False
        content = read_plan(self.folder)
        if content is None:
            return
        if self.kind == ANY:
            self.kind, self.noun = content["kind"], content["noun"]
        if content["kind"] != self.kind:
            raise HapteraError(f"{self.folder} holds a {content['kind']}; a {self.kind} was expected")
        self.about, self._generation = content["about"], content.get(GENERATION, 0)
        self._additions = read_additions(self.folder, self._generation)
        planned = {own["key"]: Piece(*[own[name] for name in PIECE]) for own in content["pieces"]}
        self.pieces = add_all(planned, self._additions)
        self._noted = look_at(self.folder / JOURNAL)[2]
        self.journal, self.unreadable = read_journal(self.folder / JOURNAL)
        self.journal |= {each.piece.key: each.line for each in self._additions}
        self._files = files

    def path(self, piece: Piece) -> Path:
        """Return where a piece is, or will be."""
        return self.folder / piece.path

    def there(self, piece: Piece) -> bool:
        """Say whether a piece is finished and has the size it had; its content is not looked at."""
        line = self.journal.get(piece.key)
        return line is not None and bool(line.checksum) and look_at(self._place(piece))[0] == line.size

    def damage(self, piece: Piece, read: bool = True) -> str:
        """Return what is wrong with a piece that was finished; nothing for one that is whole, or was never finished.

        Args:
            piece: any.
            read: its content in any case, as whoever uses it does, and not only where its stamp is another.
        """
        line = self.journal.get(piece.key)
        self.intact.discard(piece.key)
        if line is None or not line.checksum:
            return ""
        wrong, stamp = compare(self._place(piece), line, None if read else self._noted)
        if wrong:
            return wrong
        if stamp != line.stamp:  # of a folder that was copied, or of an addition
            self.journal[piece.key], self._restamped = replace(line, stamp=stamp), True
        self.intact.add(piece.key)
        return ""

    def checked(self, piece: Piece) -> Path:
        """Return the path of a finished piece, after checking that it is what it was."""
        if wrong := self.damage(piece):
            raise HapteraError(f"{wrong}; the command that made {self.folder} makes it again")
        if not self.there(piece):
            raise HapteraError(f"{self.path(piece)} is not finished; the command that made {self.folder} goes on")
        return self.path(piece)

    def missing(self, among: Iterable[Piece] | None = None, read: bool = True) -> list[Piece]:
        """Return the pieces, or those among some, that are to be made; damaged ones are named in the log."""
        todo = []
        for piece in self.pieces.values() if among is None else among:
            if wrong := self.damage(piece, read):
                log.warning("%s; it is made again", wrong)
            if piece.key not in self.intact:
                todo.append(piece)
        return todo

    def damaged(self, known: Container[str] = (), read: bool = True) -> dict[str, str]:
        """Return what is wrong with each finished piece that is not what it was, by key.

        Args:
            known: keys of pieces that need not be looked at, such as those that are `intact` since they were looked at.
            read: see `damage`.
        """
        pieces = [piece for piece in self.pieces.values() if piece.key not in known]
        return {piece.key: wrong for piece in pieces if (wrong := self.damage(piece, read))}

    @property
    def finished(self) -> list[Piece]:
        """The pieces that are there, by their size, or were when they were last looked at."""
        return [piece for piece in self.pieces.values() if piece.key in self.intact or self.there(piece)]

    @property
    def failures(self) -> dict[str, str]:
        """Key -> why a piece could not be made."""
        return {key: line.failure for key, line in self.journal.items() if line.failure and key in self.pieces}

    def digest(self, without: Container[str] = ()) -> str:
        """Return the fingerprint of what is finished, less some keys; what was made of it is stale when it changes."""
        lines = (f"{p.key} {self.journal[p.key].checksum}" for p in self.finished if p.key not in without)
        return fingerprint("\n".join(sorted(lines)))

    def how_far(self) -> str:
        """Return a text such as ` after 3 of 8 cells`; nothing before there is a plan."""
        return f" after {len(self.finished)} of {count(len(self.pieces), self.noun)}" if self.pieces else ""

    def problems(self) -> list[str]:
        """Return everything that is wrong with the folder, one sentence each."""
        failed = [f"{self.pieces[key].title or key} failed: {why}" for key, why in self.failures.items()]
        halves = [] if is_locked(self.folder) else self._leftovers()
        stopped = [f"{path} was left by a run that was stopped" for path in halves]
        return [*self.damaged().values(), *failed, *self.unreadable, *stopped]

    # Writing

    def __enter__(self) -> Self:
        writable_folder(self.folder)
        self._lock = take_lock(self.folder, self.wait)
        try:
            self.read()
            sweep(self._leftovers())
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()
        if isinstance(error, WriteError):
            n = len(self.finished)
            intact = f"{n} finished {self.noun}{' is' if n == 1 else 's are'} intact"
            raise Unfinished(f"{error}; {intact}, the same command goes on") from error

    def check_same(self, about: Mapping[str, Any]) -> None:
        """Refuse to go on in a folder that was begun with other settings or fingerprints than these."""
        if self.exists:
            check_same(self.folder, self.kind, self.about, plain(about))

    def plan(self, pieces: Iterable[Piece], about: Mapping[str, Any]) -> None:
        """Say which pieces belong to the folder; what the journal says about others is forgotten."""
        planned = {piece.key: piece for piece in pieces}
        if self._says_so(planned, about):
            return
        self.pieces, self.about, self._files, self._restamped = planned, dict(about), {}, False
        if self._additions:  # before the plan: killed in between, one of the two still has their sizes and checksums
            self._write_journal()
            self._additions, self._generation = [], self._generation + 1
        content = {"kind": self.kind, "noun": self.noun, "about": self.about, GENERATION: self._generation}
        write_plan(self.folder, content | {"pieces": [piece.entry() for piece in self.pieces.values()]})
        self.journal = {key: line for key, line in self.journal.items() if key in self.pieces}
        self._write_journal()
        (self.folder / ADDITIONS).unlink(missing_ok=True)

    def _says_so(self, planned: Mapping[str, Piece], about: Mapping[str, Any]) -> bool:
        """Say whether the files are already what `plan` would write."""
        as_read = bool(self._files) and ADDITIONS not in self._files and not self.unreadable and not self._restamped
        same = as_read and list(planned.items()) == list(self.pieces.items()) and plain(about) == self.about
        return same and self.journal.keys() <= planned.keys() and ends_whole(self.folder / JOURNAL)

    def _write_journal(self) -> None:
        write_text(self.folder / JOURNAL, "".join([line_of(key, line) for key, line in self.journal.items()]))

    @contextmanager
    def writing(self, piece: Piece) -> Iterator[BinaryIO]:
        """Open a file that becomes the piece when the block ends well."""
        with whole(self.path(piece)) as file:
            yield file
        self.done(piece)

    @contextmanager
    def writing_folder(self, piece: Piece) -> Iterator[Path]:
        """Make a hidden folder that becomes the piece when the block ends well."""
        with whole_folder(self.path(piece), beside=self.folder) as folder:
            yield folder
        self.done(piece)

    def done(self, piece: Piece) -> None:
        """Note that a piece, which is in its place, is finished; for pieces that another process wrote."""
        self._note(piece, finished_line(self._place(piece)))
        self.intact.add(piece.key)

    def fail(self, piece: Piece, why: str) -> None:
        """Note why a piece could not be made."""
        self._note(piece, Line(failure=why))

    def _note(self, piece: Piece, line: Line) -> None:
        assert self._lock is not None, "a ledger is written to inside `with`"
        self.journal[piece.key], self._files = line, {}
        self.intact.discard(piece.key)
        path = self.folder / JOURNAL
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(line_of(piece.key, line))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}") from error

    def _leftovers(self) -> list[Path]:
        """What killed runs left half-written, beside any piece."""
        names = {"", *(piece.path.rpartition("/")[0] for piece in self.pieces.values())}
        folders = [self.folder / name for name in names]
        return sorted(path for folder in folders if folder.is_dir() for path in folder.glob(HALF_WRITTEN))

    def _place(self, piece: Piece) -> str:
        """Return the path of a piece as a text, which is made more quickly."""
        return f"{self._folder}/{piece.path}"

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            release_lock(lock, self.folder)
