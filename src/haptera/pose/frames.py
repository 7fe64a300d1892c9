"""Frames: images of one size, in an array or in files that are read when they are needed."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from PIL import Image

from haptera.data.folder import THREADS
from haptera.data.pixels import Layout, check_values, decode, header_size, read_layout, to_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint


class Frames(Protocol):
    """What a pose data set reads.

    Attributes:
        height: in pixels.
        width: in pixels.
        factors: `(frames, 2)`, by what x and y of the source were multiplied.
    """

    height: int
    width: int
    factors: np.ndarray

    def read(self, positions: np.ndarray) -> torch.Tensor:
        """Return images `(len(positions), 3, height, width)`, float32 in [0, 1]."""

    def fingerprint(self) -> str:
        """Return what changes when any image does."""


class ArrayFrames:
    """Images in one array `(frames, height, width, 3)` or in any other layout of `ArrayData`, not copied."""

    def __init__(self, images: np.ndarray, name: str) -> None:
        self._layout = read_layout(images.shape, name)
        check_values(images, name)
        self._images = images
        self.height, self.width = self._layout.height, self._layout.width
        self.factors = np.ones((len(images), 2))

    def read(self, positions: np.ndarray) -> torch.Tensor:
        """Return some images, as colour."""
        return to_images(self._images[positions], self._layout, 3)

    def fingerprint(self) -> str:
        """Return the fingerprint of the bytes."""
        return fingerprint("frames", self._images)


class FileFrames:
    """Images in files; of one size, or each made as large as fits into `size`, with black to the right and below."""

    def __init__(self, paths: Sequence[Path], size: tuple[int, int] | None) -> None:
        self._paths = list(paths)
        missing = [path for path in self._paths if not path.is_file()]
        if missing:
            raise HapteraError(f"{len(missing)} of {len(self._paths)} images are not there, the first is {missing[0]}")
        sizes = np.array([header_size(path) for path in self._paths])
        if size is None:
            other = np.flatnonzero((sizes != sizes[0]).any(1))
            if len(other):
                raise HapteraError(
                    f"{self._paths[other[0]]} is {_text(sizes[other[0]])} and {self._paths[0]} is {_text(sizes[0])} "
                    "(width x height); give size=(height, width), --size on the command line, to bring images to one"
                )
        self.height, self.width = (int(side) for side in (sizes[0] if size is None else size))
        if min(self.height, self.width) < 1:
            raise HapteraError(f"size is {size}; a height and a width of at least 1 were expected")
        fit = np.minimum(self.height / sizes[:, 0], self.width / sizes[:, 1])
        self._shapes = np.maximum(np.rint(sizes * fit[:, None]).astype(int), 1)
        self.factors = (self._shapes / sizes)[:, ::-1]

    def read(self, positions: np.ndarray) -> torch.Tensor:
        """Return some images, as colour."""
        pixels = np.zeros((len(positions), self.height, self.width, 3), np.uint8)
        with ThreadPoolExecutor(THREADS) as pool:
            for row, image in enumerate(pool.map(self._one, np.asarray(positions).tolist())):
                pixels[row, : image.shape[0], : image.shape[1]] = image
        return to_images(pixels, Layout("NHWC", 3, self.height, self.width), 3)

    def _one(self, position: int) -> np.ndarray:
        image = decode(self._paths[position], 3, None)
        height, width = self._shapes[position]
        if image.shape[:2] == (height, width):
            return image
        return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's path, size and time of change."""
        stats = [path.stat() for path in self._paths]
        found = [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in zip(self._paths, stats, strict=True)]
        return fingerprint("frames", found, self.height, self.width)


def _text(size: np.ndarray) -> str:
    return f"{size[1]} x {size[0]}"
