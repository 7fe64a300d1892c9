"""One image file as bytes: decoded, made grey or colour, and brought to size.

An image that is already size x size is left alone; any other is resized, its shorter side to
`round(size / 0.875)`, and cut in the centre: for 224 that is the usual 256, with the rounding of torchvision.
Transparency is dropped, 16-bit grey scaled to 8 bits. The orientation in EXIF is NOT applied: the usual
training pipelines do not apply it either.
"""

import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file

LARGEST = 50_000_000
"""Pixels of an image file; a few bytes can say that they are more than any memory holds."""


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
        raise _unreadable(path, error) from error
    return pixels[:, :, None] if channels == 1 else pixels


def header_size(path: Path) -> tuple[int, int]:
    """Return height and width, without decoding."""
    try:
        with _opened(path) as image:
            return image.height, image.width
    except Exception as error:  # as above
        raise _unreadable(path, error) from error


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


def _unreadable(path: Path, error: Exception) -> HapteraError:
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
