"""Data that is corrupted on disk already, in the layout of ImageNet-C or of CIFAR-10-C.

ImageNet-C is `corruption/severity/class/file`, or `group/corruption/severity/class/file`, recognised by folders that
hold nothing but folders named 1 to 5. Every part must hold the same files, so that row i is the same image at every
severity; the list of them is kept once.

CIFAR-10-C is `labels.npy`, and one `corruption.npy` of `(5 n, H, W, C)` bytes per corruption. The first n rows are
severity 1, the next n severity 2, and so on; row i of each block is the same image. Files are mapped into memory, so a
batch reads its own rows only; their fingerprint is of name, size and time of change, as for folders.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.data.arrays import read_labels
from haptera.data.base import CorruptedImages, CorruptedPart, Data
from haptera.data.decode import Resize
from haptera.data.folder import FolderData, Listing, file_digest, has_images, list_images, sub_folders
from haptera.data.pixels import Layout, channels_first, check_channels, read_layout, to_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.files.npz import map_npy

LABELS = "labels.npy"
BLOCKS = 5
SEVERITIES = frozenset("12345")


class NpyData(Data):
    """Consecutive rows of an `.npy` file of bytes, read as they are needed.

    Args:
        path: the file.
        start: its first row that belongs to the data.
        targets: `(samples,)`, index of the class, of as many rows as there are.
        layout: the axes of the array.
        channels: 3 repeats grey as colour, 1 turns colour into grey, None keeps what there is.
        name: what it is called in messages.
    """

    def __init__(
        self, path: Path, start: int, targets: np.ndarray, layout: Layout, channels: int | None, name: str
    ) -> None:
        self.name = name
        self.targets = targets
        self.rows = np.arange(len(targets))
        self._path = path
        self._start = start
        self._layout = layout
        self._channels = channels or layout.channels
        self._pixels: np.ndarray | None = None
        self._fingerprint = fingerprint("npy", file_digest(path), start, targets, self._channels)

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return to_images(self._rows(positions), self._layout, self._channels)

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return the same as bytes; None where the file holds floats."""
        rows = self._rows(positions)
        return channels_first(rows, self._layout, self._channels) if rows.dtype == np.uint8 else None

    def _rows(self, positions: np.ndarray) -> np.ndarray:
        if self._pixels is None:
            self._pixels = map_npy(self._path)[self._start : self._start + len(self)]
        return np.asarray(self._pixels[np.asarray(positions, np.int64)])

    def fingerprint(self) -> str:
        """Return the fingerprint of the file's name, size and time of change at opening, of labels and settings."""
        return self._fingerprint

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pixels": None}


def open_cifar_c(root: Path, *, size: int | None = None, channels: int | None = None) -> CorruptedImages:
    """Read every corruption in a folder, in five severities each."""
    check_channels(channels)
    targets = _read_targets(root / LABELS)
    paths = sorted(path for path in root.glob("[!.]*.npy") if path.name != LABELS)
    if not paths:
        raise HapteraError(f"{root} holds {LABELS} but no other .npy file; one per corruption was expected")
    parts = []
    for path in paths:
        layout = _read_layout(path, BLOCKS * len(targets))
        layout.check_size(size, str(path))
        for block in range(BLOCKS):
            name = f"{root.name}/{path.stem}/{block + 1}"
            data = NpyData(path, block * len(targets), targets, layout, channels, name)
            parts.append(CorruptedPart(path.stem, float(block + 1), data))
    return CorruptedImages(root.name, parts)


def _read_targets(path: Path) -> np.ndarray:
    """Return `(n,)`, the labels of one block, which are those of every block."""
    labels = map_npy(path)
    targets = read_labels(np.array(labels), len(labels) if labels.ndim else 0, str(path))
    if len(targets) == 0 or len(targets) % BLOCKS:
        raise HapteraError(
            f"{path} holds {len(targets)} labels; "
            f"{BLOCKS} blocks of one length, for severity 1 to {BLOCKS}, were expected"
        )
    blocks = targets.reshape(BLOCKS, -1)
    if (blocks != blocks[0]).any():
        block, row = np.argwhere(blocks != blocks[0])[0]
        raise HapteraError(
            f"{path}: the label in row {block * blocks.shape[1] + row} is {blocks[block, row]}, that of the "
            f"same image at severity 1 (row {row}) is {blocks[0, row]}; the same labels were expected"
        )
    return blocks[0].copy()


def _read_layout(path: Path, rows: int) -> Layout:
    pixels = map_npy(path)
    if pixels.dtype != np.uint8:
        raise HapteraError(f"{path}: images are {pixels.dtype}; uint8 (0 to 255) was expected")
    layout = read_layout(pixels.shape, str(path))
    if len(pixels) != rows:
        raise HapteraError(
            f"{path} holds {len(pixels)} images and {LABELS} holds {rows} labels; as many of each were expected"
        )
    return layout


def find_corruptions(root: Path) -> list[Path]:
    """The folders of the corruptions; empty if the folder is of another layout."""
    found: list[Path] = []
    for name in sub_folders(root):
        folder = root / name
        inner = [folder] if _is_corruption(folder) else [folder / below for below in sub_folders(folder)]
        if not inner or not all(map(_is_corruption, inner)):
            return []
        found += inner
    return found


def open_imagenet_c(
    root: Path, corruptions: list[Path], *, resize: Resize | None = None, channels: int | None = None
) -> CorruptedImages:
    """Read every severity of every corruption."""
    by_name: dict[str, Path] = {}
    for folder in corruptions:
        if folder.name in by_name:
            raise HapteraError(
                f"{root} holds the corruption {folder.name!r} twice: {by_name[folder.name]} and {folder}"
            )
        by_name[folder.name] = folder
    parts = []
    first: tuple[Path, Listing] | None = None
    for shift, folder in sorted(by_name.items()):
        for severity in sub_folders(folder):
            place = folder / severity
            listing = list_images(place)
            if first is None:
                first = place, listing
            _check_same(place, listing, *first)
            shared = replace(first[1], digest=listing.digest)
            name = f"{root.name}/{shift}/{severity}"
            data = FolderData(place, **asdict(resize or Resize()), channels=channels, name=name, listing=shared)
            parts.append(CorruptedPart(shift, float(severity), data))
    return CorruptedImages(root.name, parts)


def _is_corruption(folder: Path) -> bool:
    names = sub_folders(folder)
    return bool(names) and SEVERITIES.issuperset(names) and not has_images(folder)


def _check_same(place: Path, found: Listing, first: Path, expected: Listing) -> None:
    if (found.files, found.names) == (expected.files, expected.names):
        return
    odd = set(found.files) ^ set(expected.files) or set(found.names or ()) ^ set(expected.names or ())
    raise HapteraError(
        f"{place} holds {len(found.files)} images and {first} holds {len(expected.files)}; every severity of "
        f"every corruption must hold the same files, but {min(odd)} is in one of them only (if these are "
        "classes with numbered folders and not corruptions, rename the folders)"
    )
