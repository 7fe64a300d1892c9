"""DeepLabCut's tables: keypoints of frames as CSV or HDF5, and those of Lightning Pose, which are alike.

The columns have three levels, `scorer`, `bodyparts` and `coords` (x, y and, in predictions, likelihood), and a fourth,
`individuals`, where there are several animals in a frame; a row is a frame, its index the path of the image, in one
column or in one for each folder (`labeled-data`, video, file). Empty is missing.
Lightning Pose has CSV alone, one file `CollectedData.csv` for all videos; its labels may say `visible` (COCO's 0, 1, 2;
what is not visible is missing here, whatever its coordinates), and its predictions end with a column `set`, which is
left out, as are coordinates of other names.
HDF5 is what pandas writes, which needs the packages `tables` and h5py; a file with a pickle that could run code is
refused. The tables are labels to `haptera.pose`, and behaviour to `haptera.recordings.reading`.
Sources: the documentation of both projects.
"""

import csv
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.files.hdf5 import check_plain
from haptera.files.keypoints import (
    ANIMAL_LEVELS,
    KEY,
    LEVELS,
    SINGLE,
    KeypointTable,
    check_likelihood,
    check_target,
    need_tables,
)

__all__ = ["KEY", "KeypointTable", "check_target", "find_images", "find_tables", "read_deeplabcut"]
log = logging.getLogger("haptera")
COORDS = ("x", "y", "likelihood", "visible")
VISIBLE = 2
FOREIGN = re.compile("/|[A-Za-z]:/")
"""How a path begins that names a place on one machine."""


def read_deeplabcut(path: Path, scorer: str | None = None) -> KeypointTable:
    """Read a table, or the labels of a project.

    Args:
        path: a `.csv` or `.h5` file, or a folder with tables `CollectedData*` in it or below it; see `find_tables`.
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
    root = labels if any(labels.rglob("CollectedData*")) else folder
    found = [
        file
        for suffix in (".h5", ".csv")
        for file in root.rglob(f"CollectedData*{suffix}")
        if "training-datasets" not in file.relative_to(root).parts
    ]
    if not found:
        raise HapteraError(f"there is no CollectedData*.csv or .h5 in {folder}")
    return sorted({file.with_suffix(""): file for file in found}.values())


def find_images(files: Sequence[str], table: Path, root: Path | None = None) -> list[Path]:
    """Where the images of a table are: below `root`, or else below the table's folder or one of those above it.

    A path that begins at the root of another machine is looked for with fewer and fewer of its first folders, down to
    the video and the file.
    """
    start = table if table.is_dir() else table.parent
    folders = [start, *start.absolute().parents[:3]] if root is None else [root]
    known: dict[str, Path | None] = {}  # by the folder that a table names, for its images lie together
    found = []
    for file in map(str, files):
        named, _, name = file.rpartition("/")
        if known.get(named) is None:
            known[named] = next((place for place in _places(file, folders) if (place / name).is_file()), None)
        found.append((known[named] or folders[0] / named) / name)
    if root is None and not found[0].is_file():
        raise HapteraError(
            f"the image {files[0]} of {table} was not found in {start} or above it; say where images are"
        )
    return found


def _places(file: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders in which an image may be."""
    pieces = PurePosixPath(file).parts[:-1]
    yield from (folder.joinpath(*pieces) for folder in folders)
    if FOREIGN.match(file):
        yield from (folder.joinpath(*pieces[cut:]) for cut in range(1, len(pieces)) for folder in folders)


def _read_csv(path: Path) -> pd.DataFrame:
    """Cell by cell, so that every number is the one that was written, whatever the version of pandas."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(file) if row)
            head = list(islice(rows, len(LEVELS)))
            levels = ANIMAL_LEVELS if any(row[0] == "individuals" for row in head) else LEVELS
            head += list(islice(rows, len(levels) - len(head)))
            index = _check_head(head, levels, path)
            # What has no coordinate of ours in the last row is neither a number nor a place.
            kept = [place for place in range(index, len(head[-1])) if head[-1][place].strip() in COORDS]
            named = [("/".join(row[:index]), _numbers(row, kept, len(head[0]), path)) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error
    columns = pd.MultiIndex.from_arrays([[row[place].strip() for place in kept] for row in head], names=levels)
    values = np.array([row for _, row in named]).reshape(-1, len(columns))
    return pd.DataFrame(values, index=[name for name, _ in named], columns=columns)


def _check_head(head: list[list[str]], levels: list[str], path: Path) -> int:
    """How many columns name the frame: one, or one for each folder of a path."""
    names = [row[0].strip() for row in head]
    for expected, found in zip(levels, [*names, "", "", ""], strict=False):
        if found != expected:
            raise HapteraError(
                f"{path} has {found!r} where the row {expected!r} was expected; the first rows of a table of "
                f"DeepLabCut are {', '.join(levels)}"
            )
    short = next((row for row in head if len(row) != len(head[0])), None)
    if short is not None:
        raise HapteraError(f"{path}: the row {short[0]} has {len(short)} cells, the first row {len(head[0])}")
    return 1 + next((k for k, cell in enumerate(head[0][1:]) if cell), 0)


def _numbers(row: list[str], kept: list[int], width: int, path: Path) -> np.ndarray:
    if len(row) != width:
        raise HapteraError(f"{path}: the row of {row[0]} has {len(row)} cells, {width} were expected")
    try:
        return np.array([float(cell) if (cell := row[place].strip()) else np.nan for place in kept])
    except ValueError as error:
        raise HapteraError(f"{path}: in the row of {row[0]}: {error}") from error


def _read_hdf(path: Path) -> pd.DataFrame:
    need_tables(path)
    check_plain(path)
    try:
        frame: Any = pd.read_hdf(path)
        levels = list(frame.columns.names)
    # What is not a table after all fails anywhere inside pandas.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error
    if levels not in (LEVELS, ANIMAL_LEVELS):
        raise HapteraError(
            f"{path} has columns with the levels {levels}; {LEVELS}, or {ANIMAL_LEVELS} for several animals, expected"
        )
    return frame


def _unpacked(frame: pd.DataFrame, path: Path, scorer: str) -> KeypointTable:
    named: list[Any] = frame.columns.to_list()
    several = frame.columns.nlevels == len(ANIMAL_LEVELS)
    columns: dict[tuple[str, str, str], np.ndarray] = {}
    for place, key in enumerate(named):
        animal, part, coord = map(str, key[1:] if several else ("", *key[1:]))
        if str(key[0]) == scorer and coord in COORDS:
            if (animal, part, coord) in columns:
                of = f" of {animal!r}" * several
                raise HapteraError(f"{path} has the column {coord!r} of the part {part!r}{of} twice; once was expected")
            columns[animal, part, coord] = frame.iloc[:, place].to_numpy()
    animals = list(dict.fromkeys(animal for animal, *_ in columns))
    parts = tuple(dict.fromkeys(part for _, part, _ in columns))
    if not columns or not len(frame):
        raise HapteraError(f"{path} has no {'frames' if columns else 'keypoints'}")
    coords = {coord: _coordinate(columns, animals, parts, coord, path) for coord in COORDS}
    keypoints = np.stack([coords["x"], coords["y"]], 3)
    keypoints[np.isnan(keypoints).any(3) | (coords["visible"] < VISIBLE)] = np.nan
    files = np.array([_file(index) for index in frame.index])
    confidence = coords["likelihood"] if any(coord == "likelihood" for *_, coord in columns) else None
    if not several:
        table = KeypointTable(keypoints[0], parts, files, scorer, None if confidence is None else confidence[0])
    else:  # one row for each animal in each frame, frame by frame
        rows = len(files) * len(animals)
        owned = {part for animal, part, _ in columns if animal != SINGLE}
        table = KeypointTable(
            keypoints.swapaxes(0, 1).reshape(rows, len(parts), 2), parts, np.repeat(files, len(animals)), scorer,
            None if confidence is None else confidence.swapaxes(0, 1).reshape(rows, len(parts)),
            np.tile(animals, len(files)), unique=tuple(part for part in parts if part not in owned),
        )  # fmt: skip
        for animal in (animal for animal, own in zip(animals, keypoints, strict=True) if np.isnan(own).all()):
            log.warning("%s: the individual %r has no keypoint in any frame", path, animal)
    if table.confidence is not None:
        check_likelihood(table.confidence, str(path), table.files, parts)
    return table


def _coordinate(
    columns: dict[tuple[str, str, str], np.ndarray], animals: list[str], parts: tuple[str, ...], coord: str, path: Path
) -> np.ndarray:
    """Return `(animals, frames, parts)`; NaN for a part that an animal does not have at all."""
    frames = len(next(iter(columns.values())))
    found = np.full((len(animals), frames, len(parts)), np.nan)
    used = any(name == coord for *_, name in columns)
    for place, animal in enumerate(animals):
        for number, part in enumerate(parts):
            if (values := columns.get((animal, part, coord))) is not None:
                try:
                    found[place, :, number] = values.astype(float)
                except (ValueError, TypeError) as error:
                    raise HapteraError(f"{path}: a coordinate {coord!r} is not a number: {error}") from error
            elif (used or coord in ("x", "y")) and any((animal, part, other) in columns for other in COORDS):
                raise HapteraError(
                    f"{path} has no column {coord!r} of the part {part!r}" + f" of {animal!r}" * bool(animal)
                )
    return found


def _file(index: Any) -> str:
    """The path of an image: of one cell, or of several joined; backslashes are from Windows."""
    return "/".join(map(str, index)) if isinstance(index, tuple) else str(index).replace("\\", "/")


def _together(tables: list[tuple[Path, KeypointTable]]) -> KeypointTable:
    """Join tables of the same parts, whatever their order, in which no frame, or animal in a frame, comes twice."""
    (first, table), where = tables[0], dict[tuple[str, str], Path]()
    parts = table.parts
    for path, other in tables:
        if odd := sorted(set(other.parts) ^ set(parts)):
            lacking = path if odd[0] in parts else first
            raise HapteraError(
                f"{path} has other parts than {first}: {odd[0]!r} is not in {lacking}; the same expected"
            )
        if (other.animals is None) != (table.animals is None):
            raise HapteraError(f"one of {first} and {path} is of several animals in a frame, the other of one")
        animals = [""] * len(other.files) if other.animals is None else other.animals.tolist()
        for key in zip(other.files.tolist(), animals, strict=True):
            if key in where:
                both = f"in {where[key]} and in {path}" if where[key] != path else f"in {path}"
                raise HapteraError(f"the frame {key[0]} is there twice, {both}; each was expected once")
            where[key] = path
    if len(tables) == 1:
        return table
    ordered = [(other, [other.parts.index(part) for part in parts]) for _, other in tables]
    animals_of = [other.animals for other, _ in ordered if other.animals is not None]
    return KeypointTable(
        np.concatenate([other.keypoints[:, order] for other, order in ordered]),
        parts,
        np.concatenate([other.files for other, _ in ordered]),
        ",".join(dict.fromkeys(other.scorer for other, _ in ordered)),
        animals=np.concatenate(animals_of) if animals_of else None,
        unique=table.unique,
    )
