"""Data that comes with the packages haptera is built on, so that a first run downloads nothing.

scikit-learn's digits: 1,797 grey images of 8 x 8, scaled up bilinearly, cut once and for all into two halves.
"""

import numpy as np
import torch

from haptera.data.arrays import ArrayData
from haptera.data.decode import check_size
from haptera.errors import unknown

SPLITS = ("train", "test", "all")


def digits(split: str = "test", size: int = 32, *, channels: int | None = None) -> ArrayData:
    """Handwritten digits; the rows are their numbers in scikit-learn's set, whichever split they are in.

    Args:
        split: `train` or `test`, each half of every class, or `all`.
        size: height and width.
        channels: 3 repeats the grey, None and 1 keep it.
    """
    from sklearn.datasets import load_digits

    if split not in SPLITS:
        raise unknown("split of digits", split, SPLITS)
    check_size(size)
    bunch = load_digits()
    rows = _rows(bunch.target, split)
    small = torch.from_numpy(bunch.images[rows]).float().div_(16).unsqueeze(1)
    images = torch.nn.functional.interpolate(
        small, size=(size, size), mode="bilinear", align_corners=False, antialias=False
    ).clamp_(0, 1)
    names = [str(name) for name in bunch.target_names]
    return ArrayData(images, bunch.target[rows], "digits", names, ids=rows, channels=channels)


def _rows(targets: np.ndarray, split: str) -> np.ndarray:
    """Return `(samples,)`: of each class a random half, always the same, in the order of the source."""
    if split == "all":
        return np.arange(len(targets))
    generator = np.random.default_rng(0)
    train = np.zeros(len(targets), bool)
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        train[members[: len(members) // 2]] = True
    return np.flatnonzero(train if split == "train" else ~train)
