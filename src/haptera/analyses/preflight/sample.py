"""Sample: the few hundred images that a preflight looks at, spread over the classes."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from haptera.correctness import correct
from haptera.data import Classes, Data

PER_CLASS = 4
"""Images of a class that are needed to say which output stands for it, half to guess and half to test."""


@dataclass(frozen=True)
class Sample:
    """Images in memory, and their labels if there are any.

    Attributes:
        images: `(n, channels, height, width)`.
        targets: `(n,)`, or None.
        positions: `(n,)`, where they are in the data.
        classes: how targets relate to the model's outputs; None if target i is output i.
    """

    images: torch.Tensor
    targets: np.ndarray | None
    positions: np.ndarray
    classes: Classes | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def of(cls, data: Data, size: int, seed: int) -> "Sample":
        """Read at most `size` images of a data set, the same for the same seed."""
        positions = spread(data.targets, len(data), size, seed)
        targets = None if data.targets is None else data.targets[positions]
        return cls(data.images(positions), targets, positions, data.classes)

    def first(self, n: int) -> "Sample":
        """Return the first so many of them."""
        targets = None if self.targets is None else self.targets[:n]
        return Sample(self.images[:n], targets, self.positions[:n], self.classes)

    def with_images(self, images: torch.Tensor) -> "Sample":
        """Return the same samples as other images."""
        return replace(self, images=images)

    def right(self, logits: np.ndarray) -> np.ndarray | None:
        """Say of each answer whether it is right, where there are labels."""
        return None if self.targets is None else correct(logits, self.targets, self.classes)

    def accuracy(self, logits: np.ndarray) -> float | None:
        """Return the share of right answers, where there are labels."""
        right = self.right(logits)
        return None if right is None else float(right.mean())


def spread(targets: np.ndarray | None, total: int, size: int, seed: int) -> np.ndarray:
    """Return positions of images in random order: as many of each class, four at least of those that are looked at.

    >>> targets = np.repeat([0, 1, 2], 100)
    >>> np.bincount(targets[spread(targets, 300, 30, 0)]).tolist()
    [10, 10, 10]
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(total)
    if targets is None or total <= size:
        return order[:size]
    present = np.unique(targets)
    kept = generator.permutation(present)[: max(size // PER_CLASS, 1)]
    turn = np.empty(total, np.int64)  # which of its class each image is, in random order
    shuffled = targets[order]
    by_class = np.argsort(shuffled, kind="stable")
    counts = np.unique(shuffled, return_counts=True)[1]
    turn[order[by_class]] = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    candidates = order[np.isin(shuffled, kept)]
    chosen = candidates[np.argsort(turn[candidates], kind="stable")][:size]
    return generator.permutation(chosen)
