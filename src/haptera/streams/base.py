"""What streams over data have in common: settings, one pass through a data set, and streams made of parts."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
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

    def order(self, size: int, turn: int = 0) -> np.ndarray:
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
class DataStream(Settings):
    """One pass through a data set, as it is or under one shift."""

    data: Data

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.data)

    def __len__(self) -> int:
        return self.batches(len(self.data))

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes

    @property
    def shift(self) -> Shift | None:
        """Return what changes the images, if anything does."""
        return None

    @property
    def context(self) -> dict[str, object]:
        """Return what is known about every sample."""
        shift = self.shift
        return {"shift": shift.name if shift else "clean", "severity": shift.severity if shift else 0.0}

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        size = len(self.data)
        places = self.order(size)[self.places(index, size)]
        return read(self.data, places, self.shift, self.data.rows[places], self.seed, self.context)


@dataclass(frozen=True)
class Parted(Settings):
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


def check_data(data: object, name: str) -> None:
    """Refuse anything but a data set, and data that is corrupted already."""
    if not isinstance(data, Data):
        raise HapteraError(
            f"the stream {name!r} takes one data set, found {type(data).__name__}; "
            "data that is corrupted on disk already is read, as it is, by the stream 'directory'"
        )


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
