"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". `haptera.run.calibrate` measures it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.files.fingerprint import fingerprint
from haptera.files.json import read_json
from haptera.files.npz import map_npy
from haptera.files.schema import FLAG, TEXT, Kind, check, list_of, number, shown, table_of, whole_number
from haptera.outputs_schema import CLASSES

DIFFICULTIES = {"easy": 0.447, "medium": 0.223, "hard": 0.025}
"""Shares of the way from chance to clean accuracy: 34, 17 and 2 % for a ResNet-50 with 76.1 % among 1,000 classes."""


FINEST = 1000
"""The most steps of severity that a grid can have."""
NAME = Kind("the name of a shift", lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w.:-]+", value)))
"""Pairs of shifts are names of files, which must not lead out of the folder."""
SETTINGS = {
    "shifts": list_of(NAME),
    "samples": whole_number(1),
    "step": number(0, 5),
    "clean": whole_number(),
    "classes": whole_number(2),
    "flip": FLAG,
    "crop": number(0, 1),
    "prints": table_of(TEXT),
}


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
        """An accuracy: of a difficulty by name, or as it is given."""
        if isinstance(difficulty, str):
            if difficulty not in DIFFICULTIES:
                raise unknown("difficulty", difficulty, DIFFICULTIES)
            chance = 1 / self.classes
            return chance + DIFFICULTIES[difficulty] * (self.clean / self.samples - chance)
        if not 0 <= difficulty <= 1:
            raise HapteraError(f"difficulty is {difficulty}; an accuracy from 0 to 1, or {', '.join(DIFFICULTIES)}")
        return float(difficulty)

    def out_of_reach(self, difficulty: str | float, near: float = 0.05) -> list[str]:
        """Shifts that alone never make it as hard as that; where a walk begins or ends with one, it is easier."""
        lowest = {first: counts[:, 0].min() / self.samples for (first, _), counts in self.counts.items()}
        return [name for name, accuracy in lowest.items() if accuracy > self.target(difficulty) + near]

    def fingerprint(self) -> str:
        """Changes when any count or setting does."""
        settings = (self.samples, self.step, self.clean, self.classes, self.flip, self.crop, self.prints)
        return fingerprint({" ".join(pair): matrix for pair, matrix in self.counts.items()}, settings)

    @classmethod
    def load(cls, folder: str | Path) -> "Calibration":
        """Read what `calibrate` wrote, once it is complete."""
        folder = Path(folder)
        settings = read_settings(folder)
        counts, points = {}, len(severity_grid(settings["step"]))
        for first in settings["shifts"]:
            for second in settings["shifts"]:
                path = folder / "pairs" / f"{first} {second}.npy"
                if first != second:
                    if not path.is_file():
                        raise HapteraError(
                            f"the calibration {folder} is not complete: {first}, {second} is missing; "
                            "the command that began it goes on from there"
                        )
                    counts[first, second] = _read_counts(path, points, settings["samples"])
        names = ("samples", "step", "clean", "classes", "flip", "crop", "prints")
        return cls(counts, **{name: settings[name] for name in names})


def severity_grid(step: float) -> np.ndarray:
    """Return the severities of a calibration, from 0 to 5."""
    points = round(5 / step) if step > 5 / FINEST else 0
    if points < 1 or abs(points * step - 5) > 1e-9:
        raise HapteraError(f"step is {step}; a number that divides 5, such as 0.25, 0.5 or 1, was expected")
    return np.linspace(0, 5, points + 1)


def read_settings(folder: Path) -> dict[str, Any]:
    """Return what `calibration.json` in a folder says."""
    path = folder / "calibration.json"
    if not path.is_file():
        command = f"haptera calibrate --model ... --data ... --out {folder}"
        raise HapteraError(f"there is no calibration in {folder}; make one with: {command}")
    settings = check(read_json(path), SETTINGS, str(path))
    for name in ("clean", "classes"):
        if settings[name] > (settings["samples"] if name == "clean" else CLASSES):
            raise HapteraError(f"{path}: {name} is {settings[name]:,}, of {settings['samples']:,} samples")
    if len(set(settings["shifts"])) < max(2, len(settings["shifts"])):
        raise HapteraError(f"{path}: shifts are {shown(settings['shifts'])}; at least two, each once, were expected")
    try:
        severity_grid(settings["step"])
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error
    return settings


def _read_counts(path: Path, points: int, samples: int) -> np.ndarray:
    """Read the counts of a pair: right answers out of `samples` at each of `points` x `points` severities."""
    counts = np.array(map_npy(path))
    if counts.shape != (points, points) or counts.dtype.kind not in "iu":
        raise HapteraError(f"{path} holds {counts.dtype} {counts.shape}; counts ({points}, {points}) were expected")
    if ((counts < 0) | (counts > samples)).any():
        wrong = counts[(counts < 0) | (counts > samples)][0]
        raise HapteraError(f"{path} counts {wrong:,} right answers; 0 to {samples:,} was expected")
    return counts.astype(np.int64)
