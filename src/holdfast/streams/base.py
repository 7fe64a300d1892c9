"""A stream over one data set: which samples, in which order, under which shift."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch

from holdfast.batch import Batch, Stream, check_batch_size, positions
from holdfast.data import Classes, Data
from holdfast.errors import HoldfastError
from holdfast.shifts import Shift


@dataclass(frozen=True)
class DataStream(Stream):
    """Once through a data set.

    Args:
        data: what is read.
        batch_size: samples per batch; the last batch may be smaller.
        seed: of the order and of the shifts.
        shuffle: data on disk is often sorted by class, which is a shift of its own; true mixes it, by seed.
        name: the stream's column in the table.
    """

    data: Data
    batch_size: int = field(default=64, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    shuffle: bool = field(default=True, kw_only=True)
    name: str = field(default="data", kw_only=True)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if not isinstance(self.data, Data):
            raise HoldfastError(
                f"the stream {self.name!r} takes one data set, found {type(self.data).__name__}; "
                "a folder that is already corrupted is read by the stream 'directory'"
            )

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.data)

    def __len__(self) -> int:
        return -(-len(self.data) // self.batch_size)

    @property
    def classes(self) -> Classes | None:
        """How targets relate to the model's classes."""
        return self.data.classes

    @property
    def shift(self) -> Shift | None:
        """What changes the images, if anything does."""
        return None

    @property
    def context(self) -> dict[str, object]:
        """What is known about every sample."""
        shift = self.shift
        return {"shift": shift.name if shift else "clean", "severity": shift.severity if shift else 0.0}

    def __getitem__(self, index: int) -> Batch:
        order = sample_order(len(self.data), self.seed) if self.shuffle else np.arange(len(self.data))
        places = order[positions(index, self.batch_size, len(self.data))]
        return read(self.data, places, self.shift, self.data.rows[places], self.seed, self.context)


def read(
    data: Data, places: np.ndarray, shift: Shift | None, ids: np.ndarray, seed: int, context: dict[str, object]
) -> Batch:
    """Some samples of a data set as a batch, shifted."""
    images, numbers = data.images(places), torch.from_numpy(ids)
    if shift is not None:
        images = shift(images, numbers, seed)
    targets = None if data.targets is None else torch.from_numpy(data.targets[places])
    return Batch(images, targets, numbers, context)


@lru_cache(maxsize=8)
def sample_order(size: int, seed: int, turn: int = 0) -> np.ndarray:
    """A permutation given by the seed and by how often the data has been through already."""
    return np.random.default_rng([turn, seed & 0xFFFFFFFF, size]).permutation(size)
