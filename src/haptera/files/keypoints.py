"""KeypointTable: keypoints of frames as tables hold them, of one animal in a frame or of several.

With several animals a row is one animal in one frame, so that everything that counts rows counts animals; `animals`
names them, and frames come once for each. The table is written as DeepLabCut does: columns with the levels `scorer`,
`bodyparts` and `coords` (x, y and, in predictions, likelihood), and `individuals` after the scorer where there are
several animals. Parts that belong to no animal, such as the corners of a box, are those of the animal `single`.
"""

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.files.atomic import whole, writable_file

LEVELS = ["scorer", "bodyparts", "coords"]
ANIMAL_LEVELS = ["scorer", "individuals", "bodyparts", "coords"]
SINGLE = "single"
"""What DeepLabCut calls the animal of parts that belong to none."""
KEY = "df_with_missing"


@dataclass(frozen=True, eq=False)
class KeypointTable:
    """Keypoints of frames, without the frames.

    Attributes:
        keypoints: `(rows, parts, 2)`, NaN where missing.
        parts: their names.
        files: `(rows,)`, paths of images with `/`, or numbers of frames, as text.
        scorer: who labelled or predicted them.
        confidence: `(rows, parts)` of predictions, or None.
        animals: `(rows,)`, which of several animals in a frame it is; None where a row is a frame.
        skeleton: pairs of parts, where a file says them.
        unique: parts that belong to no animal; they are in rows of the animal `single`.
    """

    keypoints: np.ndarray
    parts: tuple[str, ...]
    files: np.ndarray
    scorer: str = "haptera"
    confidence: np.ndarray | None = None
    animals: np.ndarray | None = None
    skeleton: tuple[tuple[str, str], ...] = ()
    unique: tuple[str, ...] = ()

    @property
    def individuals(self) -> np.ndarray:
        """`(rows,)`: the folder of each image, which in DeepLabCut's projects is the video; `all` without folders."""
        return np.array([PurePosixPath(file).parent.name or "all" for file in self.files])

    def select(self, rows: np.ndarray) -> "KeypointTable":
        """Return some rows."""
        confidence, animals = (None if column is None else column[rows] for column in (self.confidence, self.animals))
        table = replace(self, keypoints=self.keypoints[rows], files=self.files[rows])
        return replace(table, confidence=confidence, animals=animals)

    def of_animals(self) -> tuple["KeypointTable", np.ndarray]:
        """Return the rows of animals with a keypoint, without parts that belong to none, and the numbers of these rows.

        A table of one animal in a frame is returned as it is.
        """
        if self.animals is None:
            return self, np.arange(len(self.files))
        rows = np.flatnonzero(np.isfinite(self.keypoints).any((1, 2)) & (self.animals != SINGLE))
        table, own = self.select(rows), [k for k, part in enumerate(self.parts) if part not in self.unique]
        confidence = None if table.confidence is None else table.confidence[:, own]
        parts = tuple(self.parts[k] for k in own)
        keypoints = table.keypoints[:, own]
        return replace(table, keypoints=keypoints, parts=parts, confidence=confidence, unique=()), rows

    def frame(self) -> pd.DataFrame:
        """Return the table as DeepLabCut holds it."""
        values, coords = self.keypoints, ["x", "y"]
        if self.confidence is not None:
            values, coords = np.concatenate([values, self.confidence[:, :, None]], 2), [*coords, "likelihood"]
        if self.animals is not None:
            return self._frame_of_animals(values, coords)
        columns = pd.MultiIndex.from_product([[self.scorer], self.parts, coords], names=LEVELS)
        return pd.DataFrame(values.reshape(len(values), -1), index=_index(self.files.tolist()), columns=columns)

    def _frame_of_animals(self, values: np.ndarray, coords: list[str]) -> pd.DataFrame:
        assert self.animals is not None
        files, animals = (list(dict.fromkeys(column.tolist())) for column in (self.files, self.animals))
        wide = np.full((len(files), len(animals), *values.shape[1:]), np.nan)
        wide[_places(self.files, files), _places(self.animals, animals)] = values
        keys, columns = [], []
        for place, animal in enumerate(animals):
            for part, name in enumerate(self.parts):
                if (name in self.unique) != (animal == SINGLE):
                    continue
                keys += [(self.scorer, animal, name, coord) for coord in coords]
                columns.append(wide[:, place, part])
        index = pd.MultiIndex.from_tuples(keys, names=ANIMAL_LEVELS)
        return pd.DataFrame(np.concatenate(columns, 1), index=_index(files), columns=index)

    def write(self, path: Path) -> None:
        """Write `.csv` or `.h5`, whole or not at all."""
        check_target(path)
        if path.suffix == ".csv":
            with whole(path) as file:
                file.write(self.frame().to_csv().encode())
            return
        frame = self.frame()
        # Plain objects, as every version of pandas and DeepLabCut reads them.
        if frame.index.dtype.kind != "i":  # numbers of frames stay numbers
            frame.index = frame.index.astype(object)
        levels = [level.astype(object) for level in frame.columns.levels]  # type: ignore[attr-defined]
        frame.columns = frame.columns.set_levels(levels)  # type: ignore[attr-defined]
        with whole(path) as file:  # PyTables opens a file by its name, which is the temporary one
            frame.to_hdf(file.name, key=KEY, mode="w")


def _places(values: np.ndarray, names: list[str]) -> np.ndarray:
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[value] for value in values.tolist()], int)


def _index(names: list[str]) -> list[Any]:
    """Return numbers of frames as numbers, and paths as they are."""
    return [int(name) for name in names] if all(name.isdecimal() for name in names) else names


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a file to which no table can be written."""
    if path.suffix not in (".csv", ".h5"):
        raise HapteraError(f"cannot write keypoints to {path}; a name ending in .csv or .h5 was expected")
    if path.suffix == ".h5":
        need_tables(path)
    writable_file(path)


def check_likelihood(confidence: np.ndarray, where: str, files: np.ndarray, parts: tuple[str, ...]) -> None:
    """Refuse a likelihood outside [0, 1]; NaN, of what was not found, is allowed."""
    wrong = np.argwhere((confidence < 0) | (confidence > 1) | np.isinf(confidence))
    if len(wrong):
        row, part = wrong[0]
        raise HapteraError(
            f"{where}: the likelihood of {parts[part]!r} in {files[row]} is {confidence[row, part]:g}; a number from 0 "
            f"to 1 was expected ({len(wrong)} are outside)"
        )


def need_tables(path: Path) -> None:
    """Refuse a table in HDF5 where the packages for it are missing."""
    try:
        import h5py  # noqa: F401
        import tables  # noqa: F401
    except ImportError as error:
        raise HapteraError(
            f"{path} is a table in HDF5, which needs h5py and tables: pip install 'haptera[pose]'"
        ) from error
