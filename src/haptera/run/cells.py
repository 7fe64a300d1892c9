"""The folder of a study: `study.json` says which cells belong to it, `cells/KEY.npz` are the finished ones.

A cell is finished when its file is there. The list is kept apart from the files because a folder outlives changes:
when weights, data or settings change, the old files are no longer listed, so nothing reads them.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, WriteError, check_keys
from haptera.files.atomic import write_text
from haptera.files.fingerprint import SCHEMA
from haptera.files.json import read_json
from haptera.files.schema import TABLE, TEXT, Kind, check, list_of, whole_number
from haptera.words import shorten

KEY = Kind("letters and digits", lambda value: isinstance(value, str) and bool(re.fullmatch(r"\w{1,64}", value)))
"""The key of a cell is the name of its file, and must not lead to another folder."""
CELL = {
    "key": KEY,
    "model": TEXT,
    "stream": TEXT,
    "part": TEXT,
    "adapter": TEXT,
    "seed": whole_number(-(2**53)),
    "model_print": TEXT,
    "stream_print": TEXT,
    "failure": TEXT,
}
STUDY = {"name": TEXT, "settings": TABLE, "left_out": list_of(TEXT), "cells": list_of(TABLE)}


@dataclass(frozen=True)
class Listed:
    """A cell as the folder lists it.

    Attributes:
        key: fingerprint of everything that decides the outputs; the name of the file.
        part: which part of the stream.
        model_print: fingerprint of the model; empty for predictions made elsewhere.
        stream_print: fingerprint of the part of the stream; empty for predictions made elsewhere.
        failure: why the cell could not be run, if so.
    """

    key: str
    model: str
    stream: str
    part: str
    adapter: str
    seed: int
    model_print: str = ""
    stream_print: str = ""
    failure: str = ""

    @property
    def names(self) -> tuple[str, str, str, str, int]:
        """What people call the cell."""
        return self.model, self.stream, self.part, self.adapter, self.seed

    @property
    def title(self) -> str:
        """Such as `resnet · contrast 4 · batchnorm`."""
        return f"{self.model} · {self.part} · {self.adapter}" + (f" · seed {self.seed}" if self.seed else "")


@dataclass
class Manifest:
    """What `study.json` holds."""

    folder: Path
    name: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    cells: list[Listed] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The manifest of a folder; an error if it is not a folder of a study."""
        path = folder / "study.json"
        if not folder.is_dir():
            raise HapteraError(f"there is no folder {folder}")
        if not path.is_file():
            raise HapteraError(f"{folder} is not a folder of a study: it has no study.json")
        content = check(read_json(path), {"schema": whole_number()}, str(path))
        if content["schema"] != SCHEMA:
            content |= {"cells": [], "left_out": []}
        check(content, STUDY, str(path))
        cells = [_listed(cell, f"{path}: cell {place}") for place, cell in enumerate(content["cells"])]
        return cls(folder, content["name"], content["settings"], cells, content["left_out"])

    @classmethod
    def read_or_new(cls, folder: Path) -> "Manifest":
        """The manifest of a folder, or an empty one."""
        return cls.read(folder) if (folder / "study.json").is_file() else cls(folder)

    def write(self) -> None:
        """Write `study.json`, whole."""
        content = {
            "schema": SCHEMA,
            "name": self.name,
            "settings": self.settings,
            "left_out": self.left_out,
            "cells": [asdict(cell) for cell in self.cells],
        }
        write_text(self.folder / "study.json", json.dumps(content, indent=1, default=str))

    def tidy_up(self) -> None:
        """Remove what a killed run left half-written; only for who holds the lock."""
        for part in (self.folder / "cells").glob(".*.part"):
            part.unlink()

    def path(self, cell: Listed) -> Path:
        """Where the outputs of a cell are, or will be."""
        return self.folder / "cells" / f"{cell.key}.npz"

    def finished(self, cell: Listed) -> bool:
        """Whether the outputs of a cell are there."""
        return self.path(cell).is_file()

    @property
    def damaged(self) -> list[Listed]:
        """Cells whose file is there and cannot be used."""
        return [cell for cell in self.cells if cell.failure and self.finished(cell)]

    def merge(self, new: Sequence[Listed]) -> None:
        """List new cells; of the old ones, keep those that no change of a model or a stream has made stale."""
        names = {cell.names for cell in new}
        models = {cell.model: cell.model_print for cell in new}
        parts = {(cell.stream, cell.part, cell.seed): cell.stream_print for cell in new}

        def current(old: Listed) -> bool:
            now_model = models.get(old.model, old.model_print)
            now_part = parts.get((old.stream, old.part, old.seed), old.stream_print)
            same_model = not old.model_print or not now_model or old.model_print == now_model
            same_part = not old.stream_print or not now_part or old.stream_print == now_part
            return old.names not in names and same_model and same_part

        self.cells = [cell for cell in self.cells if current(cell)] + list(new)

    def note_failures(self, tried: Sequence[Listed], failures: Mapping[str, str]) -> None:
        """Write down why cells could not be run, by key; the others that were tried lose such a note."""
        keys = {cell.key for cell in tried}
        self.cells = [
            replace(cell, failure=failures.get(cell.key, "")) if cell.key in keys else cell for cell in self.cells
        ]

    def notes(self) -> list[str]:
        """What a reader of the results must know about what is not in them."""
        missing = [cell for cell in self.cells if not self.finished(cell)]
        failed = [cell for cell in self.cells if cell.failure]
        notes = list(self.left_out)
        for why in dict.fromkeys(cell.failure for cell in failed):
            titles = [cell.title for cell in failed if cell.failure == why]
            notes.append(f"{len(titles)} of {len(self.cells)} cells failed: {why} ({shorten(titles)})")
        if waiting := len([cell for cell in missing if not cell.failure]):
            notes.append(f"{waiting} of {len(self.cells)} cells have not been run yet")
        return notes


def _listed(content: dict[str, Any], where: str) -> Listed:
    own = check(content, CELL, where, missing=("model_print", "stream_print", "failure"))
    check_keys(f"key in {where}", own, CELL)
    return Listed(**own)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second run out of the same folder; a killed run leaves no lock, and a failed one no empty folder."""
    path = folder / ".lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)  # another run that came to nothing may have taken it away
        # Not through a link: a folder from somebody else could point at any file of the reader's.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise WriteError(f"cannot lock {path}: {error.strerror}") from error
    with os.fdopen(handle) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise HapteraError(f"another run is writing into {folder}; wait for it, or use another --out") from error
        try:
            yield
        finally:
            if [*folder.iterdir()] == [path]:
                path.unlink()
                folder.rmdir()
