"""In which order the samples of one pass come: mixed, or with classes in runs.

Source: settings of the literature on test-time adaptation to streams that are not i.i.d.; `dirichlet` splits classes
over slots as NOTE (Gong et al. 2022) and RoTTA (Yuan et al. 2023) do, with RoTTA's number of slots.
Differs: within a slot the samples are mixed, where RoTTA's code shows one class after the other.
Cost: a pass over the labels for each class and turn; the orders of a few turns are kept.
"""

from dataclasses import dataclass
from math import inf
from typing import Any
from zlib import crc32

import numpy as np

from haptera.checks import check_number, check_whole_number
from haptera.data import Data
from haptera.errors import HapteraError, check_keys
from haptera.streams.base import Settings

MIXED, DIRICHLET, SORTED = WAYS = ("mixed", "dirichlet", "sorted")
MOST_SLOTS = 100
MOST_TURNS = 4
"""How many orders are kept."""
SALT = crc32(b"correlated")


@dataclass(frozen=True, kw_only=True)
class ClassOrder(Settings):
    """The settings of streams whose samples can come in runs of a class.

    Args:
        labels: `mixed`; `sorted`, class after class; or `dirichlet`: every class is split over slots in proportions
            drawn from a Dirichlet distribution, and one slot comes after the other.
        delta: concentration of that distribution; the smaller, the fewer slots a class is found in.
        slots: how many; by default as many as there are classes, at most 100.
    """

    labels: str = MIXED
    delta: float = 0.1
    slots: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_keys(f"value for labels of the stream {self.name!r}:", [str(self.labels)], WAYS)
        check_number(f"delta of the stream {self.name!r}", self.delta, above=0, below=inf)
        if self.slots is not None:
            check_whole_number(f"slots of the stream {self.name!r}", self.slots)

    def settings(self) -> dict[str, Any]:
        """Return the settings to hand on to a part."""
        return super().settings() | {"labels": self.labels, "delta": self.delta, "slots": self.slots}

    def check_labels(self, data: Data) -> None:
        """Refuse data without labels where they decide the order."""
        if self.labels != MIXED and data.targets is None:
            raise HapteraError(f"the stream {self.name!r} orders samples by class, and {data.name} has no labels")

    def order_samples(self, size: int, targets: np.ndarray | None, turn: int = 0, pool: int = 0) -> np.ndarray:
        """Return `(size,)`, in which order samples with these targets are read, the `turn`-th time.

        Args:
            size: how many samples there are.
            targets: `(size,)`, their classes.
            turn: from 0.
            pool: a number that tells these samples from others that the stream reads.
        """
        if self.labels == MIXED or targets is None:
            return self.arrange(size, turn)
        kept: dict[tuple[int, int], np.ndarray] = self.__dict__.setdefault("_orders", {})
        found = kept.get((turn, pool))
        if found is None:
            if len(kept) >= MOST_TURNS:
                kept.pop(next(iter(kept)), None)
            found = kept[turn, pool] = self._by_class(targets, turn)
        return found

    def _by_class(self, targets: np.ndarray, turn: int) -> np.ndarray:
        before = self.arrange(len(targets), turn)
        if self.labels == SORTED:
            return before[np.argsort(targets[before], kind="stable")]
        again = [turn] if turn else []
        random = np.random.default_rng([SALT, self.seed & 0xFFFFFFFF, len(targets), *again])
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
