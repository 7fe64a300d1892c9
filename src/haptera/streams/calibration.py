"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". `haptera.run.calibrate` measures, keeps and
reads it.
"""

from dataclasses import dataclass, field

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.files.fingerprint import fingerprint

DIFFICULTIES = {"easy": 0.447, "medium": 0.223, "hard": 0.025}
"""Shares of the way from chance to clean accuracy: 34, 17 and 2 % for a ResNet-50 with 76.1 % among 1,000 classes."""


FINEST = 1000
"""The most steps of severity that a grid can have."""


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes:
        counts: (first shift, second shift) -> `(grid, grid)` int, right answers at severities (row, column) x step.
        samples: out of how many.
        step: between severities.
        clean: right answers on clean data.
        classes: how many the model chooses from.
        flip: whether images were mirrored at random, as the stream does.
        crop: by which share of the side they were moved at random.
        prints: fingerprints of the model and of the data.
    """

    counts: dict[tuple[str, str], np.ndarray]
    samples: int
    step: float
    clean: int
    classes: int
    flip: bool
    crop: float
    prints: dict[str, str] = field(default_factory=dict)

    @property
    def shifts(self) -> list[str]:
        """The names of the shifts, in order."""
        return list(dict.fromkeys(first for first, _ in self.counts))

    def target(self, difficulty: str | float) -> float:
        """Return the accuracy of a difficulty, which has a name or is an accuracy itself."""
        if isinstance(difficulty, str):
            if difficulty not in DIFFICULTIES:
                raise unknown("difficulty", difficulty, DIFFICULTIES)
            chance = 1 / self.classes
            return chance + DIFFICULTIES[difficulty] * (self.clean / self.samples - chance)
        if not 0 <= difficulty <= 1:
            raise HapteraError(f"difficulty is {difficulty}; an accuracy from 0 to 1, or {', '.join(DIFFICULTIES)}")
        return float(difficulty)

    def out_of_reach(self, difficulty: str | float, near: float = 0.05) -> list[str]:
        """Return shifts that alone never make it as hard as that; a walk is easier where it begins or ends with one."""
        lowest = {first: counts[:, 0].min() / self.samples for (first, _), counts in self.counts.items()}
        return [name for name, accuracy in lowest.items() if accuracy > self.target(difficulty) + near]

    def fingerprint(self) -> str:
        """Return what changes when any count or setting does."""
        settings = (self.samples, self.step, self.clean, self.classes, self.flip, self.crop, self.prints)
        return fingerprint({" ".join(pair): matrix for pair, matrix in self.counts.items()}, settings)


def severity_grid(step: float) -> np.ndarray:
    """Return the severities of a calibration, from 0 to 5."""
    points = round(5 / step) if step > 5 / FINEST else 0
    if points < 1 or abs(points * step - 5) > 1e-9:
        raise HapteraError(f"step is {step}; a number that divides 5, such as 0.25, 0.5 or 1, was expected")
    return np.linspace(0, 5, points + 1)
