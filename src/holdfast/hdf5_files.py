"""HDF5 files, opened with h5py, which the extra `recordings` brings; every failure names the file.

A file may point at others: by a link, by storage outside of it, by a virtual data set. None of these is followed, for
whoever sends a file would otherwise choose which files of the reader's are read with it. A data set that says it is far
larger than its file could hold is refused before memory is taken for it.
Cost: a pass over the names in the file.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.files import check_expansion, check_plain_file

log = logging.getLogger("holdfast")

UNREADABLE = (OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError, OverflowError, SystemError)
"""What h5py raises for a file with flipped bytes, wherever it comes upon them."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file; an error inside the block that is not ours is one of reading, and names the file."""
    try:
        import h5py
    except ImportError as error:
        raise HoldfastError(f"{path} is an HDF5 file, which needs h5py: pip install 'holdfast[recordings]'") from error
    check_plain_file(path)
    try:
        with h5py.File(path, "r") as file:
            _check_inside(file, path)
            yield file
    except HoldfastError:
        raise
    except UNREADABLE as error:
        log.debug("reading %s failed", path, exc_info=True)
        raise HoldfastError(f"cannot read {path}: it is not an HDF5 file, or damaged ({error})") from error


def values_of(data: Any, what: str, kinds: str = "fiub") -> np.ndarray:
    """Read a data set whole.

    Args:
        data: what h5py found under a name.
        what: what errors call it.
        kinds: of types that are expected; by default numbers, `O` and `S` for text.
    """
    import h5py

    if not isinstance(data, h5py.Dataset):
        raise HoldfastError(f"{what} is a group; an array was expected")
    if data.dtype.kind not in kinds:
        found = "text" if data.dtype.kind in "OSU" else str(data.dtype)
        raise HoldfastError(f"{what} holds {found}; {'numbers' if kinds == 'fiub' else 'numbers or text'} expected")
    check_size(data, what)
    return np.asarray(data.asstr(errors="replace")[()] if h5py.check_string_dtype(data.dtype) else data[()])


def check_size(data: Any, what: str) -> None:
    """Refuse a data set that says it is larger than its file could hold."""
    check_expansion(int(data.nbytes), Path(data.file.filename).stat().st_size, what)


def attribute(item: Any, key: str, default: Any = None) -> Any:
    """Return an attribute: text as text, a number as a number, in a list of one or not."""
    value = item.attrs.get(key, default)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _check_inside(file: Any, path: Path) -> None:
    """Refuse what points at other files."""
    import h5py

    outside: list[str] = []  # not raised at once: HDF5 does not hand on exceptions in the middle of a walk

    def check_link(name: str, link: object) -> None:
        if isinstance(link, h5py.ExternalLink):
            outside.append(f"{name!r} is a link into another file ({link.filename}), which is not read")

    def check_storage(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            outside.append(f"{name!r} keeps its values in other files, which are not read")

    file.visititems_links(check_link)
    file.visititems(check_storage)
    if outside:
        raise HoldfastError(f"{path}: {outside[0]}")
