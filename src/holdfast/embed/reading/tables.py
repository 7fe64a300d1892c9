"""Tables: columns of a CSV with a header, and DeepLabCut's tables of body parts over frames.

A DeepLabCut table (three levels of columns: scorer, bodyparts, coords), CSV or HDF5, becomes `tracks` (frames, 2 x
parts), a signal for embeddings of behaviour alone, and each part (frames, 2), a label. Where the likelihood is low, or
nothing was found, the place is interpolated in time.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from holdfast.deeplabcut import read_deeplabcut
from holdfast.errors import HoldfastError
from holdfast.files import check_plain_file

LIKELY = 0.6
"""DeepLabCut's own default for a part that counts as seen."""


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Columns by name; for a DeepLabCut table, `tracks` and the body parts."""
    check_plain_file(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline().split(",")[0].strip().strip('"').lower()
        if first == "scorer":
            return read_tracks(path)
        frame = pd.read_csv(path)
    except (OSError, ValueError, OverflowError) as error:  # pandas' own errors are ValueErrors
        raise HoldfastError(f"cannot read {path}: {error}") from error
    if all(_is_number(name) for name in frame.columns):
        raise HoldfastError(f"{path} begins with numbers; a first row with the names of the columns was expected")
    return {str(name): _plain(column) for name, column in frame.items()}


def _plain(column: pd.Series) -> np.ndarray:
    """Numbers, or text; as objects, text would be a pickle to NumPy. An empty cell is an empty text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy()
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy("U")


def read_tracks(path: Path, likely: float = LIKELY) -> dict[str, np.ndarray]:
    """`tracks` and the body parts of a DeepLabCut table.

    Args:
        path: of the CSV or HDF5 file.
        likely: parts less likely than this count as not seen.
    """
    table = read_deeplabcut(path)
    keypoints = table.keypoints.copy()
    if table.confidence is not None:
        keypoints[table.confidence < likely] = np.nan
    parts = {part: _filled(keypoints[:, place], part, path) for place, part in enumerate(table.parts)}
    return {"tracks": np.concatenate(list(parts.values()), axis=1)} | parts


def _filled(place: np.ndarray, part: str, path: Path) -> np.ndarray:
    seen = np.isfinite(place).all(1)
    if not seen.any():
        raise HoldfastError(f"{path}: body part {part!r} was never seen with a likelihood of {LIKELY:g} or more")
    frames = np.arange(len(place))
    return np.column_stack([np.interp(frames, frames[seen], column[seen]) for column in place.T])


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True
