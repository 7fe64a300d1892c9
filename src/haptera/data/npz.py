"""Images in an `.npz` file: `images`, and if there are any `labels`, `ids` and `classes` (or `class_names`).

`test_images` and `test_labels`, beside a training part that is left alone, will do as well. Only plain arrays
are read, never a pickle. Pickled itself, the object leaves its pixels behind and reads them again at need.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from haptera.data.arrays import ArrayData
from haptera.errors import HapteraError, hint, nearest
from haptera.files.fingerprint import fingerprint, of_file
from haptera.files.npz import member, open_npz

log = logging.getLogger("haptera")

NAMES = ("classes", "class_names", "label_names")
"""What people call the names of classes."""


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
            with open_npz(self._path) as file:
                self._pixels = member(file, self._key, self._path)
        return self._pixels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pixels": None}


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """The key of the images, and the arguments of ArrayData."""
    with open_npz(path) as file:
        prefix = next((prefix for prefix in ("", "test_") if f"{prefix}images" in file.files), None)
        if prefix is None:
            raise HapteraError(
                f"{path} has no array 'images' (nor 'test_images');{hint('images', file.files)} "
                f"found: {', '.join(sorted(file.files)) or 'nothing'}"
            )
        keys = {
            "images": f"{prefix}images",
            "labels": f"{prefix}labels",
            "ids": f"{prefix}ids",
            "classes": next((key for key in NAMES if key in file.files), NAMES[0]),
        }
        content = {name: member(file, key, path) for name, key in keys.items() if key in file.files}
        left = set(file.files) - set(keys.values())
        for key in set(keys.values()) - set(file.files):
            if near := nearest(key, left, cutoff=0.8):
                log.warning("%s: the array %r is not read; did you mean %r?", path, near, key)
    return keys["images"], content
