"""Logits on disk: an `.npz` with `logits` (samples, classes), and `targets` and `classes` (names) if known.

A finished cell of a study is such a file. The logits are read a batch at a time, so memory does not grow with samples.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.replacement import check_targets
from haptera.analyses.dependencies.second_moment import BLOCK
from haptera.errors import HapteraError, hint
from haptera.files.npz import check_header, member, open_npz, read_header
from haptera.outputs_schema import check_arrays
from haptera.run.cells import open_study


class LogitsFile:
    """Logits on disk, read in batches.

    Args:
        path: of the file, or of a study with one cell.
        unseen: whether targets may be classes that the logits have no column for.

    Attributes:
        path: of the file.
        shape: samples and classes.
        targets: `(samples,)` as columns of the logits, or None.
        names: one for each class, each different, or None.
    """

    def __init__(self, path: Path, *, unseen: bool = False) -> None:
        self.path = _file(path)
        with open_npz(self.path) as file:
            if "logits" not in file.files:
                found = ", ".join(file.files) or "nothing"
                raise HapteraError(f"{self.path} holds {found}; logits were expected.{hint('logits', file.files)}")
            shape, self._order, self._type = check_header(file, "logits", self.path)
            if len(shape) != 2 or self._type.kind not in "fiu" or 0 in shape:
                raise HapteraError(
                    f"{self.path}: logits are {self._type} {shape}; numbers (samples, classes) were expected"
                )
            self.shape = samples, classes = shape[0], shape[1]
            if classes < 2:
                raise HapteraError(f"{self.path}: logits have {classes} class; at least two were expected")
            targets = self._targets(file) if "targets" in file.files else None
            self.names = self._names(member(file, "classes", self.path)) if "classes" in file.files else None
        try:
            known = classes
            if unseen and targets is not None and targets.dtype.kind in "iu" and len(targets):
                known = max(classes, int(targets.max()) + 1)
            self.targets = None if targets is None else check_targets(targets, samples, known)
        except HapteraError as error:
            raise HapteraError(f"{self.path}: {error}") from error

    def __iter__(self) -> Iterator[np.ndarray]:
        """Batches of rows, `(batch, classes)`."""
        samples, classes = self.shape
        if self._order:  # columns first: such a file is read whole
            with open_npz(self.path) as file:
                logits = member(file, "logits", self.path)
            yield from (logits[first : first + BLOCK] for first in range(0, samples, BLOCK))
            return
        size = classes * self._type.itemsize
        with zipfile.ZipFile(self.path) as archive, archive.open("logits.npy") as stream:
            read_header(stream, f"{self.path}: the logits")
            for first in range(0, samples, BLOCK):
                rows = min(BLOCK, samples - first)
                try:
                    content = stream.read(rows * size)
                except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
                    raise HapteraError(f"{self.path}: cannot read the logits, the file is damaged: {error}") from error
                if len(content) < rows * size:
                    raise HapteraError(f"{self.path}: the logits end early, the file is damaged")
                yield np.frombuffer(content, self._type).reshape(rows, classes)

    def _targets(self, file: np.lib.npyio.NpzFile) -> np.ndarray | None:
        """Targets as columns; None where a cell accepts several columns for one class of the data."""
        targets = member(file, "targets", self.path)
        if "accepted" not in file.files:
            return targets
        accepted = member(file, "accepted", self.path)
        check_arrays({"targets": targets, "accepted": accepted, "ids": np.arange(len(targets))}, self.path)
        return accepted.argmax(1)[targets] if (accepted.sum(1) == 1).all() else None

    def _names(self, names: np.ndarray) -> list[str]:
        if names.shape != (self.shape[1],) or names.dtype.kind not in "USiu":
            raise HapteraError(
                f"{self.path}: classes are {names.dtype} {names.shape}; names ({self.shape[1]},) were expected, "
                "one for each class of the logits"
            )
        texts = [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names.tolist()]
        twice = {name for name, count in pd.Series(texts).value_counts().items() if count > 1}
        return [f"{name} ({place})" if name in twice else name for place, name in enumerate(texts)]


def _file(path: Path) -> Path:
    """Return the file itself, or the one finished cell of a study."""
    if path.is_dir():
        ledger = open_study(path)
        cells = ledger.finished
        if len(cells) == 1:
            return ledger.checked(cells[0])
        listed = "; ".join(f"{ledger.path(cell)} ({cell.title})" for cell in cells[:5])
        more = f" and {len(cells) - 5} more" if len(cells) > 5 else ""
        raise HapteraError(f"{path} has {len(cells)} finished cells; name the file of one: {listed}{more}")
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise HapteraError(f"there is no file {path};{hint(path.name, near) or ' an .npz with logits was expected'}")
    return path
