"""HDF5 files, opened with h5py, which the extra `recordings` brings."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """The open file; an error names it, or says what to install."""
    try:
        import h5py
    except ImportError as error:
        raise HoldfastError(f"{path} is an HDF5 file, which needs h5py: pip install 'holdfast[recordings]'") from error
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise HoldfastError(f"cannot read {path}: it is no HDF5 file, or damaged ({error})") from error
    with file:
        yield file
