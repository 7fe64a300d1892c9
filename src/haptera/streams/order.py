"""Once through a data set in an order, or under a choice of shifts, that a model was not promised.

`Mixed` shows every image under another shift at another severity; `Correlated` lets classes come in runs.
Source: settings of the literature on test-time adaptation to streams that are not i.i.d.; `Correlated` splits classes
over slots as NOTE (Gong et al. 2022) and RoTTA (Yuan et al. 2023) do, with RoTTA's number of slots.
Differs: within a slot the samples are mixed, where RoTTA's code shows one class after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from zlib import crc32

import numpy as np
import torch

from haptera.batch import Batch, check_index
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.shifts import MakeShift, SampleRandom, Shift
from haptera.streams.base import DataStream, read
from haptera.streams.sequence import SEVERITIES, all_shifts

WAYS = ("dirichlet", "sorted")
MOST_SLOTS = 100
SALT = crc32(b"mixed")


@dataclass(frozen=True)
class Mixed(DataStream):
    """Every image under another shift and severity, drawn by the seed and the number of the sample.

    `shift` and `severity` in the context are one value for each sample.

    Args:
        data: what is read.
        shifts: classes of shifts to draw from; by default all of the catalog but hold-out ones.
        severities: from 0 to 5, to draw from.
    """

    shifts: Sequence[MakeShift] = field(default_factory=all_shifts)
    severities: Sequence[float] = SEVERITIES
    name: str = field(default="mixed", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shifts or not self.severities:
            raise HapteraError(f"the stream {self.name!r} needs at least one shift and one severity")
        _ = self._choices

    @property
    def context(self) -> dict[str, object]:
        """Return what is known about every sample: nothing, before it is drawn."""
        return {}

    @cached_property
    def _choices(self) -> list[Shift]:
        """Every shift at every severity."""
        return [shift(severity) for shift in self.shifts for severity in self.severities]

    def chosen(self, ids: np.ndarray) -> np.ndarray:
        """Return `(len(ids),)`, which of all shifts at all severities each sample is under."""
        draws = SampleRandom(ids.tolist(), self.seed, SALT).uniform().numpy().astype(np.float64)
        return (draws * len(self._choices)).astype(np.int64)

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        size = len(self.data)
        places = self.order(size)[self.places(index, size)]
        clean = read(self.data, places, None, self.data.rows[places], self.seed, {})
        chosen = self.chosen(clean.ids.numpy())
        images = clean.inputs.clone()
        for choice in np.unique(chosen):
            rows = torch.from_numpy(np.flatnonzero(chosen == choice))
            images[rows] = self._choices[choice](images[rows], clean.ids[rows], self.seed)
        shifts = [self._choices[choice] for choice in chosen]
        context = {
            "shift": np.array([shift.name for shift in shifts]),
            "severity": np.array([shift.severity for shift in shifts]),
        }
        return Batch(images, clean.targets, clean.ids, context)


@dataclass(frozen=True)
class Correlated(DataStream):
    """The data in an order in which neighbours share their class.

    Args:
        data: what is read; it needs labels.
        by: the shift it is under, if any.
        how: `sorted`, class after class, or `dirichlet`: every class is split over slots in proportions drawn from a
            Dirichlet distribution, and one slot comes after the other.
        delta: concentration of that distribution; the smaller, the fewer slots a class is found in.
        slots: how many; by default as many as there are classes, at most 100.
    """

    by: Shift | None = None
    how: str = "dirichlet"
    delta: float = 0.1
    slots: int | None = None
    name: str = field(default="correlated", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.targets is None:
            raise HapteraError(f"the stream {self.name!r} orders samples by class, and {self.data.name} has no labels")
        if self.by is not None and not isinstance(self.by, Shift):
            raise HapteraError(f"by of the stream {self.name!r} is {self.by!r}; a shift, such as Contrast(5), or None")
        if self.how not in WAYS:
            raise unknown(f"value for how of the stream {self.name!r}:", str(self.how), WAYS)
        check_number(f"delta of the stream {self.name!r}", self.delta, above=0, below=inf)
        if self.slots is not None:
            check_whole_number(f"slots of the stream {self.name!r}", self.slots)

    @property
    def shift(self) -> Shift | None:
        """The shift given."""
        return self.by

    def order(self, size: int, turn: int = 0) -> np.ndarray:
        """Return `(size,)`, the same for every turn."""
        return self._order

    @cached_property
    def _order(self) -> np.ndarray:
        targets = np.asarray(self.data.targets)
        before = super().order(len(targets))
        if self.how == "sorted":
            return before[np.argsort(targets[before], kind="stable")]
        random = np.random.default_rng([crc32(b"correlated"), self.seed & 0xFFFFFFFF, len(targets)])
        slot = np.empty(len(targets), np.int64)
        classes = np.unique(targets)
        slots = self.slots or min(len(classes), MOST_SLOTS)
        for label in classes:
            members = before[targets[before] == label]
            shares = random.dirichlet(np.full(slots, float(self.delta)))
            ends = np.round(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
            for number, some in enumerate(np.split(members, ends)):
                slot[some] = number
        # The order within a slot is drawn anew: by `before`, a class that runs ahead in it would still come in runs.
        within = random.permutation(len(targets)) if self.shuffle else before
        return within[np.argsort(slot[within], kind="stable")]
