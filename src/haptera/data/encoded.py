"""Images that are encoded, as JPEG, PNG and the like, wherever they are kept.

A subclass says where the bytes of each image are; this class decodes those of a batch, in a few threads that live as
long as the batch: starting them costs little beside the decoding, and nothing is left to be pickled or to hang after a
fork.
"""

import logging
import os
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Self

import numpy as np
import torch

from haptera.data.base import Data
from haptera.data.decode import Resize, decode, read_header
from haptera.data.pixels import Layout, channels_first, check_channels
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

THREADS = min(8, os.cpu_count() or 1)
LARGEST_BATCH = 2**31
"""Bytes of the images of one batch, in 8 bits; they take four times as much as floats."""
HEADERS = 32
"""How many images, spread evenly, have their size compared at opening; the others when they are decoded."""


class EncodedData(Data):
    """Encoded images; call `_prepare` when `rows` and whatever `_source` needs are there.

    Args:
        resize: how images are brought to one size; without a size they must be of one.
        channels: 1 for grey; 3 or None for colour.
    """

    _fingerprint: str
    decodes = True

    def __init__(self, resize: Resize | None = None, channels: int | None = None) -> None:
        check_channels(channels)
        self._resize = resize or Resize()
        self._channels = channels or 3
        self._shape = (0, 0)

    @abstractmethod
    def _source(self, position: int) -> Path | bytes:
        """Return the file of an image, or what is in it."""

    @abstractmethod
    def _place(self, position: int) -> str:
        """Return what an image is called in messages."""

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return self._read(positions).float().div_(255)

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return the same as bytes; None where a subclass makes images in its own way."""
        return self._read(positions) if type(self).images is EncodedData.images else None

    def _read(self, positions: np.ndarray) -> torch.Tensor:
        shape = (len(positions), *self._shape, self._channels)
        if prod(shape) > LARGEST_BATCH:
            raise HapteraError(
                f"{self.name}: {len(positions)} images of {_text(self._shape)} pixels at once do not fit into memory; "
                "give size, such as size=224, or smaller batches"
            )
        pixels = np.empty(shape, np.uint8)
        places = np.asarray(positions, np.int64).tolist()
        rows = iter(range(len(places)))  # shared: a thread takes the next one

        def fill(_: int) -> tuple[int, HapteraError] | None:
            for row in rows:
                try:
                    pixels[row] = self.decode(places[row])
                except HapteraError as error:
                    return row, error
            return None

        with ThreadPoolExecutor(THREADS) as pool:
            problems = [problem for problem in pool.map(fill, range(THREADS)) if problem]
        if problems:
            raise min(problems, key=lambda problem: problem[0])[1]
        return channels_first(pixels, Layout("NHWC", self._channels, *self._shape), self._channels)

    @property
    def crop(self) -> float | None:
        """The share of the shorter side that is kept; None where nothing is cut."""
        share = self._resize.crop
        return None if self._resize.size is None or isinstance(share, str) else share

    def with_crop(self, crop: float) -> Self:
        """Return the same images, cut in another way."""
        other = copy(self)
        other._resize = replace(self._resize, crop=crop)
        other._fingerprint = fingerprint(self._fingerprint, crop)
        return other

    def decode(self, position: int) -> np.ndarray:
        """Return one image, `(height, width, channels)`, uint8."""
        source = self._source(position)
        where = str(source) if isinstance(source, Path) else self._place(position)
        image = decode(source, self._channels, self._resize, where)
        self._check(position, (image.shape[0], image.shape[1]), self._shape)
        return image

    def _prepare(self) -> None:
        """Find the size of the images, and compare that of a few of them; those that are broken are met later."""
        headers: dict[int, tuple[int, int, int]] = {}
        for position in np.unique(np.linspace(0, len(self) - 1, HEADERS).astype(int)).tolist():
            with suppress(HapteraError):
                headers[position] = read_header(self._source(position), self._place(position))
        turned = sum(orientation > 1 for *_, orientation in headers.values())
        if turned and not self._resize.upright:
            log.warning(
                "%s: EXIF says of %d of the %d images looked at that they are to be turned; they are not, as in the "
                "usual training (upright or --upright turns them)",
                *(self.name, turned, len(headers)),
            )
        if self._resize.size is not None:
            self._shape = (self._resize.size, self._resize.size)
            return
        if not headers:
            read_header(self._source(0), self._place(0))  # which says what is wrong
        sizes = {position: self._upright_size(*header) for position, header in headers.items()}
        self._shape = next(iter(sizes.values()))
        for position, size in sizes.items():
            self._check(position, size, self._shape)

    def _upright_size(self, height: int, width: int, orientation: int) -> tuple[int, int]:
        return (width, height) if self._resize.upright and orientation > 4 else (height, width)

    def _check(self, position: int, found: tuple[int, int], expected: tuple[int, int]) -> None:
        if found != expected:
            raise HapteraError(
                f"{self._place(position)} is {_text(found)} and {self._place(0)} is {_text(expected)} "
                "(width x height); give size, such as size=224, to resize and crop images of different sizes"
            )


def _text(shape: tuple[int, int]) -> str:
    return f"{shape[1]} x {shape[0]}"
