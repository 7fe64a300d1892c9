"""The files of a corrupted data set: images in class folders as in ImageNet-C, one array as in CIFAR-10-C.

Differs: classes that would be read back in another order than the data's get their number in front.
"""

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from haptera.data import Data, FolderData
from haptera.data.folder import THREADS

Batches = Iterable[tuple[np.ndarray, np.ndarray]]
"""Places in the data and their images `(batch, height, width, channels)` in 8 bits."""


def write_folder(folder: Path, data: Data, batches: Batches, quality: int | str) -> None:
    """Write every image of the data into the folder of its class.

    Args:
        folder: an empty folder.
        data: whose classes and file names are kept.
        batches: the images.
        quality: of JPEG files, 1 to 100, or `png`.
    """
    files = [folder / name for name in _file_names(data, quality)]
    for each in {file.parent for file in files} | {folder / name for name in class_folders(data)}:
        each.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(THREADS) as pool:
        for places, pixels in batches:
            list(pool.map(write_image, [files[one] for one in places], pixels, [quality] * len(places)))


def write_array(file: BinaryIO, rows: int, batches: Batches) -> None:
    """Write images, of which there are `rows` in all, as one array in the format of `.npy` files."""
    for number, (_, pixels) in enumerate(batches):
        if number == 0:
            write_header(file, (rows, *pixels.shape[1:]))
        file.write(pixels.data)


def write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    """Begin an array of bytes of this shape."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


def write_image(path: Path, pixels: np.ndarray, quality: int | str) -> None:
    """Write one image file of `(height, width, channels)` bytes."""
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if quality == "png":
        image.save(path, format="PNG")
    else:
        image.save(path, format="JPEG", quality=int(quality))


def class_folders(data: Data) -> list[str]:
    """Return a folder name for each class, such that they sort as the classes do; none without labels."""
    if data.targets is None:
        return []
    count = max(int(data.targets.max()) + 1, len(data.names or ()))
    numbers = [f"{label:0{len(str(count - 1))}d}" for label in range(count)]
    if data.names is None:
        return numbers
    plain = [re.sub(r"[/\\\0]", "_", name) for name in data.names]
    if plain == list(data.names) == sorted(set(plain)) and not any(name.startswith(".") for name in plain):
        return plain
    return [f"{number}_{name}" for number, name in zip(numbers, plain, strict=True)]


def _file_names(data: Data, quality: int | str) -> list[str]:
    """Return where each sample goes, by place in the data: the source's name, or the number of the sample."""
    endings = (".png",) if quality == "png" else (".jpeg", ".jpg")
    width = len(str(int(data.rows.max())))
    names = _source_names(data) or [f"{row:0{width}d}{endings[0]}" for row in data.rows.tolist()]
    if any(not name.lower().endswith(endings) for name in names):
        stems = [str(Path(name).with_suffix("")) for name in names]
        below = [f"{stem}{endings[0]}" for stem in stems]
        folders = [0] * len(names) if data.targets is None else data.targets.tolist()
        unique = len(set(zip(folders, below, strict=True))) == len(names)
        names = below if unique else [f"{name}{endings[0]}" for name in names]
    if data.targets is None:
        return names
    classes = class_folders(data)
    return [f"{classes[target]}/{name}" for target, name in zip(data.targets.tolist(), names, strict=True)]


def _source_names(data: Data) -> list[str] | None:
    """Return the files of a folder, relative to their class; None for any other data."""
    if not isinstance(data, FolderData):
        return None
    return [name if data.names is None else name.partition("/")[2] for name in data._files]
