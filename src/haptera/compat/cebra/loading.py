"""`load_data` and `load_deeplabcut` by their names there: one array out of a file, without running a pickle.

A table whose first row is text has a header, which is not read as data. Where a file has several arrays and none is
named, the first is taken, as there, and a warning says which.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.files.atomic import check_plain_file
from haptera.recordings.arrays import LIKELY, open_arrays, read_tracks

log = logging.getLogger("haptera")

TABLES = (".csv", ".xlsx")
ARRAYS = (".npy", ".npz", ".mat", ".h5", ".hdf5")


def load_data(file: str | Path, key: Any = None, columns: Sequence[str] | None = None) -> np.ndarray:
    """Return an array of a file.

    Args:
        file: `.npy`, `.npz`, `.mat`, `.h5`, `.csv` or `.xlsx`.
        key: the name of the array, or of the sheet.
        columns: of a table with names, which to take.
    """
    path = Path(file)
    if not path.is_file():
        raise HapteraError(f"there is no file {path}")
    ending = path.suffix.lower()
    if ending in TABLES:
        return _table(path, key, columns)
    if ending not in ARRAYS:
        raise HapteraError(
            f"{path.name} ends in {ending!r}; one of {', '.join((*ARRAYS, *TABLES))} was expected: pickles run as "
            "programs when they are read, and haptera reads none"
        )
    if columns is not None:
        raise HapteraError(f"columns are for tables with names; {path.name} holds arrays, name one by key")
    with open_arrays(path) as arrays:
        if key is None and len(arrays) > 1:
            log.warning("%s has %s; the first is taken, name another by key", path.name, ", ".join(arrays))
        name = next(iter(arrays), None) if key is None or ending == ".npy" else str(key)
        if name is None or name not in arrays:
            raise unknown(f"array in {path}", str(key), arrays)
        return np.asarray(arrays[name]())


def load_deeplabcut(
    filepath: str | Path, keypoints: Sequence[str] | None = None, pcutoff: float = LIKELY
) -> np.ndarray:
    """Return places `(frames, 2 x keypoints)` of a DeepLabCut table; unlikely ones are interpolated in time."""
    tracks = read_tracks(Path(filepath), pcutoff)
    if keypoints is None:
        return tracks["tracks"]
    for name in keypoints:
        if name not in tracks:
            raise unknown(f"keypoint of {filepath}", name, set(tracks) - {"tracks"})
    return np.concatenate([tracks[name] for name in keypoints], axis=1)


def _table(path: Path, key: Any, columns: Sequence[str] | None) -> np.ndarray:
    check_plain_file(path)

    def read(header: int | None) -> pd.DataFrame:
        if path.suffix.lower() == ".csv":
            return pd.read_csv(path, header=header)
        return pd.read_excel(path, header=header, sheet_name=0 if key is None else key)

    try:
        first = read(None).head(1)
        named = pd.to_numeric(first.iloc[0], errors="coerce").isna().any() and first.iloc[0].notna().all()
        frame = read(0 if named else None)
        if frame.shape[1] > 1 and frame.iloc[0].tolist() == list(range(frame.shape[1])):
            log.warning("%s begins with 0, 1, 2, ..., as pandas names columns; they are read as data", path.name)
    except (OSError, ValueError, LookupError) as error:
        raise HapteraError(f"cannot read {path}: {error}") from error
    if columns is not None:
        for name in columns:
            if name not in frame:
                raise unknown(f"column of {path}", name, map(str, frame.columns))
        frame = frame[list(columns)]
    return frame.to_numpy()
