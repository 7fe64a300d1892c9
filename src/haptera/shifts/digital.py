"""Digital: what processing does to an image.

Source: the corruptions of ImageNet-C and CIFAR-C as in thesis chapter 2.
Differs: `Pixelate` does not round to 8 bits half way. `JpegCompression` has to round first, and gives on images of
8 bits the very images of Pillow.
Cost: a pass over the images for contrast, three for pixelation. For JPEG an encoder and a decoder, about 0.1 ms at
32 pixels and 0.8 ms at 224 in colour, of which floats to 8 bits and back take a third; large images share torch's
number of threads.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from io import BytesIO
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.blur import Band, as_band, at_least_single, mix_columns, mix_rows
from haptera.shifts.pixels import Pixels

MAX_THREADS = 8
CACHED = 1 << 17  # values at a time: intermediate results stay in the cache of a core
MANY = 12 * CACHED  # and with more at a time, fresh memory costs more than the work
NARROW = 4  # up to so many pixels a side, libjpeg enlarges colours in another way
THREAD_PIXELS = 128 * 128  # below, Pillow spends its time in Python, and threads wait for each other


class Contrast(Shift):
    """Pulls every pixel towards the mean of its image and channel."""

    name = "contrast"
    tables = knots(imagenet=(1, 0.4, 0.3, 0.2, 0.1, 0.05), cifar=(1, 0.75, 0.5, 0.4, 0.3, 0.15))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x − mean) c + mean."""
        (factor,) = self.constants()
        return torch.lerp(images.mean((-2, -1), keepdim=True), images, factor)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same, with the exact mean."""
        from haptera.shifts.kernels.points import pull_to_mean

        source = pixels.array.reshape(len(pixels.array), -1)
        out = np.empty_like(source)
        pull_to_mean(source, out, pixels.shape[1], pixels.step, *self.constants())
        return pixels.like(out)


class Pixelate(Shift):
    """Shrinks to a share of each side and grows back, both with Pillow's box filter: blocks of one colour."""

    name = "pixelate"
    tables = knots(imagenet=(1, 0.6, 0.5, 0.4, 0.3, 0.25), cifar=(1, 0.95, 0.9, 0.85, 0.75, 0.65))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Average the rows, do everything that happens to columns, and repeat the rows."""
        (share,) = self.constants()
        rows, columns = (_there_and_back(side, max(int(side * share), 1)) for side in images.shape[-2:])
        work, shown = at_least_single(images.detach()), rows.shown.to(images.device)
        blocks = torch.empty_like(work)
        parts = ceil(work.numel() / MANY)
        for some, out in zip(work.chunk(parts), blocks.chunk(parts), strict=True):
            torch.index_select(mix_columns(columns.both, mix_rows(rows.down, some)), -2, shown, out=out)
        return blocks

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The same blocks, their means rounded once."""
        from haptera.shifts.kernels.zoom import show_blocks

        (share,) = self.constants()
        if min(pixels.shape[2:]) * share < 1:
            return None
        rows, shown_rows = _block_edges(pixels.shape[2], int(pixels.shape[2] * share))
        columns = _block_values(pixels.shape[3], int(pixels.shape[3] * share), pixels.step)
        planes = pixels.planes()
        out = np.empty_like(planes)
        show_blocks(planes, out, pixels.step, rows, shown_rows, *columns)
        return pixels.like(out)


class _ThereAndBack(NamedTuple):
    """Weights to blocks and back: `(blocks, side)` weights, `(side, side)` of both ways, `(side,)` block shown."""

    down: Band
    both: Band
    shown: torch.Tensor


@lru_cache(maxsize=64)
def _there_and_back(side: int, blocks: int) -> _ThereAndBack:
    down, up = _box_filter(side, blocks), _box_filter(blocks, side)
    return _ThereAndBack(as_band(down, rows=16), as_band(up @ down), up.argmax(1))


@lru_cache(maxsize=64)
def _block_edges(side: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `(blocks, 2)`, the first pixel of each and the one behind its last, and `(side,)`, the block shown."""
    down = _box_filter(side, blocks).numpy() > 0
    first = down.argmax(1)
    return np.stack([first, first + down.sum(1)], 1), _there_and_back(side, blocks).shown.numpy()


@lru_cache(maxsize=64)
def _block_values(side: int, blocks: int, step: int) -> tuple[int, np.ndarray]:
    """What `kernels.zoom.show_blocks` wants to know about the values of a row: `narrow` and `shown`."""
    edges, shown = _block_edges(side, blocks)
    widths = np.diff(edges, axis=1)[:, 0]
    narrow = int(widths.min())
    firsts = edges[:, 0] + np.where(widths > narrow, side, 0)
    return narrow, (firsts[shown][:, None] * step + np.arange(step)).astype(np.uint32).ravel()


def _box_filter(pixels: int, wanted: int) -> torch.Tensor:
    """Return `(wanted, pixels)`, the weights of Pillow's box filter, in its own arithmetic: rounding decides ties."""
    scale = pixels / wanted
    width = max(scale, 1.0)
    centres = (np.arange(wanted)[:, None] + 0.5) * scale
    places = np.arange(pixels)
    nearby = (places >= np.trunc(centres - 0.5 * width + 0.5)) & (places < np.trunc(centres + 0.5 * width + 0.5))
    offsets = (places - centres + 0.5) * (1 / width)
    weights = nearby & (offsets > -0.5) & (offsets <= 0.5)
    return torch.from_numpy(weights / weights.sum(1, keepdims=True)).float()


class JpegCompression(Shift):
    """Encodes with Pillow's JPEG encoder and decodes; the constant is the quality, rounded."""

    name = "jpeg_compression"
    tables = knots(imagenet=(85, 25, 18, 15, 10, 7), cifar=(85, 80, 65, 58, 50, 40))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Eight bits, encoded and decoded image by image; other than 3 channels are grey images of their own."""
        through = partial(_through_jpeg, quality=round(self.constants()[0]))
        pixels = _eight_bits(images.detach())
        threads = min(torch.get_num_threads(), len(pixels), MAX_THREADS)
        if threads > 1 and pixels[0].numel() >= THREAD_PIXELS:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(through, pixels.numpy()))
        else:
            for image in pixels.numpy():
                through(image)
        return _values(pixels.to(images.device), at_least_single(images))

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The images that Pillow gives, without writing and reading files."""
        from haptera.shifts.kernels.jpeg import through_colour, through_grey

        tables = _quantisation(round(self.constants()[0]))
        out = np.empty_like(pixels.array)
        if pixels.shape[1] != 3:
            planes = pixels.planes() if pixels.step == 1 else None
            if planes is None:
                return None
            through_grey(planes, out.reshape(planes.shape), tables[0])
        elif min(pixels.shape[2:]) <= NARROW:
            return None
        else:
            through_colour(pixels.array, out, pixels.last, *tables)
        return pixels.like(out)


@lru_cache(maxsize=128)
def _quantisation(quality: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `(64,)` each, what Pillow divides luma and differences of colour by."""
    stream = BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG", quality=quality)
    with Image.open(stream) as image:
        tables = image.quantization  # type: ignore[attr-defined]
    return np.array(tables[0], np.int32), np.array(tables[1], np.int32)


def _eight_bits(images: torch.Tensor) -> torch.Tensor:
    """`(images, height, width)` on the CPU, as Pillow has it: int32 of red, green, blue and a spare byte, or uint8.

    2^23 added to a float leaves its whole part, rounded, in the lowest bits, which are read as an integer. This takes
    half the time of a conversion. The bits above them are moved out, or into the spare byte.
    """
    batch, channels, *sides = images.shape
    colours = channels == 3
    pixels = torch.empty(batch, 1 if colours else channels, *sides, dtype=torch.int32 if colours else torch.uint8)
    group = _at_once(images)
    scratch = torch.empty_like(images[:group], dtype=torch.float32)
    for some, out in zip(images.split(group), pixels.split(group), strict=True):
        whole = torch.mul(some, 255, out=scratch[: len(some)]).add_(2.0**23).view(torch.int32)
        if colours:
            red, green, blue = whole.split(1, 1)
            whole = red.add_(green, alpha=2**8).add_(blue, alpha=2**16)
        out.copy_(whole)
    return pixels.flatten(0, 1)


def _values(pixels: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """The way back from eight bits, in the shape and precision of `images`; exactly n / 255."""
    if pixels.dtype == torch.uint8:
        return pixels.view(images.shape).to(images.dtype).div_(255)
    values = torch.empty_like(images)
    group = _at_once(images)
    for some, out in zip(pixels.split(group), values.split(group), strict=True):
        for channel, plane in enumerate(out.unbind(1)):
            unit = 2 ** (8 * channel)
            plane.copy_(some & (255 * unit)).div_(255 * unit)
    return values


def _at_once(images: torch.Tensor) -> int:
    """Return how many images stay in the cache, at least one."""
    return max(CACHED // images[0].numel(), 1)


def _through_jpeg(pixels: np.ndarray, quality: int) -> None:
    """Encode `(height, width)` of 8 bits, or of 32 for colours, and decode them, in place."""
    mode, stored = ("L", "L") if pixels.dtype == np.uint8 else ("RGBX", "RGB")
    image = Image.frombuffer(mode, pixels.shape[::-1], pixels, "raw", mode, 0, 1)
    stream = BytesIO()
    image.save(stream, "JPEG", quality=quality)
    # What Image.open does after it has read the headers, whose content is known here; the memory is that of `pixels`.
    image.frombytes(stream.getvalue(), "jpeg", stored, "")
    if not image.readonly:  # a Pillow that copies shared memory before it writes to it
        pixels[:] = np.frombuffer(image.tobytes(), pixels.dtype).reshape(pixels.shape)
