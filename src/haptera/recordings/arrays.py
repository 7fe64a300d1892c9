"""Arrays by name, out of npz, npy, mat, h5 and csv, and the recording that some of them make.

Arrays are read when they are asked for, so a large file with one needed array costs that array. A CSV has a header with
the names of its columns. A DeepLabCut table (three levels of columns: scorer, bodyparts, coords), CSV or HDF5, becomes
`tracks` (frames, 2 x parts), a signal for embeddings of behaviour alone, and each part (frames, 2), a label. Where the
likelihood is low, or nothing was found, the place is interpolated in time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from math import prod
from pathlib import Path
from zlib import error as ZlibError

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.files.atomic import check_expansion, check_plain_file
from haptera.files.deeplabcut import KEY, read_deeplabcut
from haptera.files.hdf5 import open_hdf5, values_of
from haptera.files.npz import map_npy, member, open_npz
from haptera.recordings.recording import Recording

SIGNALS = ("signal", "spikes", "neural", "counts", "tracks", "X")
TIMES = ("times", "time", "timestamps", "t")

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
    elif ending == ".csv":
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


def recording_of(
    arrays: Arrays, signal: str | None, labels: Sequence[str], trials: str | None, *, source: str
) -> Recording:
    """The recording that the named arrays make."""
    wanted = dict(map(split_kind, labels))
    found = {name: (_squeeze(_find(arrays, name, "label", source)), kind) for name, kind in wanted.items()}
    trial = None if trials is None else _squeeze(_find(arrays, trials, "array", source))
    clock = next((name for name in TIMES if name in arrays and name not in wanted), None)
    taken = {*wanted, *([trials] if trials else []), *([clock] if clock else [])}
    name, values = _signal(arrays, signal, taken, source)
    if values.ndim != 2:
        raise HapteraError(f"{source}: signal {name!r} has the shape {values.shape}; (samples, channels) was expected")
    for label, (each, _) in found.items():
        if each.dtype.kind not in "fiubUSO":
            raise HapteraError(f"{source}: label {label!r} holds {each.dtype}; numbers or text were expected")
        if not len(each):
            raise HapteraError(f"{source}: label {label!r} has no samples, signal {name!r} has {len(values):,}")
    for label, (each, _) in found.items():
        if len(each) != len(values) and len(each) == values.shape[1]:
            raise HapteraError(
                f"{source}: signal {name!r} is {values.shape} and label {label!r} has {len(each):,} samples; "
                "it looks transposed, (samples, channels) was expected"
            )
    times = None
    if clock is not None and len(stamps := _squeeze(arrays[clock]())) == len(values) and stamps.ndim == 1:
        times = stamps.astype(float)
    return Recording.from_arrays({name: values}, found, trials=trial, times=times, source=source)


def _find(arrays: Arrays, name: str, what: str, source: str) -> np.ndarray:
    if name not in arrays:
        raise unknown(f"{what} in {source}", name, arrays)
    return arrays[name]()


def _signal(arrays: Arrays, name: str | None, taken: set[str], source: str) -> tuple[str, np.ndarray]:
    """The signal's name and its values `(samples, channels)`."""
    if name is not None and name in arrays:
        values = arrays[name]()
        return name, values[:, None] if values.ndim == 1 else values
    free = [key for key in arrays if key not in taken]
    if name is not None:
        columns = [key for key in free if fnmatchcase(key, name)]
        if not columns:
            raise unknown(f"signal in {source}", name, arrays)
        return name, _columns(arrays, columns, source)
    usual = [key for key in SIGNALS if key in free]
    if len(usual) == 1:
        return _signal(arrays, usual[0], taken, source)
    loaded = {key: arrays[key]() for key in free}
    matrices = [key for key, values in loaded.items() if values.ndim == 2 and values.dtype.kind in "fiub"]
    if len(matrices) == 1:
        return matrices[0], loaded[matrices[0]]
    numbers = [key for key, values in loaded.items() if values.ndim == 1 and values.dtype.kind in "fiub"]
    if not matrices and len(numbers) > 1 and len({len(loaded[key]) for key in numbers}) == 1:
        return "signal", np.column_stack([loaded[key] for key in numbers])
    listed = ", ".join(f"{key} {values.shape}" for key, values in loaded.items()) or "nothing else"
    raise HapteraError(f"{source} has {listed}; name the signal, (samples, channels)")


def _columns(arrays: Arrays, names: Sequence[str], source: str) -> np.ndarray:
    columns = [arrays[name]() for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1 or column.dtype.kind not in "fiub" or len(column) != len(columns[0]):
            raise HapteraError(f"{source}: {name!r} is {column.dtype} {column.shape}; a column of numbers was expected")
    return np.column_stack(columns)


def _squeeze(values: np.ndarray) -> np.ndarray:
    """MATLAB has no vectors, only matrices with one row or column; a single value is an array of one."""
    return values.ravel() if values.ndim == 0 or (values.ndim == 2 and 1 in values.shape) else values


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


def _datasets(path: Path, file: Mapping, transposed: bool) -> dict[str, Callable[[], np.ndarray]]:
    import h5py

    found: dict[str, Callable[[], np.ndarray]] = {}

    def read(data: h5py.Dataset, name: str) -> np.ndarray:
        values = values_of(data, f"{path}: {name!r}", "fiubOS")
        return values.T if transposed else values

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#") and item.ndim:
            found[name] = partial(read, item, name)

    file.visititems(visit)  # type: ignore[attr-defined]
    return found


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
        raise HapteraError(f"cannot read {path}: {error}") from error
    if pd.to_numeric(frame.columns.to_series(), errors="coerce").notna().all():
        raise HapteraError(f"{path} begins with numbers; a first row with the names of the columns was expected")
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
    parts = {part: _fill(keypoints[:, place], part, path) for place, part in enumerate(table.parts)}
    return {"tracks": np.concatenate(list(parts.values()), axis=1)} | parts


def _fill(place: np.ndarray, part: str, path: Path) -> np.ndarray:
    seen = np.isfinite(place).all(1)
    if not seen.any():
        raise HapteraError(f"{path}: body part {part!r} was never seen with a likelihood of {LIKELY:g} or more")
    frames = np.arange(len(place))
    return np.column_stack([np.interp(frames, frames[seen], column[seen]) for column in place.T])
