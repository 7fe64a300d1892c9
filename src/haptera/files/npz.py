"""Reading `.npz` and `.npy` files: plain arrays only, never a pickle, and every failure names the file.

An array is read after its header: a shape that the file is too small for, or that no honest compression gives, is
refused before memory is taken for it.
Cost: a header is read twice.
"""

import lzma
import struct
import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from haptera.errors import HapteraError
from haptera.files.archive import BAD_HEADER, LARGEST, stored_arrays
from haptera.files.atomic import check_expansion, check_plain_file

DAMAGED = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError, IndexError, AttributeError),
)
"""What zipfile raises for archives with flipped bytes, encryption, or a compression that is not built in."""
Header = tuple[tuple[int, ...], bool, np.dtype]


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return every array of a file."""
    if check_plain_file(path) <= LARGEST:
        try:
            arrays = stored_arrays(path.read_bytes())
        except OSError as error:
            raise HapteraError(f"cannot read {path}: {error.strerror or error}") from error
        if arrays is not None:
            return arrays
    with open_npz(path) as file:
        return {key: member(file, key, path) for key in file.files}


def open_npz(path: Path) -> np.lib.npyio.NpzFile:
    """Open a file without reading its arrays yet; use it as a context manager."""
    size = check_plain_file(path)
    try:
        if not zipfile.is_zipfile(path):
            raise HapteraError(f"{path} is not an .npz file (a zip of arrays, as numpy.savez writes it)")
        file: np.lib.npyio.NpzFile = np.load(path, allow_pickle=False)
    except HapteraError:
        raise
    except DAMAGED as error:
        raise HapteraError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise HapteraError(f"{path} is not an .npz file (a zip of arrays, as numpy.savez writes it)")
        check_expansion(sum(entry.file_size for entry in _archive(file).infolist()), size, str(path))
    except HapteraError:
        if isinstance(file, np.lib.npyio.NpzFile):
            file.close()
        raise
    return file


def member(file: np.lib.npyio.NpzFile, key: str, path: Path) -> np.ndarray:
    """Return one array of an open file."""
    check_header(file, key, path)
    try:
        array = file[key]
    except KeyError as error:
        raise HapteraError(f"{path} has no array {key!r} any more; it was changed after it was opened") from error
    except DAMAGED as error:
        raise HapteraError(f"{path}: cannot read the array {key!r}, the file is damaged: {error}") from error
    if not isinstance(array, np.ndarray):
        raise HapteraError(f"{path}: {key!r} is not an array")
    return array


def check_header(file: np.lib.npyio.NpzFile, key: str, path: Path) -> Header:
    """Return shape, order and type of an array in an open file, if the file has as many bytes as they need."""
    what = f"{path}: the array {key!r}"
    archive = _archive(file)
    names = archive.namelist()
    name = f"{key}.npy" if f"{key}.npy" in names else key
    try:
        with archive.open(name) as stream:
            header = read_header(stream, what)
            return _held(header, archive.getinfo(name).file_size - stream.tell(), what)
    except KeyError as error:
        raise HapteraError(f"{path} has no array {key!r} any more; it was changed after it was opened") from error
    except HapteraError:
        raise
    except DAMAGED as error:
        raise HapteraError(f"{what} cannot be read, the file is damaged: {error}") from error


def read_header(stream: IO[bytes], what: str) -> Header:
    """Read the header of an array from the beginning of a stream: its shape, whether columns come first, its type."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, order, kind = read(stream)
    except BAD_HEADER as error:
        raise HapteraError(f"{what} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if any(side < 0 for side in shape):
        raise HapteraError(f"{what} has the shape {shape}; sides of 0 or more were expected")
    if kind.hasobject:
        raise HapteraError(f"{what} cannot be read: it holds Python objects, which only a pickle can")
    return shape, order, kind


def map_npy(path: Path) -> np.ndarray:
    """Map the array of an `.npy` file into memory, so that what is read of it is what is used."""
    size = check_plain_file(path)
    try:
        with path.open("rb") as stream:
            if stream.read(4) == b"PK\x03\x04":
                raise HapteraError(f"cannot read {path}: it is an .npz archive; one array was expected")
            stream.seek(0)
            header = read_header(stream, str(path))
            _held(header, size - stream.tell(), str(path))
        array: np.ndarray = np.load(path, mmap_mode="r" if prod(header[0]) else None, allow_pickle=False)
    except HapteraError:
        raise
    except DAMAGED as error:
        raise HapteraError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return array


def _archive(file: np.lib.npyio.NpzFile) -> zipfile.ZipFile:
    assert file.zip is not None  # it is until the file is closed
    return file.zip


def _held(header: Header, there: int, what: str) -> Header:
    """Return a header if `there` bytes follow it, which is as many as it speaks of."""
    shape, _, kind = header
    needed = max(kind.itemsize, 1) * prod(shape)  # NumPy makes one byte of an empty text
    if needed > there:
        raise HapteraError(
            f"{what} says that it is {kind} {shape}, {needed:,} bytes; {max(there, 0):,} are there, it is damaged"
        )
    return header
