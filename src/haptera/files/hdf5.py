"""HDF5 files that are safe to read: they reach no other file, and their pickles hold plain values only.

h5py, which the extra `recordings` brings, opens them. A file may point at others: by a link, by storage outside of it,
by a virtual data set. None of these is followed, for whoever sends a file would otherwise choose which files of the
reader's are read with it. A data set that says it is far larger than its file could hold is refused before memory is
taken for it. PyTables writes what HDF5 has no type for, such as a list of column names, as a pickle, and reading a
pickle may run any code that its author wished for; neither PyTables nor pandas has a switch for it. So every pickle of
a file is read here first, by an unpickler that knows no module: it makes numbers, texts, lists, tuples and
dictionaries, and has nothing that it could call.
Cost: a pass over the names in the file; for PyTables also over attributes, and over arrays whose rows differ in length,
which a table of numbers does not have. Every failure names the file.
"""

import io
import logging
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from haptera.errors import HapteraError
from haptera.files.atomic import check_expansion, check_plain_file

ENCODINGS = ("ASCII", "latin1", "bytes")
"""PyTables tries these one after another, and what fails in one may get further in the next."""
log = logging.getLogger("haptera")
UNREADABLE = (OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError, OverflowError, SystemError)
"""What h5py raises for a file with flipped bytes, wherever it comes upon them."""


class _NamedError(Exception):
    """A pickle asked for something of a module."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _NamedError(f"{module}.{name}")


def check_plain(path: Path) -> None:
    """Refuse an HDF5 file with a pickle that names a function or a class."""
    import h5py

    def check(name: str, item: Any) -> None:
        # More than PyTables takes for pickles, for what it takes is its own affair; other text is not a pickle at all.
        for key in item.attrs:
            for value in np.ravel(item.attrs[key]).tolist():
                _check_pickle(value, f"{path}: attribute {key!r} of {name!r}")
        if isinstance(item, h5py.Dataset):
            check_size(item, f"{path}: {name!r}")
        elif h5py.h5o.get_info(item.id).rc > 1:  # it may be inside itself, and PyTables would walk in circles
            raise HapteraError(f"{path}: the group {name!r} is in several places of the file; one was expected")
        if isinstance(item, h5py.Dataset) and h5py.check_vlen_dtype(item.dtype) is not None:
            for row in item[()].ravel():
                _check_pickle(np.asarray(row).tobytes(), f"{path}: {name!r}")

    with open_hdf5(path) as file:
        check("/", file)
        file.visititems(check)


def _check_pickle(value: object, where: str) -> None:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")  # as h5py decoded it
    if not isinstance(value, bytes):
        return
    for encoding in ENCODINGS:
        try:
            _Plain(io.BytesIO(value), encoding=encoding).load()
        except _NamedError as error:
            raise HapteraError(
                f"{where} is a pickle that asks for {error}, and could run code; save the table as CSV"
            ) from error
        except Exception:
            continue  # no pickle


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file; an error inside the block that is not ours is one of reading, and names the file."""
    try:
        import h5py
    except ImportError as error:
        raise HapteraError(f"{path} is an HDF5 file, which needs h5py: pip install 'haptera[recordings]'") from error
    check_plain_file(path)
    try:
        with h5py.File(path, "r") as file:
            _check_inside(file, path)
            yield file
    except HapteraError:
        raise
    except UNREADABLE as error:
        log.debug("reading %s failed", path, exc_info=True)
        raise HapteraError(f"cannot read {path}: it is not an HDF5 file, or damaged ({error})") from error


def values_of(data: Any, what: str, kinds: str = "fiub") -> np.ndarray:
    """Read a data set whole.

    Args:
        data: what h5py found under a name.
        what: what errors call it.
        kinds: of types that are expected; by default numbers, `O` and `S` for text.
    """
    import h5py

    if not isinstance(data, h5py.Dataset):
        raise HapteraError(f"{what} is a group; an array was expected")
    if data.dtype.kind not in kinds:
        found = "text" if data.dtype.kind in "OSU" else str(data.dtype)
        raise HapteraError(f"{what} holds {found}; {'numbers' if kinds == 'fiub' else 'numbers or text'} expected")
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
        raise HapteraError(f"{path}: {outside[0]}")
