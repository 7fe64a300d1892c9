"""Images in a folder: one sub-folder per class, or a flat one without labels.

Files are listed in a fixed order; hidden ones are not seen, links are followed. The fingerprint is of every file's
relative path, size and time of change, not of its content: reading hundreds of gigabytes before the first batch would
cost too much. Files are decoded when a batch asks for them, in a few threads that live as long as the batch: starting
them costs little beside the decoding, and nothing is left to be pickled or to hang after a fork.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import torch

from haptera.data.base import Data
from haptera.data.pixels import Layout, check_channels, check_size, decode, header_size, to_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

SUFFIXES = (".jpg", ".jpeg", ".png")
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}
THREADS = min(8, os.cpu_count() or 1)
LARGEST_BATCH = 2**31
"""Bytes of the images of one batch, in 8 bits; they take four times as much as floats."""
HEADERS = 32
"""How many files, spread evenly, have their size compared at opening; the others when they are decoded."""


@dataclass(frozen=True)
class Listing:
    """What a folder holds.

    Attributes:
        files: paths relative to the folder, with `/`, sorted within each class.
        targets: `(files,)`, index of the class, or None in a flat folder.
        names: the sorted names of the sub-folders, empty ones included, or None in a flat folder.
        digest: changes when a file comes, goes, or is written.
    """

    files: tuple[str, ...]
    targets: np.ndarray | None
    names: tuple[str, ...] | None
    digest: str


def list_images(root: Path) -> Listing:
    """All images below a folder: of class folders, or of a flat one."""
    names = sub_folders(root)
    groups = [sorted(_walk(f"{root}/{name}", f"{name}/")) for name in names]
    flat = sorted(_walk(str(root), "", deep=False))
    if flat and any(groups):
        full = next(name for name, group in zip(names, groups, strict=True) if group)
        raise HapteraError(
            f"{root} holds images ({flat[0][0]}, ...) beside folders of images ({full}/, ...); "
            "either one folder per class or one flat folder was expected"
        )
    if not flat and not any(groups):
        raise HapteraError(
            f"no images in {root}: {_contents(root)}; {', '.join(SUFFIXES)} are read, .npy beside labels.npy"
        )
    if flat:
        return Listing(tuple(path for path, *_ in flat), None, None, _digest(flat, []))
    if set(map(str.lower, names)) <= SPLITS:
        raise HapteraError(
            f"{root} holds the parts of a data set ({', '.join(names)}), not its classes; "
            f"open one of them, such as {root / names[0]}"
        )
    for name, group in zip(names, groups, strict=True):
        if not group:
            log.warning("%s: the class folder %r holds no images; it is kept as a class", root, name)
    entries = [entry for group in groups for entry in group]
    targets = np.repeat(np.arange(len(names)), [len(group) for group in groups])
    return Listing(tuple(path for path, *_ in entries), targets, tuple(names), _digest(entries, names))


def sub_folders(root: str | Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    return sorted(folder.name for folder in _entries(root)[0])


def has_images(root: str | Path) -> bool:
    """Return whether there are images in the folder itself."""
    return any(_is_image(file) for file in _entries(root)[1])


def file_digest(path: Path) -> str:
    """Return a text that changes when a file is written: its name, size and time of change."""
    stat = path.stat()
    return fingerprint(path.name, stat.st_size, stat.st_mtime_ns)


def _walk(folder: str, prefix: str, *, deep: bool = True) -> Iterator[tuple[str, int, int]]:
    """Relative path, size and time of change of every image."""
    folders, files = _entries(folder)
    for file in filter(_is_image, files):
        try:
            stat = file.stat()
        except OSError as error:
            raise HapteraError(f"cannot read {file.path}: {error.strerror}") from error
        yield f"{prefix}{file.name}", stat.st_size, stat.st_mtime_ns
    for inner in folders if deep else ():
        yield from _walk(inner.path, f"{prefix}{inner.name}/")


def _entries(folder: str | Path) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]]]:
    """The folders and the files in a folder that are not hidden."""
    folders: list[os.DirEntry[str]] = []
    files: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(entry)
                elif entry.is_file() or entry.is_symlink():
                    files.append(entry)
                elif _is_image(entry):  # a pipe or a device, from which reading may never end
                    log.warning("%s is not a file; it is left out", entry.path)
    except OSError as error:
        raise HapteraError(f"cannot list the folder {folder}: {error.strerror}") from error
    return folders, files


def _is_image(entry: os.DirEntry[str]) -> bool:
    return entry.name.lower().endswith(SUFFIXES)


def _digest(entries: list[tuple[str, int, int]], names: list[str]) -> str:
    # One text: to walk over millions of numbers one by one would take longer than to list the files.
    return fingerprint("/".join(names), "\n".join(f"{path}\t{size}\t{time}" for path, size, time in entries))


def _contents(root: Path) -> str:
    """Return what there is instead of images."""
    files = [Path(name) for _, _, names in os.walk(root) for name in names if not name.startswith(".")]
    if not files:
        return "it holds no files"
    kinds = Counter(file.suffix.lower() or "no suffix" for file in files).most_common(5)
    return "found " + ", ".join(f"{count} of {kind}" for kind, count in kinds)


class FolderData(Data):
    """Images in a folder; the orientation in EXIF is not applied.

    Args:
        root: holds `class/.../file.jpg` (or jpeg, png, in any case), or the images themselves.
        size: an image that is size x size is left alone, any other is resized (shorter side to
            `round(size / 0.875)`) and cut in the centre; None if all are of one size.
        channels: 1 for grey; 3 or None for colour.
        name: what it is called in messages; the folder's name by default.
        listing: the files, if they have been listed already.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        size: int | None = None,
        channels: int | None = None,
        name: str | None = None,
        listing: Listing | None = None,
    ) -> None:
        check_size(size)
        check_channels(channels)
        self._root = Path(root).expanduser().absolute()
        listing = listing or list_images(self._root)
        self.name = name or self._root.name
        self.targets, self.names = listing.targets, listing.names
        self.rows = np.arange(len(listing.files))
        self._files = listing.files
        self._size = size
        self._channels = channels or 3
        self._shape = (size, size) if size else self._common_size()
        self._fingerprint = fingerprint("folder", listing.digest, self._size, self._channels)

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        shape = (len(positions), *self._shape, self._channels)
        if prod(shape) > LARGEST_BATCH:
            raise HapteraError(
                f"{self._root}: {len(positions)} images of {_text(self._shape)} pixels at once do not fit into memory; "
                "give size, such as size=224, or smaller batches"
            )
        pixels = np.empty(shape, np.uint8)
        places = np.asarray(positions, np.int64).tolist()
        with ThreadPoolExecutor(THREADS) as pool:
            for row, image in enumerate(pool.map(self._read, places)):
                pixels[row] = image
        return to_images(pixels, Layout("NHWC", self._channels, *self._shape), self._channels)

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's path, size and time of change at opening, and of the settings."""
        return self._fingerprint

    def _read(self, position: int) -> np.ndarray:
        path = self._root / self._files[position]
        image = decode(path, self._channels, self._size)
        self._check(path, (image.shape[0], image.shape[1]), self._shape)
        return image

    def _common_size(self) -> tuple[int, int]:
        expected = header_size(self._root / self._files[0])
        for position in np.unique(np.linspace(0, len(self._files) - 1, HEADERS).astype(int)):
            path = self._root / self._files[position]
            self._check(path, header_size(path), expected)
        return expected

    def _check(self, path: Path, found: tuple[int, int], expected: tuple[int, int]) -> None:
        if found != expected:
            raise HapteraError(
                f"{path} is {_text(found)} and {self._root / self._files[0]} is {_text(expected)} "
                "(width x height); give size, such as size=224, to resize and crop images of different sizes"
            )


def _text(shape: tuple[int, int]) -> str:
    return f"{shape[1]} x {shape[0]}"
