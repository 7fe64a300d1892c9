"""What streams over data have in common: settings, turns through data, streams made of parts."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch

from haptera.batch import Batch, Stream, check_batch_size, check_index
from haptera.data import Classes, Data
from haptera.errors import HapteraError
from haptera.shifts import Shift


@dataclass(frozen=True, kw_only=True)
class Settings(Stream):
    """The settings of every stream over data.

    Args:
        batch_size: samples per batch; the last batch may be smaller.
        seed: of the order and of the shifts.
        shuffle: data on disk is often sorted by class, which is a shift of its own; true mixes it, by seed.
        name: the stream's column in the table.
    """

    batch_size: int = 64
    seed: int = 0
    shuffle: bool = True
    name: str = "data"

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)

    def settings(self) -> dict[str, Any]:
        """Return the settings to hand on to a part."""
        return {"batch_size": self.batch_size, "seed": self.seed, "shuffle": self.shuffle, "name": self.name}

    def arrange(self, size: int, turn: int = 0) -> np.ndarray:
        """Return `(size,)`, in which order a data set is read, the `turn`-th time."""
        return sample_order(size, self.seed, turn) if self.shuffle else np.arange(size)

    def batches(self, size: int) -> int:
        """Return how many batches a data set of that size makes."""
        return -(-size // self.batch_size)

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`: full batches and a smaller last one, where that is how many batches there are."""
        if self.batches(self.samples) != len(self):
            return super().sizes()
        return self.pass_sizes(self.samples)

    def pass_sizes(self, size: int) -> np.ndarray:
        """The sizes of the batches of one pass through a data set."""
        return np.array([len(self.places(batch, size)) for batch in range(self.batches(size))])

    def places(self, batch: int, size: int) -> np.ndarray:
        """The positions in one pass through a data set that make up a batch."""
        return np.arange(batch * self.batch_size, min((batch + 1) * self.batch_size, size))


@dataclass(frozen=True)
class Reader(Settings):
    """A stream that reads one data set."""

    data: Data

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.data, Data):
            raise HapteraError(
                f"the stream {self.name!r} takes one data set, found {type(self.data).__name__}; data that is "
                "corrupted already is read by directory, continual, continual_orders, gradual, mixed and correlated"
            )

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes


@dataclass(frozen=True)
class Turns(Settings):
    """Several turns through data, with no reset; no batch holds two of them."""

    @property
    @abstractmethod
    def turn_sizes(self) -> Sequence[int]:
        """How many samples each turn has."""

    @cached_property
    def _ends(self) -> np.ndarray:
        """Return `(turns,)`, how many batches have come when each turn is over."""
        return np.cumsum([self.batches(size) for size in self.turn_sizes])

    @property
    def samples(self) -> int:
        """The number of samples in all."""
        return sum(self.turn_sizes)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`, those of one turn after the other."""
        return np.concatenate([self.pass_sizes(size) for size in self.turn_sizes])

    def locate(self, index: int) -> tuple[int, np.ndarray]:
        """Return the turn of a batch, and the positions of its samples in the turn."""
        check_index(index, self)
        turn = int(np.searchsorted(self._ends, index, side="right"))
        return turn, self.places(index - (int(self._ends[turn - 1]) if turn else 0), self.turn_sizes[turn])


@dataclass(frozen=True)
class Parts(Settings):
    """A stream that is its parts, one after the other; a subclass writes `parts`."""

    @abstractmethod
    def parts(self) -> list[Stream]:
        """The pieces that each begin with a fresh adapter."""

    @property
    def samples(self) -> int:
        """The number of samples in all parts."""
        return sum(part.samples for part in self.parts())

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.parts()[0].classes

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts())

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`, those of the parts."""
        return np.concatenate([part.sizes() for part in self.parts()])

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        for part in self.parts():
            if index < len(part):
                return part[index]
            index -= len(part)
        raise AssertionError("parts are shorter than their sum")


def read(
    data: Data, places: np.ndarray, shift: Shift | None, ids: np.ndarray, seed: int, context: dict[str, object]
) -> Batch:
    """Return some samples of a data set as a batch, shifted."""
    images, numbers = data.images(places), torch.from_numpy(ids)
    if shift is not None:
        images = shift(images, numbers, seed)
    targets = None if data.targets is None else torch.from_numpy(data.targets[places])
    return Batch(images, targets, numbers, context)


@lru_cache(maxsize=8)
def sample_order(size: int, seed: int, turn: int = 0) -> np.ndarray:
    """A permutation given by the seed and by how often the data has been through already."""
    return np.random.default_rng([turn, seed & 0xFFFFFFFF, size]).permutation(size)
