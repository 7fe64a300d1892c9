"""A data set shift by shift, with a fresh adapter for each (`Corruptions`) or without (`Continual`).

Source: thesis chapters 2 (each corruption alone) and 4 (one after the other). `Directory` is `Corruptions` for data
that somebody else has corrupted already; the others take such data too.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from haptera.batch import Batch, Stream
from haptera.data import CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.streams.base import Parts, Turns, read
from haptera.streams.condition import Condition
from haptera.streams.passes import Part, Shifted
from haptera.streams.shift_stream import OrderedShifts


@dataclass(frozen=True)
class Corruptions(Parts, OrderedShifts):
    """The data under every shift at every severity; each is a part with a fresh adapter.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts, or `at` of shifts; names, where data is in parts.
        severities: from 0 to 5; by default 1 to 5, or those that are there.
    """

    severities: Sequence[float] | None = None
    name: str = field(default="corruptions", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._conditions

    @cached_property
    def _conditions(self) -> list[Condition]:
        return self.conditions(self.severities)

    def parts(self) -> list[Stream]:
        """One stream per shift and severity."""
        return [self._part(condition) for condition in self._conditions]

    def _part(self, condition: Condition) -> Stream:
        if condition.make is not None:
            return Shifted(condition.data, condition.make, **self.settings())
        return Part(condition.data, condition.shift, condition.severity, **self.settings())


@dataclass(frozen=True)
class Directory(Corruptions):
    """Data that is in parts already, such as a folder in the layout of ImageNet-C or CIFAR-10-C, or of domains."""

    name: str = field(default="directory", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.data, Data):
            raise HapteraError(
                f"the stream {self.name!r} reads a folder corruption/severity/class/file, one .npy per corruption "
                f"with labels.npy, or domain/class/file; {self.data.name} is none of them"
            )
        super().__post_init__()


@dataclass(frozen=True)
class Steps(Turns, OrderedShifts):
    """The data under one condition after the other; a subclass writes `steps`.

    Samples repeat, each time in another order, so the randomness of a shift depends on the position in the stream, and
    `context["sample"]` is the sample's number in the data set. No batch holds two shifts or severities. Domains have
    samples of their own, and steps of different sizes.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._steps

    @abstractmethod
    def steps(self) -> list[Condition]:
        """What the data is under in each step."""

    @cached_property
    def _steps(self) -> list[Condition]:
        return self.steps()

    @property
    def turn_sizes(self) -> Sequence[int]:
        """How many samples each step has."""
        return self._sizes

    @cached_property
    def _sizes(self) -> list[int]:
        return [len(step.data) for step in self._steps]

    @cached_property
    def _starts(self) -> list[tuple[int, int, int]]:
        """Return for each step how many samples came before, of which pool it reads, and how many came of that."""
        paired = not isinstance(self.data, CorruptedImages) or self.data.paired
        pools: dict[str, int] = {}
        came: dict[int, int] = {}
        starts, before = [], 0
        for step, size in zip(self._steps, self.turn_sizes, strict=True):
            pool = 0 if paired else pools.setdefault(f"{step.shift} {step.severity}", len(pools))
            starts.append((before, pool, came.get(pool, 0)))
            came[pool] = came.get(pool, 0) + size
            before += size
        return starts

    def __getitem__(self, index: int) -> Batch:
        number, inside = self.locate(index)
        step, (before, pool, came) = self._steps[number], self._starts[number]
        size = len(step.data)
        turns, inner = np.divmod(came + inside, size)
        places = np.empty_like(inside)
        for turn in np.unique(turns):
            rows = turns == turn
            places[rows] = self.order_samples(size, step.data.targets, int(turn), pool)[inner[rows]]
        context = {"shift": step.shift, "severity": step.severity, "sample": step.data.rows[places]}
        return read(step.data, places, step.make, before + inside, self.seed, context)


@dataclass(frozen=True)
class Continual(Steps):
    """The data under one shift after the other at one severity; nothing says when the shift changes.

    Samples repeat, so the randomness of a shift depends on the position in the stream, and `context["sample"]`
    is the sample's number in the data set. No batch holds two shifts.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts; names, where data is in parts.
        severity: from 0 to 5; by default 5, or the largest that is there.
    """

    severity: float | None = None
    name: str = field(default="continual", kw_only=True)

    def steps(self) -> list[Condition]:
        """Every shift at the severity."""
        if self.severity is not None:
            return self.conditions([self.severity])
        return [choice.at(choice.hardest) for choice in self._choices]
