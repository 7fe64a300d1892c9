"""Arrays by name, out of npz, npy, mat, h5, csv, parquet and xlsx.

Arrays are read when they are asked for, so a large file with one needed array costs that array. A CSV has a header with
the names of its columns, and so has the first sheet of an .xlsx file. A MATLAB cell is an array of objects, an array
each. A DeepLabCut table (three levels of columns: scorer, bodyparts, coords), CSV or HDF5, becomes
`tracks` (frames, 2 x parts), a signal for embeddings of behaviour alone, and each part (frames, 2), a label. Where the
likelihood is low, or nothing was found, the place is interpolated in time.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.extras import import_extra
from haptera.files.atomic import check_expansion, check_plain_file
from haptera.files.deeplabcut import KEY, read_deeplabcut
from haptera.files.hdf5 import open_hdf5, values_of
from haptera.files.npz import map_npy, member, open_npz
from haptera.recordings.cells import as_cells

TABLES = (".csv", ".parquet", ".xlsx")
TIMES = ("times", "time", "timestamps", "t")
ROWS = 1000
"""Rows of a CSV in which a fraction is looked for; in the first one, all numbers may be whole."""
FRACTION = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)

MAT_ERRORS = (OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError, ZlibError)
"""What SciPy raises for a MATLAB file with flipped bytes."""

Arrays = Mapping[str, Callable[[], np.ndarray]]
LIKELY = 0.6
"""DeepLabCut's own default for a part that counts as seen."""


def split_kind(label: str) -> tuple[str, str | None]:
    """A label and its kind, where one is said.

    >>> split_kind("heading:angle"), split_kind("heading")
    (('heading', 'angle'), ('heading', None))
    """
    name, colon, kind = label.rpartition(":")
    return (name, kind) if colon else (label, None)


@contextmanager
def open_arrays(path: Path) -> Iterator[Arrays]:
    """Names of a file's arrays, each with what reads it; files with one array without a name call it `signal`."""
    ending = path.suffix.lower()
    if ending == ".npz":
        with open_npz(path) as file:
            yield {key: partial(member, file, key, path) for key in file.files}
    elif ending == ".npy":
        yield {"signal": partial(map_npy, path)}
    elif ending in TABLES:
        yield {name: partial(np.asarray, column) for name, column in read_columns(path).items()}
    elif ending == ".mat" and not _is_hdf5(path):
        yield {name: partial(np.asarray, array) for name, array in _mat(path).items()}
    else:
        with open_hdf5(path) as file:
            is_table = KEY in file
            if not is_table:
                # MATLAB stores matrices column by column, so that its HDF5 files show them transposed.
                yield _datasets(path, file, transposed=ending == ".mat")
        if is_table:
            yield {name: partial(np.asarray, column) for name, column in read_tracks(path).items()}


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:  # the format's signature stands after MATLAB's own header of 512 bytes
        return any(file.seek(at) == at and file.read(8) == b"\x89HDF\r\n\x1a\n" for at in (0, 512))


def _mat(path: Path) -> dict[str, np.ndarray]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError, whosmat

    size = check_plain_file(path)
    try:
        for name, shape, _ in whosmat(path):
            check_expansion(prod(shape), size, f"{path}: {name!r}")
        content = loadmat(path, simplify_cells=True)
    except HapteraError:
        raise
    except (MatReadError, *MAT_ERRORS) as error:
        raise HapteraError(f"cannot read {path}: it is not a MATLAB file, or damaged ({error})") from error
    return dict(_leaves(content))


def _leaves(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of a structure, named by their path."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}/")
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiubUS":
            yield f"{prefix}{key}", value
        elif not key.startswith("__") and (cells := as_cells(value)) is not None:
            yield f"{prefix}{key}", cells


def _datasets(path: Path, file: Mapping, transposed: bool) -> dict[str, Callable[[], np.ndarray]]:
    import h5py

    found: dict[str, Callable[[], np.ndarray]] = {}

    def read(data: h5py.Dataset, name: str) -> np.ndarray:
        if h5py.check_ref_dtype(data.dtype) is not None:
            return _cells_of(path, file, data, name)
        values = values_of(data, f"{path}: {name!r}", "fiubOS")
        return values.T if transposed else values

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#") and item.ndim:
            found[name] = partial(read, item, name)

    file.visititems(visit)  # type: ignore[attr-defined]
    return found


def _cells_of(path: Path, file: Mapping, data: Any, name: str) -> np.ndarray:
    """Return the arrays that a MATLAB cell of an HDF5 file refers to; an empty one says so by an attribute."""
    parts = []
    for reference in np.ravel(data[()]):
        inner = file[reference] if reference else None
        if inner is None or "MATLAB_empty" in inner.attrs:
            parts.append(np.zeros(0))
        else:
            parts.append(values_of(inner, f"{path}: a cell of {name!r}").T)
    cells = as_cells(parts)
    if cells is None:
        raise HapteraError(f"{path}: the cell {name!r} does not hold arrays of numbers")
    return cells


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Columns by name; for a DeepLabCut table, `tracks` and the body parts."""
    check_plain_file(path)
    try:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig") as file:
                header, *rows = list(islice(file, ROWS)) or [""]
            if header.split(",")[0].strip().strip('"').lower() == "scorer":
                return read_tracks(path)
            frame = pd.read_csv(path, **_dialect(header, rows))
        elif path.suffix.lower() == ".xlsx":
            import_extra("openpyxl", "recordings", f"reading {path.name}")
            frame = pd.read_excel(path, engine="openpyxl")
        else:
            frame = pd.read_parquet(path)
    except (OSError, ValueError, OverflowError, LookupError, TypeError, BadZipFile) as error:
        # pandas' and pyarrow's own errors are ValueErrors
        raise HapteraError(f"cannot read {path}: {error}") from error
    if pd.to_numeric(frame.columns.to_series(), errors="coerce").notna().all():
        raise HapteraError(f"{path} begins with numbers; a first row with the names of the columns was expected")
    return {str(name): _plain(column) for name, column in frame.items()}


def _dialect(header: str, rows: Iterable[str]) -> dict[str, Any]:
    """Return how a CSV separates columns, and writes fractions: some countries' Excel does so by `;` and `,`.

    >>> _dialect("time;x", ["0;0", "0,1;2"]), _dialect("time\\tx", ["0.1\\t2"]), _dialect("time,x", ["0.1,2"])
    ({'sep': ';', 'decimal': ','}, {'sep': '\\t'}, {})
    """
    mark = next((mark for mark in ";\t" if mark in header and "," not in header), None)
    if mark is None:
        return {}
    comma = any(FRACTION.fullmatch(cell.strip().strip('"')) for row in rows for cell in row.split(mark))
    return {"sep": mark} | ({"decimal": ","} if comma else {})


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
    if table.animals is not None:
        raise HapteraError(f"{path} has a row 'individuals': it is of several animals in a frame, one was expected")
    keypoints = table.keypoints.copy()
    if table.confidence is not None:
        keypoints[table.confidence < likely] = np.nan
    parts = {part: _fill(keypoints[:, place], part, path) for place, part in enumerate(table.parts)}
    return {"tracks": np.concatenate(list(parts.values()), axis=1)} | parts


def _fill(place: np.ndarray, part: str, path: Path) -> np.ndarray:
    seen = np.isfinite(place).all(1)
    if not seen.any():
        raise HapteraError(f"{path}: body part {part!r} was never seen with a likelihood of {LIKELY:g} or more")
    frames = np.arange(len(place))
    return np.column_stack([np.interp(frames, frames[seen], column[seen]) for column in place.T])
