"""Data: images read by row, with what is known about their classes; and data sets that are corrupted already.

`CorruptedImages` has a part for each corruption and severity, with the same samples in each.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

BLOCK = 256
"""How many images are read at a time for a fingerprint of samples."""


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
    """Images by row; as a sequence of `(image, one-hot target, {"id": row})` it is also a data set of MAITE.

    Attributes:
        name: what it is called in messages.
        rows: `(samples,)` int64, the number of each sample in the source; the randomness of shifts depends on it.
        targets: `(samples,)` int64, index of the sample's class, or None where there are no labels.
        names: the names of the classes, or None.
        classes: how they relate to the model's, or None if class i is the model's class i.
        decodes: whether an image is decoded anew each time it is read.
    """

    name: str
    rows: np.ndarray
    targets: np.ndarray | None
    names: tuple[str, ...] | None = None
    classes: Classes | None = None
    decodes: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        if not 0 <= position < len(self):
            raise IndexError(f"{self.name} has {len(self)} images, there is none at {position}")
        image = self.images(np.array([position]))[0].numpy()
        return image, self._one_hot(position), {"id": int(self.rows[position])}

    @property
    def metadata(self) -> dict[str, Any]:
        """Name and classes, as MAITE asks for them."""
        names = {} if self.names is None else {"index2label": dict(enumerate(self.names))}
        return {"id": self.name, **names}

    @cached_property
    def _class_count(self) -> int:
        if self.names is not None:
            return len(self.names)
        return 0 if self.targets is None else int(self.targets.max()) + 1

    def _one_hot(self, position: int) -> np.ndarray:
        """Return `(classes,)`, 1 at the sample's class; all 0 without labels."""
        one = np.zeros(self._class_count, np.float32)
        if self.targets is not None:
            one[self.targets[position]] = 1
        return one

    @abstractmethod
    def images(self, positions: np.ndarray) -> torch.Tensor:
        """`(len(positions), channels, height, width)`, float32 in [0, 1]; positions count from 0 to `len(self)`."""

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """The same as bytes, uint8, where images are kept in 8 bits; None, as here, where they may be finer."""
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes when any image, label or setting does."""

    @property
    def crop(self) -> float | None:
        """The share of the shorter side that is kept of image files; None where nothing is cut."""
        return None

    def with_crop(self, crop: float) -> "Data":
        """Return the same images, cut in another way."""
        raise HapteraError(f"the images of {self.name} are read as they are, so there is no other crop of them")


def sample_fingerprint(data: Data) -> str:
    """Return a text that is the same for the same images and labels in the same order, however they are kept.

    Unlike `Data.fingerprint`, which follows files, it reads and decodes every image.
    """
    blocks = np.array_split(np.arange(len(data)), -(-len(data) // BLOCK))
    return fingerprint([fingerprint(data.images(block).numpy()) for block in blocks], data.targets)


@dataclass(frozen=True)
class CorruptedPart:
    """One corruption at one severity.

    Attributes:
        shift: the name of the corruption, such as `gaussian_noise`, or of the domain.
        severity: 1 to 5; NaN for a domain.
        data: its images.
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
        paired: whether row i is the same sample in every part; domains have samples of their own.
    """

    name: str
    parts: list[CorruptedPart]
    paired: bool = True

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the classes, which all parts share."""
        return self.parts[0].data.names

    @property
    def classes(self) -> Classes | None:
        """How they relate to the model's."""
        return self.parts[0].data.classes
