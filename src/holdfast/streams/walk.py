"""CCC, the continuously changing stream: two corruptions at a time, one fading while the next one grows.

Source: thesis chapter 4 and appendix C, algorithms 1 and 2, misprints mended (severities are i/4; t ← t + k). Every
Every step of a path shows `speed` images, drawn at random from the data, mirrored and moved at random. It is generated
while it is read: batch i needs the walk up to i, which is arithmetic on small matrices, and no image before it.
Differs: any data, any model as yardstick, three rules for the path (`holdfast.streams.path`), any length.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from holdfast.batch import Batch, check_index
from holdfast.catalog import find
from holdfast.data import Classes, Data
from holdfast.errors import HoldfastError
from holdfast.shifts import SampleRandom, Shift
from holdfast.streams.augment import augmented
from holdfast.streams.base import Settings, check_data
from holdfast.streams.calibration import Calibration
from holdfast.streams.path import Path, check_rule, find_path

SALT = 0xCCC
FADES = " > "


@dataclass(frozen=True)
class Stage:
    """One step of the walk: a run of images under two shifts."""

    first: str
    second: str
    severities: tuple[float, float]
    expected: float


@dataclass(frozen=True)
class CCC(Settings):
    """A walk through pairs of shifts at a steady difficulty.

    Args:
        data: what is shown; the data of the calibration.
        calibration: accuracies of a fixed model, from `calibrate`.
        difficulty: `easy`, `medium`, `hard`, or the accuracy that the fixed model shall keep.
        speed: images per step of a path; 1,000, 2,000 and 5,000 are published.
        length: how many images in all.
        rule: how a path is chosen: `steady`, `text` or `code`.
    """

    data: Data
    calibration: Calibration
    difficulty: str | float = "medium"
    speed: int = 1000
    length: int = 100_000
    rule: str = "steady"
    name: str = field(default="ccc", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.data, self.name)
        if self.calibration.prints.get("data", self.data.fingerprint()) != self.data.fingerprint():
            raise HoldfastError(f"the calibration was made on other data than {self.data.name}; calibrate on this data")
        check_rule(self.rule)
        for key in ("speed", "length"):
            if not isinstance(getattr(self, key), int) or getattr(self, key) < 1:
                raise HoldfastError(f"{key} is {getattr(self, key)!r}; a whole number of at least 1 was expected")
        self.calibration.target(self.difficulty)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.length

    def __len__(self) -> int:
        return self.batches(self.length)

    @property
    def classes(self) -> Classes | None:
        """How targets relate to the model's classes."""
        return self.data.classes

    @cached_property
    def _stages(self) -> list[Stage]:
        """The steps of the walk until there are images enough."""
        calibration, random = self.calibration, np.random.default_rng([self.seed & 0xFFFFFFFF, SALT])
        names, target = calibration.shifts, calibration.target(self.difficulty)
        paths: dict[tuple[str, str], Path] = {}
        stages: list[Stage] = []
        first = names[random.integers(len(names))]
        while len(stages) * self.speed < self.length:
            others = [name for name in names if name != first]
            second = others[random.integers(len(others))]
            counts = calibration.counts[first, second]
            if (first, second) not in paths:
                paths[first, second] = find_path(counts, calibration.samples, target, self.rule)
            for row, column in paths[first, second]:
                severities = (row * calibration.step, column * calibration.step)
                stages.append(Stage(first, second, severities, counts[row, column] / calibration.samples))
            first = second
        return stages[: -(-self.length // self.speed)]

    def walk(self) -> pd.DataFrame:
        """The steps: `first`, `second`, `severity_1`, `severity_2`, `expected` accuracy, and the `start` of each."""
        stages = self._stages
        return pd.DataFrame(
            {
                "start": np.arange(len(stages)) * self.speed,
                "first": [stage.first for stage in stages],
                "second": [stage.second for stage in stages],
                "severity_1": [stage.severities[0] for stage in stages],
                "severity_2": [stage.severities[1] for stage in stages],
                "expected": [stage.expected for stage in stages],
            }
        )

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        ids = torch.from_numpy(self.places(index, self.length))
        draws = SampleRandom(ids, self.seed, SALT).uniform(())
        places = (draws.double() * len(self.data)).long().clamp_(max=len(self.data) - 1).numpy()
        images = augmented(self.data.images(places), ids, self.seed, self.calibration.flip, self.calibration.crop)
        stages, steps = self._stages, ids.numpy() // self.speed
        names = []
        for step in np.unique(steps):
            stage, rows = stages[step], torch.from_numpy(np.flatnonzero(steps == step))
            for name, severity in zip((stage.first, stage.second), stage.severities, strict=True):
                shift: Shift = find("shifts", name)(severity)
                images[rows] = shift(images[rows], ids[rows], self.seed)
            names += [f"{stage.first}{FADES}{stage.second}"] * len(rows)
        context = {"shift": np.array(names), "sample": self.data.rows[places]}
        targets = None if self.data.targets is None else torch.from_numpy(self.data.targets[places])
        return Batch(images, targets, ids, context)
