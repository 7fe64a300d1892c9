"""Digital: what processing does to an image.

Source: the corruptions of ImageNet-C and CIFAR-C as in thesis chapter 2.
Differs: `Pixelate` does not round to 8 bits half way. `JpegCompression` has to round first, and gives on images of
8 bits the very images of Pillow.
Cost: a pass over the images for contrast and pixelation. For JPEG an encoder and a decoder, 0.2 ms at 32 pixels and
0.7 ms at 224 in colour; large images share torch's number of threads.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import embedding_bag

from holdfast.shifts.base import Knots, Shift, knots
from holdfast.shifts.random import SampleRandom

LONG_ROW = 96  # pixels
MAX_THREADS = 8
CACHED = 1 << 17  # values at a time: intermediate results stay in the cache of a core
THREAD_PIXELS = 128 * 128  # below, Pillow spends its time in Python, and threads wait for each other


@dataclass(frozen=True)
class Contrast(Shift):
    """Pulls every pixel towards the mean of its image and channel."""

    name: ClassVar[str] = "contrast"
    family: ClassVar[str] = "digital"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(1, 0.4, 0.3, 0.2, 0.1, 0.05),
        "cifar": knots(1, 0.75, 0.5, 0.4, 0.3, 0.15),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x − mean) c + mean."""
        (factor,) = self.constants()
        return torch.lerp(images.mean((-2, -1), keepdim=True), images, factor)


@dataclass(frozen=True)
class Pixelate(Shift):
    """Shrinks to a share of each side and grows back, both with Pillow's box filter: blocks of one colour."""

    name: ClassVar[str] = "pixelate"
    family: ClassVar[str] = "digital"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(1, 0.6, 0.5, 0.4, 0.3, 0.25),
        "cifar": knots(1, 0.95, 0.9, 0.85, 0.75, 0.65),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Means of rows; all that happens to columns, as a matrix product; and rows repeated."""
        (share,) = self.constants()
        rows, columns = (_there_and_back(side, max(int(side * share), 1)) for side in images.shape[-2:])
        fine = images.to(torch.promote_types(images.dtype, torch.float32))
        # Expanded, so that every image is a product of its own: in one large product, sums depend on the batch.
        across = columns.both.to(fine).T.expand(*images.shape[:2], -1, -1)
        return (_means_of_rows(fine, rows.down) @ across).index_select(-2, rows.shown.to(images.device))


def _means_of_rows(images: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """`down @ images`; long rows are added one by one, which skips the zeros of `down` in a third of the time."""
    if images.shape[-1] < LONG_ROW:
        return down.to(images) @ images
    planes = images.flatten(0, 1)
    block, row = down.nonzero().T
    sizes = block.bincount()
    first = torch.arange(len(planes))[:, None]
    rows, starts = first * down.shape[1] + row, first * len(row) + (sizes.cumsum(0) - sizes)
    means = embedding_bag(
        rows.flatten().to(images.device), planes.flatten(0, 1), starts.flatten().to(images.device), mode="mean"
    )
    return means.reshape(*images.shape[:2], len(down), -1)


class _ThereAndBack(NamedTuple):
    """From pixels to blocks and back: `(blocks, side)` weights, `(side, side)` of both ways, `(side,)` block shown."""

    down: torch.Tensor
    both: torch.Tensor
    shown: torch.Tensor


@lru_cache(maxsize=64)
def _there_and_back(side: int, blocks: int) -> _ThereAndBack:
    down, up = _box_filter(side, blocks), _box_filter(blocks, side)
    return _ThereAndBack(down, up @ down, up.argmax(1))


def _box_filter(pixels: int, wanted: int) -> torch.Tensor:
    """`(wanted, pixels)`, the weights of Pillow's box filter, in its own arithmetic: rounding decides ties."""
    scale = pixels / wanted
    width = max(scale, 1.0)
    centres = (np.arange(wanted)[:, None] + 0.5) * scale
    places = np.arange(pixels)
    nearby = (places >= np.trunc(centres - 0.5 * width + 0.5)) & (places < np.trunc(centres + 0.5 * width + 0.5))
    offsets = (places - centres + 0.5) * (1 / width)
    weights = nearby & (offsets > -0.5) & (offsets <= 0.5)
    return torch.from_numpy(weights / weights.sum(1, keepdims=True)).float()


@dataclass(frozen=True)
class JpegCompression(Shift):
    """Through Pillow's JPEG encoder and back; the constant is the quality, rounded."""

    name: ClassVar[str] = "jpeg_compression"
    family: ClassVar[str] = "digital"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(85, 25, 18, 15, 10, 7),
        "cifar": knots(85, 80, 65, 58, 50, 40),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Eight bits, encoded and decoded image by image; other than 3 channels are grey images of their own."""
        quality = round(self.constants()[0])
        planes = torch.empty(images.shape, dtype=torch.uint8)
        group = max(CACHED // images[0].numel(), 1)
        for part, eight in zip(images.detach().split(group), planes.split(group), strict=True):
            eight.copy_(part.mul(255).round_())
        pixels = (planes if images.shape[1] == 3 else planes.flatten(0, 1)[:, None]).numpy()
        threads = min(torch.get_num_threads(), len(pixels), MAX_THREADS)
        if threads > 1 and pixels[0, 0].size >= THREAD_PIXELS:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(partial(_through_jpeg, quality=quality), pixels))
        else:
            for image in pixels:
                _through_jpeg(image, quality)
        return planes.to(images.device, images.dtype).div_(255)


def _through_jpeg(planes: np.ndarray, quality: int) -> None:
    """Encode `(channels, height, width)` of 8 bits, grey or colour, and decode them, in place."""
    bands = [Image.fromarray(plane) for plane in planes]
    image = Image.merge("RGB", bands) if len(bands) == 3 else bands[0]
    stream = BytesIO()
    image.save(stream, "JPEG", quality=quality)
    # What Image.open does after it has read the headers, whose content is known here.
    decoded = Image.frombytes(image.mode, image.size, stream.getvalue(), "jpeg", image.mode, "")
    for channel, plane in enumerate(planes):
        plane[:] = np.frombuffer(decoded.getchannel(channel).tobytes(), np.uint8).reshape(plane.shape)
