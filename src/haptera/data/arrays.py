"""Images in arrays: in memory, or in an `.npz` file.

Labels, ids and names of classes are each checked before they are believed. An `.npz` file holds `images`, and if there
are any `labels`, `ids` and `classes` (or `class_names`); `test_images` and `test_labels`, beside a training part that
is left alone, will do as well. Only plain arrays are read, never a pickle. Pickled itself, data from a file leaves its
pixels behind and reads them again when they are needed.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.data.base import Data
from haptera.data.pixels import channels_first, check_channels, check_values, read_layout, to_images
from haptera.errors import HapteraError, hint, nearest
from haptera.files.fingerprint import fingerprint, of_file
from haptera.files.npz import member, open_npz

log = logging.getLogger("haptera")

Array = np.ndarray | torch.Tensor | Sequence[int]
NAMES = ("classes", "class_names", "label_names")
"""What people call the names of classes."""


class ArrayData(Data):
    """Images in an array, held as they came and not copied; do not change it afterwards.

    Args:
        images: `(N, H, W)`, `(N, H, W, 1 or 3)` or `(N, 1 or 3, H, W)`; uint8, or floats in [0, 1].
        labels: `(N,)` integers, or None.
        name: what it is called in messages.
        classes: the names of the classes, or None.
        ids: `(N,)`, the number of each sample in its source; by default 0 to N - 1.
        channels: 3 repeats grey as colour, 1 turns colour into grey, None keeps what there is.

    >>> data = ArrayData(np.zeros((5, 8, 8), np.uint8), [0, 1, 0, 1, 1], channels=3)
    >>> data.images(np.array([3, 4])).shape
    torch.Size([2, 3, 8, 8])
    """

    def __init__(
        self,
        images: np.ndarray | torch.Tensor,
        labels: Array | None = None,
        name: str = "array",
        classes: Sequence[str] | np.ndarray | None = None,
        *,
        ids: Array | None = None,
        channels: int | None = None,
    ) -> None:
        check_channels(channels)
        pixels = _as_array(images)
        self._layout = read_layout(pixels.shape, name)
        check_values(pixels, name)
        samples = len(pixels)
        self.name = name
        self.targets = None if labels is None else read_labels(_as_array(labels), samples, name)
        self.names = None if classes is None else read_names(np.asarray(classes), self.targets, name)
        self.rows = np.arange(samples) if ids is None else read_ids(_as_array(ids), samples, name)
        self._channels = channels or self._layout.channels
        self._pixels: np.ndarray | None = pixels
        self._fingerprint: str | None = None

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return to_images(self._array()[np.asarray(positions, np.int64)], self._layout, self._channels)

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return the same as bytes; None where the array holds floats, or a subclass makes images in its own way."""
        array = self._array()
        if array.dtype != np.uint8 or type(self).images is not ArrayData.images:
            return None
        return channels_first(array[np.asarray(positions, np.int64)], self._layout, self._channels)

    def fingerprint(self) -> str:
        """Return the fingerprint of the bytes, taken at the first call."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint("array", self._array(), self.targets, self.names, self.rows, self._channels)
        return self._fingerprint

    def _array(self) -> np.ndarray:
        assert self._pixels is not None
        return self._pixels


def _as_array(values: Array) -> np.ndarray:
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()  # NumPy has no bfloat16


def read_labels(labels: np.ndarray, samples: int, where: str) -> np.ndarray:
    """Return `(samples,)` int64, no negatives."""
    return _whole_numbers("labels", labels, samples, where)


def read_ids(ids: np.ndarray, samples: int, where: str) -> np.ndarray:
    """Return `(samples,)` int64, no negatives, none twice: the randomness of shifts depends on them."""
    numbers = _whole_numbers("ids", ids, samples, where)
    order = np.argsort(numbers, kind="stable")
    twins = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(twins):
        one, other = order[twins[0]], order[twins[0] + 1]
        raise HapteraError(f"{where}: ids of rows {one} and {other} are both {numbers[one]}; each may occur once")
    return numbers


def read_names(names: np.ndarray, targets: np.ndarray | None, where: str) -> tuple[str, ...]:
    """The names of the classes, one for each label, none twice."""
    if names.dtype.kind == "S":
        names = np.char.decode(names, "utf-8", "replace")
    if names.dtype.kind != "U" or names.ndim != 1:
        raise HapteraError(f"{where}: classes are {names.dtype} of shape {names.shape}; a list of names was expected")
    texts = tuple(str(name) for name in names)
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise HapteraError(f"{where}: classes names {twice!r} twice")
    if targets is not None and targets.max() >= len(texts):
        row = int(np.argmax(targets >= len(texts)))
        raise HapteraError(
            f"{where}: the label in row {row} is {targets[row]}, but classes names only {len(texts)}, "
            f"0 to {len(texts) - 1}"
        )
    return texts


def _whole_numbers(what: str, array: np.ndarray, samples: int, where: str) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise HapteraError(f"{where}: {what} are {array.dtype}; integers were expected, such as int64")
    if array.ndim != 1:
        raise HapteraError(
            f"{where}: {what} have shape {array.shape}; one number per image, ({samples},), was expected"
        )
    if len(array) != samples:
        raise HapteraError(f"{where}: there are {len(array)} {what} for {samples} images")
    wrong = (array < 0) | (array > np.iinfo(np.int64).max)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise HapteraError(f"{where}: {what} must be 0 or more (int64), found {array[row]} in row {row}")
    return array.astype(np.int64)


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
