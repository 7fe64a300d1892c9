"""What streams around a stream have in common.

To know where a batch ends they need the sizes of all batches before any is read: `Stream.sizes()`.
"""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from haptera.batch import Batch, Stream, check_index
from haptera.data import Classes
from haptera.errors import HapteraError


@dataclass(frozen=True)
class Wrapper(Stream):
    """What wrapped streams have in common; a subclass writes `words`, `_own_sizes` and `_batch`.

    Args:
        stream: any stream; its seed is this one's.
        name: the stream's column in the table; by default that of the stream within, with a few words.
    """

    stream: Stream
    name: str = field(default="", kw_only=True)
    seed: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.stream, Stream):
            raise HapteraError(f"{type(self).__name__} wraps a stream, found {type(self.stream).__name__}")
        self._check()
        object.__setattr__(self, "seed", self.stream.seed)
        if not self.name:
            object.__setattr__(self, "name", f"{self.stream.name}, {self.words}")

    def _check(self) -> None:
        """Refuse wrong settings."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Return what becomes of the stream, in a few words."""

    @property
    def label(self) -> str:
        """Return the label of the part within, if it has one of its own."""
        return self.name if self.stream.label == self.stream.name else self.stream.label

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.stream.classes

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        """Return whether the stream within gives targets."""
        return self.stream.labelled

    @property
    def data(self) -> Any:
        """Return what the stream within reads, if it says so."""
        return getattr(self.stream, "data", None)

    def with_seed(self, seed: int) -> Self:
        """Wrap the same stream with other randomness."""
        return replace(self, stream=self.stream.with_seed(seed))

    def parts(self) -> list[Stream]:
        """Each part of the stream within, wrapped."""
        return list(self._pieces) or [self]

    @cached_property
    def _pieces(self) -> list[Self]:
        """Return the parts; empty if this is the only one."""
        parts = self.stream.parts()
        return [] if len(parts) == 1 and parts[0] is self.stream else [replace(self, stream=part) for part in parts]

    @abstractmethod
    def _own_sizes(self) -> np.ndarray:
        """The sizes of all batches, of a stream without parts."""

    @abstractmethod
    def _batch(self, index: int) -> Batch:
        """A batch, of a stream without parts."""

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.concatenate([piece.sizes() for piece in self._pieces]) if self._pieces else self._own_sizes()

    @cached_property
    def _starts(self) -> np.ndarray:
        """Return `(batches,)`, how many samples come before each batch."""
        return np.cumsum(self._sizes) - self._sizes

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`, how many samples each batch has."""
        return self._sizes

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self._sizes.sum())

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        for piece in self._pieces:
            if index < len(piece):
                return piece[index]
            index -= len(piece)
        batch = self._batch(index)
        if len(batch) != self._sizes[index]:
            raise HapteraError(
                f"batch {index} of the stream {self.name!r} has {len(batch)} samples and not {self._sizes[index]}; "
                "a stream whose batches are not of one size needs a method sizes()"
            )
        return batch


def select(batch: Batch, rows: slice) -> Batch:
    """Return some samples of a batch, with what is known about them."""
    context = {key: np.asarray(value)[rows] if np.ndim(value) else value for key, value in batch.context.items()}
    targets = None if batch.targets is None else batch.targets[rows]
    return Batch(batch.inputs[rows], targets, batch.ids[rows], context)


def number(batch: Batch, start: int) -> Batch:
    """Return the batch with positions as ids, and its own ids as `sample` if it does not say that yet."""
    context = {**batch.context, "sample": batch.context.get("sample", batch.ids.numpy())}
    return Batch(batch.inputs, batch.targets, torch.arange(start, start + len(batch)), context)
