"""Conditions: the data under one shift at one severity, which a `Shift` makes or a part of corrupted data gives.

Every stream that takes shifts asks for conditions, so all of them read a clean data set, whose shifts are made on the
way, and one that is in parts already: CIFAR-10-C, ImageNet-C, ImageNet-3DCC, domains.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
import torch

from haptera.batch import Batch
from haptera.checks import is_number
from haptera.data import CorruptedImages, CorruptedPart, Data
from haptera.errors import HapteraError, check_keys
from haptera.families import HELD_OUT
from haptera.shifts import MakeShift, Shift
from haptera.streams.published import usual_order

log = logging.getLogger("haptera")

SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Condition:
    """The data under one shift at one severity.

    Attributes:
        data: whose images are read.
        shift: its name in the table.
        severity: NaN for a domain.
        make: what changes the images; None if they are changed already, or not at all.
    """

    data: Data
    shift: str
    severity: float
    make: Shift | None = None


@dataclass(frozen=True)
class ShiftMaker:
    """A shift that is made while data is read.

    Attributes:
        data: what is read.
        make: the shift of a severity.
        table: which published constants; None keeps the shift's own.
    """

    data: Data
    make: MakeShift
    table: str | None = None
    severities = SEVERITIES

    @cached_property
    def name(self) -> str:
        """What the table calls it."""
        return self.at(self.severities[0]).shift

    @property
    def hardest(self) -> float:
        """The severity of a stream that has only one."""
        return self.severities[-1]

    def at(self, severity: float) -> Condition:
        """Return the data under this shift."""
        if self.table is None:
            shift = self.make(severity)
        else:
            try:
                shift = self.make(severity, table=self.table)  # type: ignore[call-arg]
            except TypeError as error:
                raise HapteraError(f"table is {self.table!r}, and {self.make!r} takes none: {error}") from error
        return Condition(self.data, shift.name, shift.severity, shift)


@dataclass(frozen=True)
class ShiftParts:
    """A shift that data has been under already, with a part for each severity; a domain has one part without any.

    Attributes:
        name: what the table calls it.
        parts: by severity.
    """

    name: str
    parts: tuple[CorruptedPart, ...]

    @property
    def severities(self) -> tuple[float, ...]:
        """Those that are there."""
        return tuple(part.severity for part in self.parts)

    @property
    def hardest(self) -> float:
        """The severity of a stream that has only one."""
        return self.severities[-1]

    def at(self, severity: float) -> Condition:
        """Return the part of a severity."""
        if not is_number(severity):
            raise HapteraError(f"severity of {self.name} is {severity!r}; a number was expected")
        for part in self.parts:
            if part.severity == severity or (isnan(part.severity) and isnan(severity)):
                return Condition(part.data, part.shift, part.severity)
        if isnan(self.parts[0].severity):
            raise HapteraError(f"severity {severity:g} was asked for, and {self.name} has no severities; leave it out")
        there = ", ".join(f"{each:g}" for each in self.severities)
        raise HapteraError(f"severity {severity:g} of {self.name} is not in the data; there are {there}")


Choice = ShiftMaker | ShiftParts


def find_parts(data: CorruptedImages, shifts: Sequence[Any] | None, stream: str) -> list[ShiftParts]:
    """Return shifts of data in parts, those with these names; by default all but hold-out ones, in the usual order."""
    by_name: dict[str, list[CorruptedPart]] = {}
    for part in data.parts:
        by_name.setdefault(part.shift, []).append(part)
    if shifts is None:
        names = usual_order(name for name in by_name if name not in HELD_OUT) or usual_order(by_name)
        if left_out := [name for name in HELD_OUT if name in by_name and name not in names]:
            log.info("the stream %r leaves out hold-out shifts: %s", stream, ", ".join(left_out))
    else:
        names = [shift_name(shift) for shift in shifts]
        check_keys(f"shift of {data.name}", names, by_name)
    return [ShiftParts(name, tuple(sorted(by_name[name], key=lambda part: part.severity))) for name in names]


def shift_name(shift: MakeShift | str) -> str:
    """Return the name of a shift, of its class or of its `at`."""
    return shift if isinstance(shift, str) else getattr(shift, "name", None) or shift(SEVERITIES[0]).name


def read_conditions(
    conditions: Sequence[Condition], own: np.ndarray, places: np.ndarray, ids: np.ndarray, seed: int
) -> Batch:
    """Return samples, each under its own condition, as one batch; a data set that several share is read once.

    Args:
        conditions: to choose from.
        own: `(batch,)`, which of them each sample is under.
        places: `(batch,)`, its position in the data of its condition.
        ids: `(batch,)`, what the randomness depends on.
        seed: of the shifts.
    """
    used = {choice: np.flatnonzero(own == choice) for choice in np.unique(own).tolist()}
    by_data: dict[int, list[int]] = {}
    for choice in used:
        by_data.setdefault(id(conditions[choice].data), []).append(choice)
    images, targets = torch.empty(0), torch.empty(len(own), dtype=torch.int64)
    for choices in by_data.values():
        data, rows = conditions[choices[0]].data, np.sort(np.concatenate([used[choice] for choice in choices]))
        some = data.images(places[rows])
        images = images if len(images) else some.new_empty((len(own), *some.shape[1:]))
        images[torch.from_numpy(rows)] = some
        if data.targets is not None:
            targets[torch.from_numpy(rows)] = torch.from_numpy(data.targets[places[rows]])
    numbers = torch.from_numpy(ids)
    for choice, rows in used.items():
        if (make := conditions[choice].make) is not None:
            chosen = torch.from_numpy(rows)
            images[chosen] = make(images[chosen], numbers[chosen], seed)
    labelled = conditions[0].data.targets is not None
    context: dict[str, object] = {
        "shift": np.array([conditions[choice].shift for choice in own]),
        "severity": np.array([conditions[choice].severity for choice in own]),
    }
    return Batch(images, targets if labelled else None, numbers, context)
