"""Pixels: what an array of images means, and how an image file becomes one.

The axes of an array are read off its shape, and a shape that can be read in two ways is refused. uint8 runs from 0 to
255, floats lie within [0, 1]. Arrays stay as they came; only the rows of one batch become float32.

An image file that is already size x size is left alone; any other is resized, its shorter side to
`round(size / crop)`, and cut in the centre: for 224 and 0.875 that is the usual 256, with the rounding of torchvision.
Transparency is dropped, 16-bit grey scaled to 8 bits, and an image with several frames refused. The orientation in
EXIF is applied only by `upright`: the usual training pipelines do not apply it.
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import check_plain_file

CHANNELS = (1, 3)
INTERPOLATIONS = {each.name.lower(): each for each in Image.Resampling}
"""Name -> how Pillow resizes, such as `bilinear`."""
CROP, INTERPOLATION = 0.875, "bilinear"
"""What is done where nobody says anything else."""
SQUASH = "squash"
"""A crop that keeps all of the image, and not its proportions."""
ROWS_AT_ONCE = 1024
ORIENTATION = 0x0112
"""The tag of EXIF that says how a camera was held."""
LARGEST = 50_000_000
"""Pixels of an image file; a few bytes can say that they are more than any memory holds."""
READ_AT_ONCE = 2**26
"""Bytes of an image file that are read before they are decoded."""
PLAINLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""How a file is opened: without waiting, should it be a pipe."""


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
