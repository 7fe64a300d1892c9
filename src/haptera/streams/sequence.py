"""A data set shift by shift, with a fresh adapter for each (`Corruptions`) or without (`Continual`).

Source: thesis chapters 2 (each corruption alone) and 4 (one after the other). `Directory` reads data that somebody else
has corrupted already from disk, as it is, with a fresh adapter for each part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from haptera.batch import Batch, Stream, check_index
from haptera.catalog import entries, find
from haptera.data import Classes, CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.shifts import MakeShift, Shift
from haptera.streams.base import DataStream, Parted, Settings, check_data, read

SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)


def all_shifts() -> tuple[type[Shift], ...]:
    """Every shift of the catalog that is meant for testing; hold-out ones are for choosing settings."""
    every = [find("shifts", name) for name in entries("shifts")]
    return tuple(shift for shift in every if shift.by_default and not shift.holdout)


@dataclass(frozen=True)
class Clean(DataStream):
    """The data as it is.

    Args:
        data: what is read.
        called: what the column `shift` says of it; another word than clean for data that is not what the model was made
            for, such as the images of a new camera beside those of the old one: then it is a shift, without a severity.
    """

    called: str = field(default="clean", kw_only=True)
    name: str = field(default="clean", kw_only=True)

    @property
    def context(self) -> dict[str, object]:
        """Return what is known about every sample."""
        return super().context if self.called == "clean" else {"shift": self.called, "severity": float("nan")}


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
        """Return a name such as `contrast 4`."""
        return f"{self.by.name} {self.by.severity:g}"


@dataclass(frozen=True)
class Corruptions(Parted):
    """The data under every shift at every severity; each is a part with a fresh adapter.

    Args:
        data: what is read.
        shifts: classes of shifts, or `at` of shifts; by default all of the catalog but hold-out ones.
        severities: from 0 to 5.
    """

    data: Data
    shifts: Sequence[MakeShift] = field(default_factory=all_shifts)
    severities: Sequence[float] = SEVERITIES
    name: str = field(default="corruptions", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)
        if not self.shifts or not self.severities:
            raise HapteraError(f"the stream {self.name!r} needs at least one shift and one severity")

    def parts(self) -> list[Stream]:
        """One stream per shift and severity."""
        shifts = [shift(severity) for shift in self.shifts for severity in self.severities]
        return [Shifted(self.data, shift, **self.settings()) for shift in shifts]


@dataclass(frozen=True)
class Continual(Settings):
    """The data under one shift after the other at one severity; nothing says when the shift changes.

    Samples repeat, so the randomness of a shift depends on the position in the stream, and `context["sample"]`
    is the sample's number in the data set. No batch holds two shifts.
    """

    data: Data
    shifts: Sequence[MakeShift] = field(default_factory=all_shifts)
    severity: float = 5.0
    name: str = field(default="continual", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)
        if not self.shifts:
            raise HapteraError(f"the stream {self.name!r} needs at least one shift")

    @property
    def samples(self) -> int:
        """The number of samples in all."""
        return len(self.data) * len(self.shifts)

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes

    def __len__(self) -> int:
        return self.batches(len(self.data)) * len(self.shifts)

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`: those of one pass for each shift."""
        return np.tile(self.pass_sizes(len(self.data)), len(self.shifts))

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        size = len(self.data)
        turn, batch = divmod(index, self.batches(size))
        inside = self.places(batch, size)
        shift, places = self.shifts[turn](self.severity), self.order(size, turn)[inside]
        context = {"shift": shift.name, "severity": shift.severity, "sample": self.data.rows[places]}
        return read(self.data, places, shift, inside + turn * size, self.seed, context)


@dataclass(frozen=True)
class _Part(DataStream):
    """One corruption at one severity."""

    kind: str
    severity: float

    @property
    def context(self) -> dict[str, object]:
        """Return the shift and severity that the folder names."""
        return {"shift": self.kind, "severity": self.severity}

    @property
    def label(self) -> str:
        """Return a name such as `contrast 4`."""
        return f"{self.kind} {self.severity:g}"


@dataclass(frozen=True)
class Directory(Parted):
    """Every corruption and severity of a folder in the layout of ImageNet-C or CIFAR-10-C."""

    data: CorruptedImages
    name: str = field(default="directory", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.data, CorruptedImages):
            raise HapteraError(
                f"the stream {self.name!r} reads a folder corruption/severity/class/file, or one .npy per corruption "
                f"with labels.npy; {self.data.name} is neither"
            )

    def parts(self) -> list[Stream]:
        """One stream per corruption and severity."""
        return [_Part(part.data, part.shift, part.severity, **self.settings()) for part in self.data.parts]
