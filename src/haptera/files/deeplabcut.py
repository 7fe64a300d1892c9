"""DeepLabCut's tables: keypoints of frames as CSV or HDF5, read and written.

The columns have three levels, `scorer`, `bodyparts` and `coords` (x, y and, in predictions, likelihood); a row is a
frame, its index the path of the image, in one column or in one for each folder (`labeled-data`, video, file). Empty is
missing.
HDF5 is what pandas writes, which needs the packages `tables` and h5py; a file with a pickle that could run code is
refused. The tables are labels to `haptera.pose`, and behaviour to `haptera.recordings.reading`.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.files.atomic import whole
from haptera.files.hdf5 import check_plain

LEVELS = ["scorer", "bodyparts", "coords"]
KEY = "df_with_missing"


@dataclass(frozen=True, eq=False)
class KeypointTable:
    """Keypoints of frames, without the frames.

    Attributes:
        keypoints: `(frames, parts, 2)`, NaN where missing.
        parts: their names.
        files: `(frames,)`, paths of images with `/`, or numbers of frames, as text.
        scorer: who labelled or predicted them.
        confidence: `(frames, parts)` of predictions, or None.
    """

    keypoints: np.ndarray
    parts: tuple[str, ...]
    files: np.ndarray
    scorer: str = "haptera"
    confidence: np.ndarray | None = None

    @property
    def individuals(self) -> np.ndarray:
        """`(frames,)`: the folder of each image, which in DeepLabCut's projects is the video; `all` without folders."""
        return np.array([PurePosixPath(file).parent.name or "all" for file in self.files])

    def frame(self) -> pd.DataFrame:
        """Return the table as DeepLabCut holds it."""
        values, coords = self.keypoints, ["x", "y"]
        if self.confidence is not None:
            values, coords = np.concatenate([values, self.confidence[:, :, None]], 2), [*coords, "likelihood"]
        columns = pd.MultiIndex.from_product([[self.scorer], self.parts, coords], names=LEVELS)
        names = self.files.tolist()
        index = [int(name) for name in names] if all(name.isdecimal() for name in names) else names
        return pd.DataFrame(values.reshape(len(values), -1), index=index, columns=columns)

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


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a file to which no table can be written."""
    if path.suffix not in (".csv", ".h5"):
        raise HapteraError(f"cannot write keypoints to {path}; a name ending in .csv or .h5 was expected")
    if path.suffix == ".h5":
        _need_tables(path)


def read_deeplabcut(path: Path, scorer: str | None = None) -> KeypointTable:
    """Read a table, or the labels of a project.

    Args:
        path: a `.csv` or `.h5` file, or a folder with tables `CollectedData_*` in it or below it; see `find_tables`.
        scorer: whose labels, where there are several; `a,b` for those of both, if they labelled different frames.
    """
    if not path.exists():
        raise HapteraError(f"there is no table of keypoints {path}")
    paths = find_tables(path) if path.is_dir() else [path]
    frames = [_read_hdf(file) if file.suffix in (".h5", ".hdf5") else _read_csv(file) for file in paths]
    scorers = [list(dict.fromkeys(map(str, frame.columns.get_level_values(0)))) for frame in frames]
    every = list(dict.fromkeys(name for names in scorers for name in names))
    wanted = every if scorer is None else scorer.split(",")
    if scorer is None and len(every) > 1:
        raise HapteraError(
            f"{path} has {len(every)} scorers ({', '.join(every)}); say whose labels are meant, scorer={every[0]!r} "
            f"(--scorer {every[0]})"
        )
    for name in wanted:
        if name not in every:
            raise unknown(f"scorer in {path}", name, every)
    return _together(
        [
            (file, _unpacked(frame, file, name))
            for file, frame, names in zip(paths, frames, scorers, strict=True)
            for name in names
            if name in wanted
        ]
    )


def find_tables(folder: Path) -> list[Path]:
    """Return the tables of labels in a folder: one for each video and scorer.

    In a project they are in `labeled-data`, a folder for each video. `training-datasets` has copies of them, which are
    left out. Where a table is there as CSV and as HDF5, the CSV is taken.
    """
    labels = folder / "labeled-data"
    root = labels if any(labels.rglob("CollectedData_*")) else folder
    found = [
        file
        for suffix in (".h5", ".csv")
        for file in root.rglob(f"CollectedData_*{suffix}")
        if "training-datasets" not in file.relative_to(root).parts
    ]
    if not found:
        raise HapteraError(f"there is no CollectedData_*.csv or .h5 in {folder}")
    return sorted({file.with_suffix(""): file for file in found}.values())


def find_images(files: Sequence[str], table: Path, root: Path | None = None) -> list[Path]:
    """Where the images of a table are: below `root`, or else below the table's folder or one of those above it."""
    if root is not None:
        return [root / file for file in files]
    start = table if table.is_dir() else table.parent
    for folder in (start, *start.absolute().parents[:3]):
        if (folder / files[0]).is_file():
            return [folder / file for file in files]
    raise HapteraError(f"the image {files[0]} of {table} was not found in {start} or above it; say where images are")


def _read_csv(path: Path) -> pd.DataFrame:
    """Cell by cell, so that every number is the one that was written, whatever the version of pandas."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(file) if row)
            head = list(islice(rows, len(LEVELS)))
            index = _check_head(head, path)
            named = [("/".join(row[:index]), _numbers(row, index, len(head[0]), path)) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error
    columns = pd.MultiIndex.from_arrays([row[index:] for row in head], names=LEVELS)
    values = np.array([row for _, row in named]).reshape(-1, len(columns))
    return pd.DataFrame(values, index=[name for name, _ in named], columns=columns)


def _check_head(head: list[list[str]], path: Path) -> int:
    """How many columns name the frame: one, or one for each folder of a path."""
    names = [row[0] for row in head]
    if "individuals" in names:
        raise HapteraError(f"{path} has a row 'individuals': it is of several animals in a frame, one was expected")
    for expected, found in zip(LEVELS, [*names, "", "", ""], strict=False):
        if found != expected:
            raise HapteraError(
                f"{path} has {found!r} where the row {expected!r} was expected; the first rows of a table of "
                f"DeepLabCut are {', '.join(LEVELS)}"
            )
    return 1 + next((k for k, cell in enumerate(head[0][1:]) if cell), 0)


def _numbers(row: list[str], index: int, width: int, path: Path) -> np.ndarray:
    if len(row) != width:
        raise HapteraError(f"{path}: the row of {row[0]} has {len(row)} cells, {width} were expected")
    try:
        return np.array([float(cell) if cell else np.nan for cell in row[index:]])
    except ValueError as error:
        raise HapteraError(f"{path}: in the row of {row[0]}: {error}") from error


def _read_hdf(path: Path) -> pd.DataFrame:
    _need_tables(path)
    check_plain(path)
    try:
        frame: Any = pd.read_hdf(path)
        levels = list(frame.columns.names)
    # What is not a table after all fails anywhere inside pandas.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error
    if levels != LEVELS:
        raise HapteraError(f"{path} has columns with the levels {levels}; {LEVELS} were expected")
    return frame


def _unpacked(frame: pd.DataFrame, path: Path, scorer: str) -> KeypointTable:
    named: list[Any] = frame.columns.to_list()
    columns = {
        (str(part), str(coord)): frame.iloc[:, place].to_numpy()
        for place, (name, part, coord) in enumerate(named)
        if str(name) == scorer
    }
    parts = tuple(dict.fromkeys(part for part, _ in columns))
    coords: dict[str, np.ndarray] = {}
    for coord in ("x", "y", "likelihood"):
        present = [part for part in parts if (part, coord) in columns]
        if not present and coord == "likelihood":
            continue
        if len(present) < len(parts):
            missing = next(part for part in parts if part not in present)
            raise HapteraError(f"{path} has no column {coord!r} of the part {missing!r}")
        try:
            coords[coord] = np.stack([columns[part, coord].astype(float) for part in parts], 1)
        except (ValueError, TypeError) as error:
            raise HapteraError(f"{path}: a coordinate {coord!r} is not a number: {error}") from error
    keypoints = np.stack([coords["x"], coords["y"]], 2)
    keypoints[np.isnan(keypoints).any(2)] = np.nan
    if not len(keypoints):
        raise HapteraError(f"{path} has no frames")
    files = np.array([_file(index) for index in frame.index])
    return KeypointTable(keypoints, parts, files, scorer, coords.get("likelihood"))


def _file(index: Any) -> str:
    """The path of an image: of one cell, or of several joined; backslashes are from Windows."""
    return "/".join(map(str, index)) if isinstance(index, tuple) else str(index).replace("\\", "/")


def _together(tables: list[tuple[Path, KeypointTable]]) -> KeypointTable:
    """Join tables of the same parts, whatever their order, in which no frame comes twice."""
    (first, table), where = tables[0], dict[str, Path]()
    parts = table.parts
    for path, other in tables:
        if set(other.parts) != set(parts):
            raise HapteraError(f"{path} has other parts than {first}; the same were expected")
        for file in other.files.tolist():
            if file in where:
                both = f"in {where[file]} and in {path}" if where[file] != path else f"in {path}"
                raise HapteraError(f"the frame {file} is there twice, {both}; each was expected once")
            where[file] = path
    if len(tables) == 1:
        return table
    ordered = [(other, [other.parts.index(part) for part in parts]) for _, other in tables]
    return KeypointTable(
        np.concatenate([other.keypoints[:, order] for other, order in ordered]),
        parts,
        np.concatenate([other.files for other, _ in ordered]),
        ",".join(dict.fromkeys(other.scorer for other, _ in ordered)),
    )


def _need_tables(path: Path) -> None:
    try:
        import h5py  # noqa: F401
        import tables  # noqa: F401
    except ImportError as error:
        raise HapteraError(
            f"{path} is a table in HDF5, which needs h5py and tables: pip install 'haptera[pose]'"
        ) from error
