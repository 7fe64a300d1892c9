"""Decoding: how an image file becomes an array of bytes.

An image file that is already size x size is left alone; any other is resized, its shorter side to
`round(size / crop)`, and cut in the centre: for 224 and 0.875 that is the usual 256, with the rounding of torchvision.
Transparency is dropped, 16-bit grey scaled to 8 bits, and an image with several frames refused. The orientation in
EXIF is applied only by `upright`: the usual training pipelines do not apply it (of poses, see `pose/orientation.py`).
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import check_plain_file

INTERPOLATIONS = {each.name.lower(): each for each in Image.Resampling}
"""Name -> how Pillow resizes, such as `bilinear`."""
CROP, INTERPOLATION = 0.875, "bilinear"
"""What is done where nobody says anything else."""
SQUASH = "squash"
"""A crop that keeps all of the image, and not its proportions."""
ORIENTATION = 0x0112
"""The tag of EXIF that says how a camera was held."""
LARGEST = 50_000_000
"""Pixels of an image file; a few bytes can say that they are more than any memory holds."""
READ_AT_ONCE = 2**26
"""Bytes of an image file that are read before they are decoded."""
PLAINLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""How a file is opened: without waiting, should it be a pipe."""


def check_size(size: int | None) -> None:
    """Refuse a size that is not a positive whole number."""
    if size is not None:
        check_whole_number("size", size)


@dataclass(frozen=True)
class Resize:
    """How an image file is brought to a size.

    Attributes:
        size: height and width; None leaves every image as it is.
        crop: share of the shorter side that is kept in the centre, or `squash`: all of the image, made a square.
        interpolation: `nearest`, `box`, `bilinear`, `hamming`, `bicubic` or `lanczos`, as in Pillow.
        upright: turn images as their EXIF orientation says, which the usual training pipelines do not.
    """

    size: int | None = None
    crop: float | str = CROP
    interpolation: str = INTERPOLATION
    upright: bool = False

    def __post_init__(self) -> None:
        check_size(self.size)
        check_crop(self.crop)
        if self.interpolation not in INTERPOLATIONS:
            raise unknown("interpolation", self.interpolation, INTERPOLATIONS)

    def __call__(self, image: Image.Image) -> Image.Image:
        """Return an image at the size."""
        size = self.size
        if self.upright:
            image = ImageOps.exif_transpose(image)
        if size is None or image.size == (size, size):
            return image
        how = INTERPOLATIONS[self.interpolation]
        if isinstance(self.crop, str):
            return image.resize((size, size), how)
        short, shorter = round(size / self.crop), min(image.size)
        width, height = (int(short * side / shorter) for side in image.size)
        image = image.resize((width, height), how)
        left, top = round((width - size) / 2), round((height - size) / 2)
        return image.crop((left, top, left + size, top + size))


def check_crop(crop: float | str) -> None:
    """Refuse a crop that is neither a share nor `squash`."""
    if isinstance(crop, str):
        if crop != SQUASH:
            raise HapteraError(f"crop is {crop!r}; a share of the shorter side, such as 0.875, or squash was expected")
    else:
        check_number("crop", crop, above=0, most=1, what="a share of the shorter side")


def decode(source: Path | bytes, channels: int, resize: Resize | None = None, where: str = "") -> np.ndarray:
    """Return `(height, width, channels)`, uint8.

    Args:
        source: a file, or what is in it.
        channels: 1 for grey, 3 for colour.
        resize: how it is brought to a size.
        where: what it is called in messages; the file by default.
    """
    with _open_image(_read_file(source), where or str(source)) as file:
        image = _to_mode(file, "L" if channels == 1 else "RGB")
        if resize is not None and resize.upright:
            image.info["exif"] = file.info.get("exif", b"")  # a conversion may lose it
        pixels = np.asarray(resize(image) if resize else image)
    return pixels[:, :, None] if channels == 1 else pixels


def _read_file(source: Path | bytes) -> Path | bytes:
    """Return what is in a file, which is quicker to decode than the file; what is huge or not a file stays."""
    if isinstance(source, bytes):
        return source
    try:
        handle = os.open(source, PLAINLY)
    except (OSError, ValueError):
        return source  # what opens it says why it cannot
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > READ_AT_ONCE:
            return source
        content = os.read(handle, found.st_size)
        while len(content) < found.st_size and (more := os.read(handle, found.st_size - len(content))):
            content += more
        return content
    except OSError as error:
        raise HapteraError(f"cannot read the image {source}: {error.strerror}") from error
    finally:
        os.close(handle)


def header_size(path: Path) -> tuple[int, int]:
    """Return height and width, without decoding."""
    return read_header(path)[:2]


def read_header(source: Path | bytes, where: str = "") -> tuple[int, int, int]:
    """Return height, width and the orientation of EXIF, 1 if it says nothing, without decoding."""
    with _open_image(source, where) as image:
        known = image.getexif() if image.format in ("JPEG", "MPO", "WEBP") else {}  # of a PNG it needs decoding
        return image.height, image.width, int(known.get(ORIENTATION) or 1)


@contextmanager
def _open_image(source: Path | bytes, where: str) -> Iterator[Image.Image]:
    """Open an image whose pixels are not decoded yet; what goes wrong inside the block is said with its name."""
    where = where or str(source)
    try:
        if isinstance(source, Path):
            check_plain_file(source)
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source)) as image:
            if image.width * image.height > LARGEST:
                raise ValueError(
                    f"it says that it has {image.width} x {image.height} pixels; {LARGEST:,} in all are read at most"
                )
            frames = getattr(image, "n_frames", 1)
            if frames > 1 and image.format != "MPO":  # of a camera: the same picture in several sizes
                raise ValueError(f"it has {frames} frames; images that do not move were expected")
            yield image
    except HapteraError:
        raise
    except Image.UnidentifiedImageError as error:
        raise HapteraError(f"cannot read {where}: it is not an image, or one of an unknown format") from error
    except Exception as error:  # Pillow's readers raise nearly anything for a damaged file
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise HapteraError(f"cannot read the image {where}: {reason}") from error


def _to_mode(image: Image.Image, mode: str) -> Image.Image:
    if image.mode in ("I", "F") and image.format != "PNG":
        raise ValueError(f"its pixels are of Pillow's mode {image.mode!r}; 8 or 16 bits were expected")
    if image.mode.startswith("I"):  # convert() would clip at 255; older Pillows open such a PNG as "I"
        wide = np.asarray(image).astype(np.uint32)
        image = Image.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image if image.mode == mode else image.convert(mode)
