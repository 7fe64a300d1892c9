"""Batch and Stream: what reaches a model, in which order.

A stream is read by position, `stream[i]` is its i-th batch, so that it can be iterated twice, resumed anywhere
and read by any number of workers (`DataLoader(stream, batch_size=None, num_workers=4)` is one way).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from haptera.checks import check_whole_number
from haptera.files.fingerprint import fingerprint

if TYPE_CHECKING:
    from haptera.data import Classes


@dataclass(frozen=True)
class Batch:
    """Some samples, in the order in which they arrive.

    Attributes:
        inputs: `(batch, channels, height, width)`, images in [0, 1].
        targets: `(batch,)`, index of the data set's class; None where nobody knows.
        ids: `(batch,)`, what the randomness of a shift depends on. A sample's number in the data set, or,
            where a stream repeats samples, its position in the stream; the number is then `context["sample"]`.
        context: what is known about the samples: one value for all of them, or one for each.
            Its keys become columns of the table, but for `sample` and where a walk is (`outputs.ASIDE`).
    """

    inputs: torch.Tensor
    targets: torch.Tensor | None
    ids: torch.Tensor
    context: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.inputs)


class Stream(ABC):
    """Batches by position, of a length known beforehand.

    A subclass is a dataclass with the fields `name` and `seed` that writes `__len__` and `__getitem__`.

    Attributes:
        labelled: whether it gives targets where the data has them.
    """

    name: str
    seed: int
    labelled: ClassVar[bool] = True

    @abstractmethod
    def __len__(self) -> int:
        """The number of batches."""

    @abstractmethod
    def __getitem__(self, index: int) -> Batch:
        """The batch at a position; IndexError past the end."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """The number of samples."""

    def __iter__(self) -> Iterator[Batch]:
        for index in range(len(self)):
            yield self[index]

    @property
    def label(self) -> str:
        """What tells this stream from the other parts of the same stream."""
        return self.name

    @property
    def classes(self) -> Classes | None:
        """How targets relate to the model's classes; None if target i is the model's class i."""
        return None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the data set's classes, where it has any."""
        if (data := getattr(self, "data", None)) is not None:
            return getattr(data, "names", None)
        inner = getattr(self, "stream", None)
        return inner.class_names if isinstance(inner, Stream) else None

    def sizes(self) -> np.ndarray:
        """`(batches,)`, how many samples each batch has; a stream that does not know is read once to count."""
        parts = self.parts()
        if len(parts) != 1 or parts[0] is not self:
            return np.concatenate([part.sizes() for part in parts])
        return np.array([len(batch) for batch in self])

    def parts(self) -> list[Stream]:
        """Pieces that each begin with a fresh adapter; a study runs each as a cell of its own."""
        return [self]

    def with_seed(self, seed: int) -> Self:
        """The same stream with other randomness."""
        return replace(self, seed=seed)  # type: ignore[type-var]

    def fingerprint(self) -> str:
        """Changes when any sample or setting of the stream does."""
        return fingerprint(type(self), {key: value for key, value in vars(self).items() if key[0] != "_"})


def check_index(index: int, stream: Stream) -> None:
    """Raise IndexError for a batch that the stream does not have."""
    if not 0 <= index < len(stream):
        raise IndexError(f"batch {index} of a stream with {len(stream)} batches")


def check_batch_size(batch_size: int) -> None:
    """Refuse a batch size that is not a positive whole number."""
    check_whole_number("batch_size", batch_size)
