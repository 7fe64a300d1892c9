"""HDF5 files of PyTables that are safe to read: their pickles hold plain values, and nothing that can be called.

PyTables writes what HDF5 has no type for, such as a list of column names, as a pickle, and reading a pickle may run any
code that its author wished for; neither PyTables nor pandas has a switch for it. So every pickle of a file is read here
first, by an unpickler that knows no module: it makes numbers, texts, lists, tuples and dictionaries, and has nothing
that it could call.
Cost: a pass over the attributes, and over arrays whose rows differ in length, which a table of numbers does not have.
"""

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.hdf5_files import check_size, open_hdf5

ENCODINGS = ("ASCII", "latin1", "bytes")
"""PyTables tries these one after another, and what fails in one may get further in the next."""


class _NamedError(Exception):
    """A pickle asked for something of a module."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _NamedError(f"{module}.{name}")


def check_plain(path: Path) -> None:
    """Refuse an HDF5 file with a pickle that names a function or a class."""
    import h5py

    def check(name: str, item: Any) -> None:
        # More than PyTables takes for pickles, for what it takes is its own affair; other text is no pickle at all.
        for key in item.attrs:
            for value in np.ravel(item.attrs[key]).tolist():
                _check_pickle(value, f"{path}: attribute {key!r} of {name!r}")
        if isinstance(item, h5py.Dataset):
            check_size(item, f"{path}: {name!r}")
        elif h5py.h5o.get_info(item.id).rc > 1:  # it may be inside itself, and PyTables would walk in circles
            raise HoldfastError(f"{path}: the group {name!r} is in several places of the file; one was expected")
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
            raise HoldfastError(
                f"{where} is a pickle that asks for {error}, and could run code; save the table as CSV"
            ) from error
        except Exception:
            continue  # no pickle
