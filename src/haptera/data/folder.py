"""Images in a folder: one sub-folder per class, or a flat one without labels.

Files are decoded when a batch asks for them, in a few threads that live as long as the batch: to start them
costs little beside the decoding, and nothing is left to be pickled or to hang after a fork.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path

import numpy as np
import torch

from haptera.data.base import Data
from haptera.data.decode import check_size, decode, header_size
from haptera.data.pixels import Layout, check_channels, to_images
from haptera.data.scan import Listing, list_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

THREADS = min(8, os.cpu_count() or 1)
LARGEST_BATCH = 2**31
"""Bytes of the images of one batch, in 8 bits; they take four times as much as floats."""
HEADERS = 32
"""How many files, spread evenly, have their size compared at opening; the others when they are decoded."""


class FolderData(Data):
    """Images in a folder; the orientation in EXIF is not applied.

    Args:
        root: holds `class/.../file.jpg` (or jpeg, png, in any case), or the images themselves.
        size: an image that is size x size is left alone, any other is resized (shorter side to
            `round(size / 0.875)`) and cut in the centre; None if all are of one size.
        channels: 1 for grey; 3 or None for colour.
        name: what it is called in messages; the folder's name by default.
        listing: the files, if they have been listed already.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        size: int | None = None,
        channels: int | None = None,
        name: str | None = None,
        listing: Listing | None = None,
    ) -> None:
        check_size(size)
        check_channels(channels)
        self._root = Path(root).expanduser().absolute()
        listing = listing or list_images(self._root)
        self.name = name or self._root.name
        self.targets, self.names = listing.targets, listing.names
        self.rows = np.arange(len(listing.files))
        self._files = listing.files
        self._size = size
        self._channels = channels or 3
        self._shape = (size, size) if size else self._common_size()
        self._fingerprint = fingerprint("folder", listing.digest, self._size, self._channels)

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        shape = (len(positions), *self._shape, self._channels)
        if prod(shape) > LARGEST_BATCH:
            raise HapteraError(
                f"{self._root}: {len(positions)} images of {_text(self._shape)} pixels at once do not fit into memory; "
                "give size, such as size=224, or smaller batches"
            )
        pixels = np.empty(shape, np.uint8)
        places = np.asarray(positions, np.int64).tolist()
        with ThreadPoolExecutor(THREADS) as pool:
            for row, image in enumerate(pool.map(self._read, places)):
                pixels[row] = image
        return to_images(pixels, Layout("NHWC", self._channels, *self._shape), self._channels)

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's path, size and time of change at opening, and of the settings."""
        return self._fingerprint

    def _read(self, position: int) -> np.ndarray:
        path = self._root / self._files[position]
        image = decode(path, self._channels, self._size)
        self._check(path, (image.shape[0], image.shape[1]), self._shape)
        return image

    def _common_size(self) -> tuple[int, int]:
        expected = header_size(self._root / self._files[0])
        for position in np.unique(np.linspace(0, len(self._files) - 1, HEADERS).astype(int)):
            path = self._root / self._files[position]
            self._check(path, header_size(path), expected)
        return expected

    def _check(self, path: Path, found: tuple[int, int], expected: tuple[int, int]) -> None:
        if found != expected:
            raise HapteraError(
                f"{path} is {_text(found)} and {self._root / self._files[0]} is {_text(expected)} "
                "(width x height); give size, such as size=224, to resize and crop images of different sizes"
            )


def _text(shape: tuple[int, int]) -> str:
    return f"{shape[1]} x {shape[0]}"
