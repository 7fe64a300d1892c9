"""Pixels: what an array of images means.

The axes of an array are read off its shape, and a shape that can be read in two ways is refused. uint8 runs from 0 to
255, floats lie within [0, 1]. Arrays stay as they came; only the rows of one batch become float32.
"""

from dataclasses import dataclass

import numpy as np
import torch

from haptera.errors import HapteraError

CHANNELS = (1, 3)
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Layout:
    """The axes of an array of images.

    Attributes:
        axes: `NHW`, `NHWC` or `NCHW`.
        channels: 1 or 3.
        height: in pixels.
        width: in pixels.
    """

    axes: str
    channels: int
    height: int
    width: int

    def check_size(self, size: int | None, where: str) -> None:
        """Refuse a size that would need resizing: arrays are taken as they are, image files are not."""
        if size is not None and (self.height, self.width) != (size, size):
            raise HapteraError(
                f"{where} holds images of {self.height} x {self.width} (height x width) and size is {size}; "
                "only image files and 'digits' are resized, so leave size out or save the arrays at that size"
            )


def read_layout(shape: tuple[int, ...], where: str) -> Layout:
    """Read the axes off a shape.

    >>> read_layout((10, 32, 40, 3), "photos.npz")
    Layout(axes='NHWC', channels=3, height=32, width=40)
    """
    if len(shape) not in (3, 4):
        raise HapteraError(f"{where}: {_unreadable(shape)}")
    if 0 in shape:
        what = "no images" if shape[0] == 0 else "images without pixels"
        raise HapteraError(f"{where} holds {what}: the shape is {shape}; at least one was expected")
    if len(shape) == 3:
        return Layout("NHW", 1, shape[1], shape[2])
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first and last:
        raise HapteraError(
            f"{where}: images of shape {shape} may have their channels first or last; save them with the "
            "channels at the other end, or grey images as (N, H, W)"
        )
    if not first and not last:
        raise HapteraError(f"{where}: {_unreadable(shape)}")
    return Layout("NCHW", *shape[1:]) if first else Layout("NHWC", shape[3], shape[1], shape[2])


def _unreadable(shape: tuple[int, ...]) -> str:
    return f"images have shape {shape}; (N, H, W), (N, H, W, 1 or 3) or (N, 1 or 3, H, W) was expected"


def check_values(pixels: np.ndarray, where: str) -> None:
    """Refuse any type but uint8 and floats, and floats that are not finite or outside [0, 1]."""
    if pixels.dtype == np.uint8:
        return
    if pixels.dtype.kind != "f":
        raise HapteraError(
            f"{where}: images are {pixels.dtype}; uint8 (0 to 255) or floats within [0, 1] were expected"
        )
    bad, first, low, high = 0, -1, np.inf, -np.inf
    for start in range(0, len(pixels), ROWS_AT_ONCE):
        block = pixels[start : start + ROWS_AT_ONCE]
        finite = np.isfinite(block)
        if finite.all():
            low, high = min(low, float(block.min())), max(high, float(block.max()))
        else:
            if bad == 0:
                first = start + int(np.argwhere(~finite)[0, 0])
            bad += int(finite.size - finite.sum())
    if bad:
        raise HapteraError(f"{where}: {bad} pixels are NaN or infinite, the first in row {first}")
    if high > 1:
        raise HapteraError(
            f"{where}: images reach {high:g}, floats must lie within [0, 1]; "
            "divide them by 255 if they are bytes, else scale or clip them"
        )
    if low < 0:
        raise HapteraError(
            f"{where}: images go down to {low:g}, floats must lie within [0, 1]; undo the normalisation before saving"
        )


def check_channels(channels: int | None) -> None:
    """Refuse any number of channels but 1 and 3; None keeps what there is."""
    if channels is not None and (isinstance(channels, bool) or channels not in CHANNELS):
        raise HapteraError(f"channels is {channels!r}; 1 (grey), 3 (colour) or None (as they come) was expected")


def to_images(pixels: np.ndarray, layout: Layout, channels: int) -> torch.Tensor:
    """Rows copied from an array as `(batch, channels, height, width)`, float32 in [0, 1], contiguous."""
    images = channels_first(pixels, layout, channels)
    return images.float().div_(255) if images.dtype == torch.uint8 else images


def channels_first(pixels: np.ndarray, layout: Layout, channels: int) -> torch.Tensor:
    """Rows of an array as `(batch, channels, height, width)`, contiguous: bytes as they are, or float32."""
    if pixels.dtype != np.uint8:
        pixels = pixels.astype(np.float32, copy=False)
    images = torch.from_numpy(np.ascontiguousarray(pixels))
    if layout.axes == "NHW":
        images = images.unsqueeze(1)
    elif layout.axes == "NHWC":
        images = images.permute(0, 3, 1, 2)
    if channels == 1 and layout.channels == 3:
        images = _grey(images)
    if channels == 3 and layout.channels == 1:
        images = images.expand(-1, 3, -1, -1)
    return images.contiguous()


def _grey(images: torch.Tensor) -> torch.Tensor:
    """ITU-R 601 luma; for bytes the very integers that Pillow's mode "L" gives."""
    if images.dtype == torch.uint8:
        red, green, blue = images.int().split(1, dim=1)
        return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)
    red, green, blue = images.split(1, dim=1)
    return (0.299 * red + 0.587 * green + 0.114 * blue).clamp_(0, 1)
