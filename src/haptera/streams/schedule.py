"""When each shift comes: in several orders (`ContinualOrders`), or severity up and down (`Gradual`).

Source: settings of the literature on continual test-time adaptation: ten orders of the corruptions, each with a fresh
adapter, and severities 1 to 5 and back for one corruption after the other, with no reset.
The fifteen corruptions come in the ten published orders of CoTTA; other shifts in permutations by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import factorial, isnan
from typing import TypeVar

import numpy as np

from haptera.batch import Batch, Stream
from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.streams.base import Parts
from haptera.streams.condition import Choice, Condition
from haptera.streams.published import PUBLISHED, USUAL
from haptera.streams.sequence import Continual, Steps
from haptera.streams.shift_stream import ShiftStream

ORDERS = 0x0DE5

Item = TypeVar("Item")


def permutations(items: Sequence[Item], count: int = 10, seed: int = 0) -> list[tuple[Item, ...]]:
    """Return different orders of the items, the k-th the same for any count; fewer if there are no more.

    >>> permutations("abc", 2) == permutations("abc", 5)[:2]
    True
    >>> len(permutations("abc", 10))
    6
    """
    random = np.random.default_rng([ORDERS, seed & 0xFFFFFFFF, len(items)])
    count = min(count, factorial(len(items)))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(random.permutation(len(items)).tolist())] = None
    return [tuple(items[place] for place in order) for order in found]


@dataclass(frozen=True)
class _Order(Continual):
    """One order, counted from 1."""

    number: int = field(default=1, kw_only=True)

    @property
    def label(self) -> str:
        """Return a name such as `order 3`."""
        return f"order {self.number}"

    def __getitem__(self, index: int) -> Batch:
        batch = super().__getitem__(index)
        return Batch(batch.inputs, batch.targets, batch.ids, {**batch.context, "order": self.number})


@dataclass(frozen=True)
class ContinualOrders(Parts, ShiftStream):
    """One shift after the other at one severity, in several orders; each order is a part with a fresh adapter.

    If the shifts are the fifteen corruptions, the first ten orders are the published ones of CoTTA; any others are
    drawn by the seed. The context has the key `order`, from 1.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts; names, where data is in parts.
        severity: from 0 to 5; by default 5, or the largest that is there.
        orders: how many orders; no two are the same, so few shifts have fewer.
    """

    severity: float | None = None
    orders: int = 10
    name: str = field(default="continual_orders", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole_number(f"orders of the stream {self.name!r}", self.orders)
        _ = self._orders_of_shifts

    @cached_property
    def _orders_of_shifts(self) -> list[tuple[int, ...]]:
        """Return each order as places in the shifts."""
        names = [choice.name for choice in self._choices]
        places = tuple(range(len(names)))
        if sorted(names) != sorted(USUAL):
            return permutations(places, self.orders, self.seed)
        published = [tuple(names.index(name) for name in order) for order in PUBLISHED]
        drawn = [order for order in permutations(places, self.orders, self.seed) if order not in published]
        return [*published, *drawn][: self.orders]

    def parts(self) -> list[Stream]:
        """One stream per order."""
        shifts = self.shifts or [choice.name for choice in self._choices]
        return [
            _Order(
                self.data,
                tuple(shifts[place] for place in order),
                self.severity,
                **self.settings(),
                table=self.table,
                number=number,
            )
            for number, order in enumerate(self._orders_of_shifts, 1)
        ]


@dataclass(frozen=True)
class Gradual(Steps):
    """The data under one shift after the other, the severity of each going up and down; nothing is reset.

    Samples repeat, so the randomness of a shift depends on the position in the stream, and `context["sample"]`
    is the sample's number in the data set. No batch holds two shifts or severities.

    Args:
        data: what is read, again and again, each time in another order; a data set whose images are shifted meanwhile,
            or one that is corrupted already, in parts.
        shifts: classes of shifts; names, where data is in parts.
        severities: the steps of each shift, from 0 to 5; by default up to 5 and back, through those that are there.
        samples_per_step: how many samples come at each severity; by default the whole data set.
    """

    severities: Sequence[float] | None = None
    samples_per_step: int | None = None
    name: str = field(default="gradual", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples_per_step is not None:
            check_whole_number(f"samples_per_step of the stream {self.name!r}", self.samples_per_step)

    def steps(self) -> list[Condition]:
        """Every shift at every severity."""
        if self.severities is not None:
            return self.conditions(self.severities)
        return [choice.at(severity) for choice in self._choices for severity in self._up_and_down(choice)]

    def _up_and_down(self, choice: Choice) -> Sequence[float]:
        up = choice.severities
        if isnan(up[0]):
            raise HapteraError(
                f"the stream {self.name!r} goes through severities, and {choice.name} has none; "
                "continual goes through domains"
            )
        return [*up, *up[-2::-1]]

    @property
    def turn_sizes(self) -> Sequence[int]:
        """How many samples come at each severity."""
        if self.samples_per_step is None:
            return super().turn_sizes
        return [self.samples_per_step] * len(self._steps)
