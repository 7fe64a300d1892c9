"""When each shift comes: in several orders (`ContinualOrders`), or severity up and down (`Gradual`).

Source: settings of the literature on continual test-time adaptation: ten orders of the corruptions, each with a fresh
adapter, and severities 1 to 5 and back for one corruption after the other, with no reset.
Differs: the orders are permutations by seed, not the ten published ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import factorial
from typing import TypeVar

import numpy as np

from haptera.batch import Batch, Stream, check_index
from haptera.checks import check_whole_number
from haptera.data import Classes, Data
from haptera.errors import HapteraError
from haptera.shifts import MakeShift
from haptera.streams.base import Parted, Settings, check_data, read
from haptera.streams.sequence import Continual, all_shifts

UP_AND_DOWN = (1.0, 2.0, 3.0, 4.0, 5.0, 4.0, 3.0, 2.0, 1.0)
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
class ContinualOrders(Parted):
    """One shift after the other at one severity, in several orders; each order is a part with a fresh adapter.

    The context has the key `order`, from 1.

    Args:
        data: what is read.
        shifts: classes of shifts; by default all of the catalog but hold-out ones.
        severity: from 0 to 5.
        orders: how many orders, drawn by the seed; no two are the same, so few shifts have fewer.
    """

    data: Data
    shifts: Sequence[MakeShift] = field(default_factory=all_shifts)
    severity: float = 5.0
    orders: int = 10
    name: str = field(default="continual_orders", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)
        check_whole_number(f"orders of the stream {self.name!r}", self.orders)
        if not self.shifts:
            raise HapteraError(f"the stream {self.name!r} needs at least one shift")

    def parts(self) -> list[Stream]:
        """One stream per order."""
        orders = permutations(tuple(self.shifts), self.orders, self.seed)
        return [
            _Order(self.data, order, self.severity, **self.settings(), number=number)
            for number, order in enumerate(orders, 1)
        ]


@dataclass(frozen=True)
class Gradual(Settings):
    """The data under one shift after the other, the severity of each going up and down; nothing is reset.

    Samples repeat, so the randomness of a shift depends on the position in the stream, and `context["sample"]`
    is the sample's number in the data set. No batch holds two shifts or severities.

    Args:
        data: what is read, again and again, each time in another order.
        shifts: classes of shifts; by default all of the catalog but hold-out ones.
        severities: the steps of each shift, from 0 to 5.
        samples_per_step: how many samples come at each severity; by default the whole data set.
    """

    data: Data
    shifts: Sequence[MakeShift] = field(default_factory=all_shifts)
    severities: Sequence[float] = UP_AND_DOWN
    samples_per_step: int | None = None
    name: str = field(default="gradual", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)
        if not self.shifts or not self.severities:
            raise HapteraError(f"the stream {self.name!r} needs at least one shift and one severity")
        if self.samples_per_step is not None:
            check_whole_number(f"samples_per_step of the stream {self.name!r}", self.samples_per_step)

    @property
    def samples(self) -> int:
        """The number of samples in all."""
        return self._steps * self._step_size

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes

    @property
    def _steps(self) -> int:
        return len(self.shifts) * len(self.severities)

    @property
    def _step_size(self) -> int:
        return self.samples_per_step or len(self.data)

    def __len__(self) -> int:
        return self._steps * self.batches(self._step_size)

    def sizes(self) -> np.ndarray:
        """Return `(batches,)`, how many samples each batch has."""
        one = [len(self.places(batch, self._step_size)) for batch in range(self.batches(self._step_size))]
        return np.tile(one, self._steps)

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        step, batch = divmod(index, self.batches(self._step_size))
        kind, rung = divmod(step, len(self.severities))
        shift = self.shifts[kind](self.severities[rung])
        ids = step * self._step_size + self.places(batch, self._step_size)
        places = self._places_at(ids)
        context = {"shift": shift.name, "severity": shift.severity, "sample": self.data.rows[places]}
        return read(self.data, places, shift, ids, self.seed, context)

    def _places_at(self, positions: np.ndarray) -> np.ndarray:
        """Return which samples of the data are at these positions, if it is read again and again."""
        size = len(self.data)
        turns, inside = np.divmod(positions, size)
        places = np.empty_like(positions)
        for turn in np.unique(turns):
            rows = turns == turn
            places[rows] = self.order(size, int(turn))[inside[rows]]
        return places
