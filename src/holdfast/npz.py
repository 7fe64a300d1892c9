"""Reading `.npz` files: plain arrays only, never a pickle, and every failure names the file."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from holdfast.errors import HoldfastError


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Every array of a file."""
    with open_npz(path) as file:
        return {key: member(file, key, path) for key in file.files}


def open_npz(path: Path) -> np.lib.npyio.NpzFile:
    """The file, its arrays not read yet; use it as a context manager."""
    try:
        if not zipfile.is_zipfile(path):
            path.stat()
            raise HoldfastError(f"{path} is no .npz file (a zip of arrays, as numpy.savez writes it)")
        file: np.lib.npyio.NpzFile = np.load(path, allow_pickle=False)
    except OSError as error:
        raise HoldfastError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise HoldfastError(f"cannot read {path}: {error}") from error
    return file


def member(file: np.lib.npyio.NpzFile, key: str, path: Path) -> np.ndarray:
    """One array of an open file."""
    try:
        array = file[key]
    except KeyError as error:
        raise HoldfastError(f"{path} has no array {key!r} any more; it was changed after it was opened") from error
    except ValueError as error:
        why = "it holds Python objects, which only a pickle can" if "allow_pickle" in str(error) else str(error)
        raise HoldfastError(f"{path}: cannot read the array {key!r}: {why}") from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        raise HoldfastError(f"{path}: cannot read the array {key!r}, the file is damaged: {error}") from error
    if not isinstance(array, np.ndarray):
        raise HoldfastError(f"{path}: {key!r} is no array")
    return array
