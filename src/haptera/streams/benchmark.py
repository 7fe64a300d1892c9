"""CCC as a benchmark: walks at several difficulties and speeds, in several random orders, each with a fresh adapter.

Source: thesis chapter 4: 3 difficulties x 3 speeds (1,000, 2,000 and 5,000 images per step) x 3 seeds, of 7.5 million
images each. Shifts that can never be as hard as a difficulty asks are left out of its walks, as the public generator
does; which ones is seen from the one calibration. `benchmark_accuracy` is the mean that is reported.
Differs: by default a tenth of the speeds and 20,000 images in each walk, which is one path or more at any speed.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from haptera.batch import Batch, Stream
from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.streams.base import Parts, Reader
from haptera.streams.calibration import DIFFICULTIES, Calibration
from haptera.streams.walk import CCC

log = logging.getLogger("haptera")

APART = 1_000_003
"""Between the seeds of two walks."""


@dataclass(frozen=True)
class _Walk(CCC):
    """One walk, counted from 1."""

    number: int = field(default=1, kw_only=True)

    @property
    def walk_seed(self) -> int:
        """The seed of the walk: the first walk is that of `ccc`, the others are none of another small seed's."""
        return self.seed + (self.number - 1) * APART

    @property
    def label(self) -> str:
        """Return a name such as `easy, speed 1000, walk 2`."""
        return f"{self.difficulty}, speed {self.speed}, walk {self.number}"

    def __getitem__(self, index: int) -> Batch:
        batch = super().__getitem__(index)
        context = {**batch.context, "speed": self.speed, "walk": self.number}
        return Batch(batch.inputs, batch.targets, batch.ids, context)


@dataclass(frozen=True)
class CCCBenchmark(Parts, Reader):
    """Walks at every difficulty and speed, in several random orders; each is a part with a fresh adapter.

    The context has the keys `difficulty` (the accuracy that the yardstick should keep), `speed` and `walk`, from 1.

    Args:
        data: what is shown; the data of the calibration.
        calibration: accuracies of a fixed model, from `calibrate`.
        difficulties: `easy`, `medium`, `hard`, or accuracies that the fixed model should keep.
        speeds: images per step of a path; 1,000, 2,000 and 5,000 are published.
        walks: how many walks for each difficulty and speed.
        length: how many images in each walk.
        rule: how a path is chosen: `steady`, `text` or `code`.
    """

    calibration: Calibration
    difficulties: Sequence[str | float] = tuple(DIFFICULTIES)
    speeds: Sequence[int] = (100, 200, 500)
    walks: int = 3
    length: int = 20_000
    rule: str = "steady"
    name: str = field(default="ccc_benchmark", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole_number(f"walks of the stream {self.name!r}", self.walks)
        for key in ("difficulties", "speeds"):
            values = getattr(self, key)
            if isinstance(values, str) or not values or len(set(values)) < len(values):
                raise HapteraError(f"{key} of the stream {self.name!r} are {values!r}; a list, each once, was expected")
        _ = self._walks

    def parts(self) -> list[Stream]:
        """One stream per difficulty, speed and walk."""
        return list(self._walks)

    @cached_property
    def _walks(self) -> list[_Walk]:
        settings: dict[str, Any] = self.settings() | {"length": self.length, "rule": self.rule}
        within = {difficulty: self._within_reach(difficulty) for difficulty in self.difficulties}
        return [
            _Walk(self.data, within[difficulty], difficulty, speed, number=number, **settings)
            for difficulty, speed, number in product(self.difficulties, self.speeds, range(1, self.walks + 1))
        ]

    def _within_reach(self, difficulty: str | float) -> Calibration:
        """Return the calibration of those shifts that alone can be as hard as that."""
        left_out = self.calibration.out_of_reach(difficulty)
        names = [name for name in self.calibration.shifts if name not in left_out]
        if len(names) < 2:
            reached = f"only {names[0]}" if names else "no shift"
            raise HapteraError(
                f"a walk of the stream {self.name!r} needs two shifts that alone are as hard as {difficulty!r}, and "
                f"{reached} is; calibrate with more shifts, or leave this difficulty out of difficulties"
            )
        if left_out:
            log.info("the stream %r leaves out of %s: %s", self.name, difficulty, ", ".join(left_out))
        counts = {pair: own for pair, own in self.calibration.counts.items() if set(pair) <= set(names)}
        return replace(self.calibration, counts=counts)
