"""Pixels: what an array of images means, and how an image file becomes one.

The axes of an array are read off its shape, and a shape that can be read in two ways is refused. uint8 runs from 0 to
255, floats lie within [0, 1]. Arrays stay as they came; only the rows of one batch become float32.

An image file that is already size x size is left alone; any other is resized, its shorter side to
`round(size / 0.875)`, and cut in the centre: for 224 that is the usual 256, with the rounding of torchvision.
Transparency is dropped, 16-bit grey scaled to 8 bits. The orientation in EXIF is NOT applied: the usual training
pipelines do not apply it either.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file

CHANNELS = (1, 3)
ROWS_AT_ONCE = 1024
LARGEST = 50_000_000
"""Pixels of an image file; a few bytes can say that they are more than any memory holds."""


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
    images = images.contiguous()
    return images.float().div_(255) if images.dtype == torch.uint8 else images


def _grey(images: torch.Tensor) -> torch.Tensor:
    """ITU-R 601 luma; for bytes the very integers that Pillow's mode "L" gives."""
    if images.dtype == torch.uint8:
        red, green, blue = images.int().split(1, dim=1)
        return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)
    red, green, blue = images.split(1, dim=1)
    return (0.299 * red + 0.587 * green + 0.114 * blue).clamp_(0, 1)


def check_size(size: int | None) -> None:
    """Refuse a size that is not a positive whole number."""
    if size is not None:
        check_whole_number("size", size)


def decode(path: Path, channels: int, size: int | None) -> np.ndarray:
    """Return `(height, width, channels)`, uint8."""
    try:
        with _opened(path) as image:
            pixels = np.asarray(_to_size(_to_mode(image, "L" if channels == 1 else "RGB"), size))
    except Exception as error:  # Pillow's readers raise nearly anything for a damaged file
        raise _unreadable_file(path, error) from error
    return pixels[:, :, None] if channels == 1 else pixels


def header_size(path: Path) -> tuple[int, int]:
    """Return height and width, without decoding."""
    try:
        with _opened(path) as image:
            return image.height, image.width
    except Exception as error:  # as above
        raise _unreadable_file(path, error) from error


def _opened(path: Path) -> Image.Image:
    """Open an image file, its pixels not decoded yet."""
    check_plain_file(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # there is a limit of our own
        image = Image.open(path)
    if image.width * image.height > LARGEST:
        image.close()
        raise HapteraError(
            f"cannot read the image {path}: it says that it has {image.width} x {image.height} pixels; "
            f"{LARGEST:,} in all are read at most"
        )
    return image


def _unreadable_file(path: Path, error: Exception) -> HapteraError:
    if isinstance(error, HapteraError):
        return error
    if isinstance(error, Image.UnidentifiedImageError):
        return HapteraError(f"cannot read {path}: it is not an image, or one of an unknown format")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return HapteraError(f"cannot read the image {path}: {reason}")


def _to_mode(image: Image.Image, mode: str) -> Image.Image:
    if image.mode in ("I", "F") and image.format != "PNG":
        raise ValueError(f"its pixels are of Pillow's mode {image.mode!r}; 8 or 16 bits were expected")
    if image.mode.startswith("I"):  # convert() would clip at 255; older Pillows open such a PNG as "I"
        wide = np.asarray(image).astype(np.uint32)
        image = Image.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert(mode)


def _to_size(image: Image.Image, size: int | None) -> Image.Image:
    if size is None or image.size == (size, size):
        return image
    short, shorter = round(size / 0.875), min(image.size)
    width, height = (int(short * side / shorter) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))
