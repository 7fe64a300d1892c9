"""Data: images read by row, with what is known about their classes; and data sets that are corrupted already.

`CorruptedImages` has a part for each corruption and severity, with the same samples in each.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Classes:
    """How the classes of a data set relate to those of the model.

    Attributes:
        accepted: for each class of the data set, the model's classes that count as right.
        restrict: whether only the model's classes that some class accepts may be predicted.
        dropped: how many samples were left out because their class has no counterpart.
    """

    accepted: tuple[tuple[int, ...], ...]
    restrict: bool = False
    dropped: int = 0

    def columns(self, outputs: int) -> np.ndarray:
        """Return `(columns,)`, the model's classes that are kept of its `outputs`."""
        if not self.restrict:
            return np.arange(outputs)
        return np.unique(np.concatenate([np.asarray(group, np.int64) for group in self.accepted]))

    def matrix(self, outputs: int) -> np.ndarray:
        """Return `(classes of the data, columns)`, true where a prediction counts as right."""
        full = np.zeros((len(self.accepted), outputs), bool)
        for row, group in enumerate(self.accepted):
            full[row, list(group)] = True
        return full[:, self.columns(outputs)]


class Data(ABC):
    """Images by row.

    Attributes:
        name: what it is called in messages.
        rows: `(samples,)` int64, the number of each sample in the source; the randomness of shifts depends on it.
        targets: `(samples,)` int64, index of the sample's class, or None where there are no labels.
        names: the names of the classes, or None.
        classes: how they relate to the model's, or None if class i is the model's class i.
    """

    name: str
    rows: np.ndarray
    targets: np.ndarray | None
    names: tuple[str, ...] | None = None
    classes: Classes | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @abstractmethod
    def images(self, positions: np.ndarray) -> torch.Tensor:
        """`(len(positions), channels, height, width)`, float32 in [0, 1]; positions count from 0 to `len(self)`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes when any image, label or setting does."""


@dataclass(frozen=True)
class CorruptedPart:
    """One corruption at one severity.

    Attributes:
        shift: the name of the corruption, such as `gaussian_noise`.
        severity: 1 to 5.
        data: its images; their rows are the same in every part.
    """

    shift: str
    severity: float
    data: Data


@dataclass(frozen=True)
class CorruptedImages:
    """All parts, ordered by corruption and severity.

    Attributes:
        name: what it is called in messages.
        parts: at least one.
    """

    name: str
    parts: list[CorruptedPart]
