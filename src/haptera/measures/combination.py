"""Combination: one accuracy without labels out of many estimates, chosen on some known corruptions, tried on others.

Candidates are the estimates of `label_free` as they are, and a line from each of them, and from the size of the shift,
to the accuracy: by least squares through clean data and the corruptions that choose. Each of these corruptions is left
out in turn, at all severities; a candidate counts by the inverse square of how far off it is on them.
The interval is from corruptions that neither chose nor fitted anything: their errors, relative to an offset plus the
predicted loss of accuracy, root mean square within each corruption, then Student's t over corruptions. It is exact for
a new shift whose relative error is normal, with the same spread as theirs and alike at all severities; it promises
nothing of a shift of another kind. The sampling error of both sets of images is added in quadrature.
Cost: a line for each candidate and corruption.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from haptera.measures.label_free import ESTIMATES
from haptera.statistics.intervals import LEVEL, Z95

SIZE = "size of the shift"
AS_THEY_ARE = tuple(ESTIMATES)
WITH_A_LINE = (*(name for name in ESTIMATES if name != "difference of confidences"), SIZE)
"""The difference of confidences is average confidence and a constant, so that both have the same line."""
LEAST_OFF = 1e-3
OFFSET = 0.02
"""The least offset: accuracy is not told more exactly than that on any shift."""
FEWEST = 4
"""Corruptions below which there is no interval."""


@dataclass(frozen=True)
class Candidate:
    """A way to tell accuracy: `intercept + slope * estimate`.

    Attributes:
        name: of the estimate, with "line of" before it where a line was fitted.
        estimate: what it is told from.
        intercept: of the line; 0 for an estimate as it is.
        slope: of the line; 1 for an estimate as it is.
        off: mean absolute error on the corruptions that choose, each left out in turn.
        weight: in the combination.
    """

    name: str
    estimate: str
    intercept: float
    slope: float
    off: float
    weight: float

    def accuracy(self, values: np.ndarray) -> np.ndarray:
        """Return accuracies, within 0 and 1."""
        return np.clip(self.intercept + self.slope * np.asarray(values, float), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Combination:
    """A mean of candidates, and how far off it is.

    Attributes:
        candidates: the one with the largest weight first.
        chosen_on: names of the corruptions that chose.
        tried: corruptions that chose nothing: `shift`, `accuracy`, `predicted`, `scale` and the ends `low`, `high` of
            an interval that the other ones of them give.
        clean: accuracy without a shift.
        offset: added to the predicted loss of accuracy.
        images: that each corruption was tried on.
    """

    candidates: tuple[Candidate, ...]
    chosen_on: tuple[str, ...]
    tried: pd.DataFrame
    clean: float
    offset: float
    images: int

    def accuracy(self, estimates: Mapping[str, float]) -> float:
        """Return the accuracy that estimates amount to."""
        return float(_mean(self.candidates, {name: np.array([value]) for name, value in estimates.items()})[0])

    def interval(self, accuracy: float, images: int) -> tuple[float, float]:
        """Return the 95 % interval of an accuracy told from so many images; 0 to 1 with too few known corruptions."""
        own = self.tried
        errors = (own["predicted"] - own["accuracy"]).to_numpy() / own["scale"].to_numpy()
        return _ends(accuracy, self._scale(accuracy), own["shift"].to_numpy(), errors, (images, self.images))

    @property
    def off(self) -> float:
        """Mean absolute error on corruptions that chose nothing; NaN where there are none."""
        return float((self.tried["predicted"] - self.tried["accuracy"]).abs().mean())

    @property
    def held(self) -> float:
        """Share of corruptions that chose nothing whose interval, by the others of them, holds."""
        inside = (self.tried["low"] <= self.tried["accuracy"]) & (self.tried["accuracy"] <= self.tried["high"])
        return float(inside.mean())

    def _scale(self, accuracy: float) -> float:
        return self.offset + max(self.clean - accuracy, 0.0)


def combine(known: pd.DataFrame, clean: Mapping[str, float], images: int) -> Combination | None:
    """Choose on hold-out corruptions, and try on the others; None with fewer than two hold-out corruptions.

    Args:
        known: `shift`, `holdout`, `accuracy` and a column for each estimate, several severities for each corruption.
        clean: the same numbers without a shift.
        images: that each corruption was tried on.
    """
    chosen_on = tuple(dict.fromkeys(known.loc[known["holdout"], "shift"]))
    if len(chosen_on) < 2:
        return None
    choosing, others = known[known["holdout"]], known[~known["holdout"]]
    candidates = _weigh(choosing, clean)
    loss = np.maximum(clean["accuracy"] - choosing["accuracy"], 0.0)
    offset = max(float(np.median(loss)), OFFSET)
    predicted = _mean(candidates, {name: others[name].to_numpy() for name in {each.estimate for each in candidates}})
    tried = pd.DataFrame({"shift": others["shift"], "accuracy": others["accuracy"], "predicted": predicted})
    tried["scale"] = offset + np.maximum(clean["accuracy"] - predicted, 0.0)
    names, errors = tried["shift"].to_numpy(), ((predicted - tried["accuracy"]) / tried["scale"]).to_numpy()
    rows = zip(names, predicted, tried["scale"], strict=True)
    ends = [
        _ends(value, scale, names[names != name], errors[names != name], (images,) * 2) for name, value, scale in rows
    ]
    tried["low"], tried["high"] = [low for low, _ in ends], [high for _, high in ends]
    return Combination(candidates, chosen_on, tried, clean["accuracy"], offset, images)


def _weigh(known: pd.DataFrame, clean: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Candidates with their weights, from how far off each is on corruptions that are left out."""
    truth, names = known["accuracy"].to_numpy(float), known["shift"].to_numpy()
    found = []
    for estimate, fitted in [*((name, False) for name in AS_THEY_ARE), *((name, True) for name in WITH_A_LINE)]:
        values = known[estimate].to_numpy(float)
        off = []
        for name in dict.fromkeys(names):
            own = names == name
            line = _line(values[~own], truth[~own], clean, estimate) if fitted else (0.0, 1.0)
            off.append(np.abs(np.clip(line[0] + line[1] * values[own], 0, 1) - truth[own]).mean())
        line = _line(values, truth, clean, estimate) if fitted else (0.0, 1.0)
        found.append((f"line of {estimate}" if fitted else estimate, estimate, *line, float(np.mean(off))))
    weights = np.array([max(each[-1], LEAST_OFF) ** -2 for each in found])
    order = np.argsort(-weights, kind="stable")
    return tuple(Candidate(*found[place], float(weights[place] / weights.sum())) for place in order)


def _line(values: np.ndarray, truth: np.ndarray, clean: Mapping[str, float], estimate: str) -> tuple[float, float]:
    """Intercept and slope by least squares, through clean data too; flat where all values are the same."""
    x, y = np.append(values, clean[estimate]), np.append(truth, clean["accuracy"])
    away = x - x.mean()
    slope = float(away @ y / (away @ away)) if np.ptp(x) > 1e-9 else 0.0
    return float(y.mean() - slope * x.mean()), slope


def _mean(candidates: Sequence[Candidate], estimates: Mapping[str, np.ndarray]) -> np.ndarray:
    parts = [each.weight * each.accuracy(estimates[each.estimate]) for each in candidates]
    return np.clip(np.sum(parts, axis=0), 0.0, 1.0)


def _ends(
    accuracy: float, scale: float, names: np.ndarray, errors: np.ndarray, images: tuple[int, int]
) -> tuple[float, float]:
    """Ends of the interval by relative errors on corruptions, each with the same weight."""
    corruptions = list(dict.fromkeys(names))
    if len(corruptions) < FEWEST:
        return 0.0, 1.0
    spread = sqrt(np.mean([np.square(errors[names == name]).mean() for name in corruptions]))
    share = float(np.clip(accuracy, 0.02, 0.98))
    sampling = Z95 * sqrt(share * (1 - share) * sum(1 / max(n, 1) for n in images))
    half = float(np.hypot(stdtrit(len(corruptions), (1 + LEVEL) / 2) * spread * scale, sampling))
    return max(accuracy - half, 0.0), min(accuracy + half, 1.0)
