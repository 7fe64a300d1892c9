"""Streams of data under several shifts: which ones, at which severities, in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from haptera.catalog import entries, find
from haptera.data import Classes, CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.shifts import MakeShift, Shift
from haptera.streams.class_order import ClassOrder
from haptera.streams.condition import Choice, Condition, ShiftMaker, find_parts
from haptera.streams.published import PUBLISHED, USUAL, usual_order

Order = int | Sequence[str] | None


def all_shifts() -> tuple[type[Shift], ...]:
    """Every shift of the catalog that is meant for testing, in the usual order; hold-out ones are for choosing."""
    every = [find("shifts", name) for name in usual_order(entries("shifts"))]
    return tuple(shift for shift in every if shift.by_default and not shift.holdout)


@dataclass(frozen=True)
class ShiftStream(ClassOrder):
    """A stream of data under several shifts.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts, or `at` of shifts; names, where data is in parts. By default all but hold-out ones,
            in the usual order: gaussian_noise, shot_noise, ... jpeg_compression, then others by name.
        table: which published constants of the shifts, `imagenet` or `cifar`, where they are made.
    """

    data: Data | CorruptedImages
    shifts: Sequence[MakeShift | str] | None = None
    table: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.name, self.data)
        if self.shifts is not None and (isinstance(self.shifts, str) or not self.shifts):
            raise HapteraError(f"the stream {self.name!r} needs at least one shift, found {self.shifts!r}")
        for choice in self._choices:
            self.check_labels(choice.at(choice.hardest).data)

    @property
    def shift_names(self) -> list[str]:
        """The names of the shifts, in the order in which they come."""
        return [choice.name for choice in self._choices]

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes

    @cached_property
    def _choices(self) -> Sequence[Choice]:
        """Return the shifts, in the order in which they come."""
        return self.choose(self.shifts)

    def choose(self, shifts: Sequence[MakeShift | str] | None) -> Sequence[Choice]:
        """Return the shifts that are named, or all but hold-out ones."""
        if isinstance(self.data, CorruptedImages):
            if self.table is not None:
                raise HapteraError(f"table is {self.table!r}, and {self.data.name} is corrupted already; leave it out")
            return find_parts(self.data, shifts, self.name)
        made = [find("shifts", each) if isinstance(each, str) else each for each in (shifts or all_shifts())]
        return [ShiftMaker(self.data, make, self.table) for make in made]

    def conditions(self, severities: Sequence[float] | None) -> list[Condition]:
        """Return every shift at every severity, or at all that it has."""
        if severities is not None and not len(severities):
            raise HapteraError(f"the stream {self.name!r} needs at least one shift and one severity")
        return [
            choice.at(severity)
            for choice in self._choices
            for severity in (choice.severities if severities is None else severities)
        ]


def check_data(name: str, data: Any) -> None:
    """Refuse anything but data."""
    if not isinstance(data, Data | CorruptedImages):
        raise HapteraError(f"the stream {name!r} takes one data set, or one in parts; found {type(data).__name__}")


@dataclass(frozen=True)
class OrderedShifts(ShiftStream):
    """A stream whose shifts come in an order.

    Args:
        order: the number of one of the ten orders of CoTTA, 1 to 10, or the names of the shifts one after the other.
    """

    order: Order = field(default=None, kw_only=True)

    @cached_property
    def _choices(self) -> Sequence[Choice]:
        if self.order is None:
            return self.choose(self.shifts)
        if isinstance(self.order, Sequence):
            chosen = self.choose([self.order] if isinstance(self.order, str) else self.order)
            if self.shifts is not None:
                self._check_same([choice.name for choice in chosen])
            return chosen
        if self.order not in range(1, len(PUBLISHED) + 1):
            expected = f"1 to {len(PUBLISHED)}, or names of shifts"
            raise HapteraError(f"order of the stream {self.name!r} is {self.order!r}; {expected}, was expected")
        choices = self.choose(self.shifts)
        if others := [choice.name for choice in choices if choice.name not in USUAL]:
            raise HapteraError(
                f"order {self.order} of the stream {self.name!r} is published for {USUAL[0]}, ... {USUAL[-1]}; "
                f"it has no place for {others[0]}"
            )
        return sorted(choices, key=lambda choice: PUBLISHED[self.order - 1].index(choice.name))  # type: ignore[operator]

    def _check_same(self, names: Sequence[str]) -> None:
        """Refuse an order of other shifts than those that are given."""
        given = [choice.name for choice in self.choose(self.shifts)]
        if sorted(given) != sorted(names):
            odd = min(set(given) ^ set(names), default=names[0])
            raise HapteraError(
                f"order of the stream {self.name!r} names {', '.join(names)} and shifts are {', '.join(given)}; "
                f"{odd!r} is in one of them only"
            )
