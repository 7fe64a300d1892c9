"""The layout of CIFAR-10-C: `labels.npy`, and one `corruption.npy` of `(5 n, H, W, C)` bytes per corruption.

The first n rows are severity 1, the next n severity 2, and so on; row i of each block is the same image.
Files are mapped into memory, so a batch reads its own rows only; their fingerprint is of name, size and time
of change, as for folders.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.data.arrays import read_labels
from haptera.data.base import CorruptedImages, CorruptedPart, Data
from haptera.data.pixels import Layout, check_channels, read_layout, to_images
from haptera.data.scan import file_digest
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.files.npz import map_npy

LABELS = "labels.npy"
BLOCKS = 5


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
        if self._pixels is None:
            self._pixels = map_npy(self._path)[self._start : self._start + len(self)]
        rows = np.asarray(self._pixels[np.asarray(positions, np.int64)])
        return to_images(rows, self._layout, self._channels)

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
