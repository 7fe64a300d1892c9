"""Flips, crops and grey levels: what happens to an image in a stream that shows it more than once, besides shifts.

Flips and crops depend on the seed and on the sample's id alone. Cost: one copy of the images.
"""

import numpy as np
import torch

from haptera.shifts import SampleRandom

SALT = 0x0A06


def augmented(images: torch.Tensor, ids: torch.Tensor, seed: int, flip: bool, crop: float) -> torch.Tensor:
    """`(batch, channels, height, width)`, mirrored with probability one half and moved by up to a share of the side.

    What a move uncovers shows the edge pixel again.
    """
    if not flip and not crop:
        return images
    draws = SampleRandom(ids, seed, salt=SALT).uniform((3,)).numpy()
    before = images.numpy()
    after = np.empty_like(before)
    mirrored = flip & (draws[:, 0] < 0.5)
    downs, rights = (_moves(draws[:, 1 + axis], int(before.shape[2 + axis] * crop / 2)) for axis in (0, 1))
    for old, new, mirror, down, right in zip(before, after, mirrored, downs, rights, strict=True):
        _move(old[:, :, ::-1] if mirror else old, new, down, right)
    return torch.from_numpy(after)


def _moves(draws: np.ndarray, most: int) -> list[int]:
    """Return by how many pixels to move, from -most to most."""
    return [int(move) - most for move in draws * (2 * most + 1)]


def _move(old: np.ndarray, new: np.ndarray, down: int, right: int) -> None:
    """Fill an image: what is in view of the old one as a slice, then the columns and the rows at the edges."""
    height, width = old.shape[1:]
    top, bottom, left, end = max(-down, 0), height - max(down, 0), max(-right, 0), width - max(right, 0)
    new[:, top:bottom, left:end] = old[:, top + down : bottom + down, left + right : end + right]
    new[:, top:bottom, :left] = new[:, top:bottom, left : left + 1]
    new[:, top:bottom, end:] = new[:, top:bottom, end - 1 : end]
    new[:, :top] = new[:, top : top + 1]
    new[:, bottom:] = new[:, bottom - 1 : bottom]


def grey_levels(images: torch.Tensor) -> torch.Tensor:
    """Round, in place, to the 256 values that a file of 8 bits can hold."""
    return images.mul_(255).round_().div_(255)
