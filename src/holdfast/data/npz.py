"""Images in an `.npz` file: `images`, and if there are any `labels`, `ids` and `classes` (names).

`test_images` and `test_labels`, beside a training part that is left alone, will do as well. Only plain arrays
are read, never a pickle. Pickled itself, the object leaves its pixels behind and reads them again at need.
"""

import logging
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.arrays import ArrayData
from holdfast.data.nearest import hint, nearest
from holdfast.errors import HoldfastError
from holdfast.fingerprint import fingerprint, of_file

log = logging.getLogger("holdfast")


class NpzData(ArrayData):
    """Images in an `.npz` file, in memory once they are needed.

    Args:
        path: the file.
        channels: 3 repeats grey as colour, 1 turns colour into grey, None keeps what there is.
        size: what height and width must be; arrays are not resized.
    """

    def __init__(self, path: str | Path, *, channels: int | None = None, size: int | None = None) -> None:
        self._path = Path(path).expanduser().absolute()
        self._key, content = _read(self._path)
        super().__init__(**content, name=str(path), channels=channels)
        self._layout.check_size(size, str(path))
        self.name = self._path.stem
        self._fingerprint = fingerprint("npz", of_file(self._path), self._channels)

    def _array(self) -> np.ndarray:
        if self._pixels is None:
            with _open(self._path) as file:
                self._pixels = _member(file, self._key, self._path)
        return self._pixels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pixels": None}


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """The key of the images, and the arguments of ArrayData."""
    with _open(path) as file:
        prefix = next((prefix for prefix in ("", "test_") if f"{prefix}images" in file.files), None)
        if prefix is None:
            raise HoldfastError(
                f"{path} has no array 'images' (nor 'test_images');{hint('images', file.files)} "
                f"found: {', '.join(sorted(file.files)) or 'nothing'}"
            )
        keys = {
            "images": f"{prefix}images",
            "labels": f"{prefix}labels",
            "ids": f"{prefix}ids",
            "classes": "classes",
        }
        content = {name: _member(file, key, path) for name, key in keys.items() if key in file.files}
        left = set(file.files) - set(keys.values())
        for key in set(keys.values()) - set(file.files):
            if near := nearest(key, left, cutoff=0.8):
                log.warning("%s: the array %r is not read; did you mean %r?", path, near, key)
    return keys["images"], content


def _open(path: Path) -> np.lib.npyio.NpzFile:
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


def _member(file: np.lib.npyio.NpzFile, key: str, path: Path) -> np.ndarray:
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
