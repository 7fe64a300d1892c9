"""Through a data set shift by shift, with a fresh adapter for each (`Corruptions`) or without (`Continual`).

Source: thesis chapters 2 (each corruption alone) and 4 (one after the other).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast.batch import Batch, Stream, check_batch_size
from holdfast.catalog import entries, find
from holdfast.data import Classes, Data
from holdfast.errors import HoldfastError
from holdfast.shifts import Shift
from holdfast.streams.base import DataStream, read, sample_order

SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)


def all_shifts() -> tuple[type[Shift], ...]:
    """Every shift of the catalog."""
    return tuple(find("shifts", name) for name in entries("shifts"))


@dataclass(frozen=True)
class Clean(DataStream):
    """The data as it is."""

    name: str = field(default="clean", kw_only=True)


@dataclass(frozen=True)
class Shifted(DataStream):
    """The data under one shift."""

    by: Shift
    name: str = field(default="shifted", kw_only=True)

    @property
    def shift(self) -> Shift | None:
        """The shift given."""
        return self.by

    @property
    def label(self) -> str:
        """Such as `contrast 4`."""
        return f"{self.by.name} {self.by.severity:g}"


@dataclass(frozen=True)
class _Many(Stream):
    """What the two have in common: one data set under several shifts."""

    data: Data
    shifts: Sequence[type[Shift]] = field(default_factory=all_shifts)
    batch_size: int = field(default=64, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    shuffle: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if not self.shifts:
            raise HoldfastError(f"the stream {self.name!r} needs at least one shift")
        if not isinstance(self.data, Data):
            raise HoldfastError(
                f"the stream {self.name!r} would corrupt {getattr(self.data, 'name', 'data')} twice: "
                "it is already corrupted on disk; the stream 'directory' reads it as it is"
            )

    @property
    def classes(self) -> Classes | None:
        """How targets relate to the model's classes."""
        return self.data.classes

    @property
    def _batches(self) -> int:
        return -(-len(self.data) // self.batch_size)


@dataclass(frozen=True)
class Corruptions(_Many):
    """The data under every shift at every severity; each is a part with a fresh adapter.

    Args:
        data: what is read.
        shifts: classes of shifts; all of the catalog by default.
        severities: from 0 to 5.
    """

    severities: Sequence[float] = SEVERITIES
    name: str = field(default="corruptions", kw_only=True)

    def parts(self) -> list[Stream]:
        """One stream per shift and severity."""
        return [
            Shifted(
                self.data,
                shift(severity),
                name=self.name,
                batch_size=self.batch_size,
                seed=self.seed,
                shuffle=self.shuffle,
            )
            for shift in self.shifts
            for severity in self.severities
        ]

    @property
    def samples(self) -> int:
        """The number of samples in all parts."""
        return len(self.data) * len(self.shifts) * len(self.severities)

    def __len__(self) -> int:
        return self._batches * len(self.shifts) * len(self.severities)

    def __getitem__(self, index: int) -> Batch:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of a stream with {len(self)} batches")
        part, position = divmod(index, self._batches)
        return self.parts()[part][position]


@dataclass(frozen=True)
class Continual(_Many):
    """The data under one shift after the other at one severity; nothing says when the shift changes.

    Samples repeat, so the randomness of a shift depends on the position in the stream, and `context["sample"]`
    is the sample's number in the data set. No batch holds two shifts.
    """

    severity: float = 5.0
    name: str = field(default="continual", kw_only=True)

    @property
    def samples(self) -> int:
        """The number of samples in all."""
        return len(self.data) * len(self.shifts)

    def __len__(self) -> int:
        return self._batches * len(self.shifts)

    def __getitem__(self, index: int) -> Batch:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of a stream with {len(self)} batches")
        turn, batch = divmod(index, self._batches)
        size = len(self.data)
        order = sample_order(size, self.seed, turn) if self.shuffle else np.arange(size)
        inside = np.arange(batch * self.batch_size, min((batch + 1) * self.batch_size, size))
        shift, places = self.shifts[turn](self.severity), order[inside]
        context = {"shift": shift.name, "severity": shift.severity, "sample": self.data.rows[places]}
        return read(self.data, places, shift, inside + turn * size, self.seed, context)
