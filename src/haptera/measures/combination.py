"""Combination: one accuracy without labels out of many estimates, chosen on known corruptions and tried on others.

Candidates are the estimates of `label_free` as they are, and a line from each of them, and from the size of the shift,
to the accuracy: by least squares through clean data and the corruptions that choose. Each of these corruptions is left
out in turn, at all severities; a candidate counts by the inverse square of how far off it is on them.
The interval is from corruptions that had no say in what told them: each predicted by what all the others choose; or,
where hold-out corruptions choose alone, all others. Errors are relative to an offset plus the predicted loss of
accuracy, root mean square within each corruption, then Student's t over corruptions. It holds for a new shift whose
relative error is normal, with the same spread as theirs and alike at all severities; it promises nothing of a shift of
another kind. The sampling error of both sets of images is added in quadrature.
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
        tried: corruptions that had no say in what told them: `shift`, `accuracy`, `predicted`, `scale` and the ends
            `low`, `high` of an interval that the other ones of them give.
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
        """Mean absolute error on corruptions that had no say; NaN where there are none."""
        return float((self.tried["predicted"] - self.tried["accuracy"]).abs().mean())

    @property
    def held(self) -> float:
        """Share of corruptions that had no say whose interval, by the others of them, holds."""
        inside = (self.tried["low"] <= self.tried["accuracy"]) & (self.tried["accuracy"] <= self.tried["high"])
        return float(inside.mean())

    def _scale(self, accuracy: float) -> float:
        return self.offset + max(self.clean - accuracy, 0.0)


def combine(known: pd.DataFrame, clean: Mapping[str, float], images: int, choose_on: str = "all") -> Combination | None:
    """Choose on known corruptions, and try on those that had no say; None with fewer than two that choose.

    Args:
        known: `shift`, `holdout`, `accuracy` and a column for each estimate, several severities for each corruption.
        clean: the same numbers without a shift.
        images: that each corruption was tried on.
        choose_on: `all`, and each is tried with what the others choose; or `holdout`, and the others are tried.
    """
    rows = known[known["holdout"]] if choose_on == "holdout" else known
    names = tuple(dict.fromkeys(rows["shift"]))
    if len(names) < 2:
        return None
    candidates = _weigh(rows, clean)
    if choose_on == "holdout":
        parts = [_try(known[~known["holdout"]], candidates)]
    else:
        left_out = {name: (rows["shift"] == name).to_numpy() for name in names if len(names) > FEWEST}
        parts = [_try(rows[own], _weigh(rows[~own], clean)) for own in left_out.values()]
    tried = pd.concat([*parts, _try(rows.iloc[:0], candidates)], ignore_index=True)
    offset = max(float(np.median(np.maximum(clean["accuracy"] - rows["accuracy"], 0.0))), OFFSET)
    tried["scale"] = offset + np.maximum(clean["accuracy"] - tried["predicted"], 0.0)
    shifts, errors = (
        tried["shift"].to_numpy(),
        ((tried["predicted"] - tried["accuracy"]) / tried["scale"]).to_numpy(float),
    )
    told = zip(shifts, tried["predicted"], tried["scale"], strict=True)
    ends = [
        _ends(value, scale, shifts[shifts != name], errors[shifts != name], (images,) * 2)
        for name, value, scale in told
    ]
    tried["low"], tried["high"] = [low for low, _ in ends], [high for _, high in ends]
    return Combination(candidates, names, tried, clean["accuracy"], offset, images)


def _try(rows: pd.DataFrame, candidates: Sequence[Candidate]) -> pd.DataFrame:
    predicted = _mean(candidates, {name: rows[name].to_numpy(float) for name in {each.estimate for each in candidates}})
    return pd.DataFrame({"shift": rows["shift"], "accuracy": rows["accuracy"].astype(float), "predicted": predicted})


def _weigh(known: pd.DataFrame, clean: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Candidates with their weights, from how far off each is on corruptions that are left out."""
    estimates, fitted = [*AS_THEY_ARE, *WITH_A_LINE], len(AS_THEY_ARE)
    x, y = known[estimates].to_numpy(float).T, known["accuracy"].to_numpy(float)
    _, place = np.unique(known["shift"].to_numpy(str), return_inverse=True)
    member = np.eye(place.max() + 1)[place]  # (rows, corruptions)
    start, slope = _lines(x, y, np.array([clean[name] for name in estimates]), clean["accuracy"], 1 - member)
    start[:fitted], slope[:fitted] = 0.0, 1.0
    away = np.abs(np.clip(start[:, place] + slope[:, place] * x, 0, 1) - y)
    off = (away @ member / member.sum(0)).mean(1)
    start, slope = _lines(x, y, np.array([clean[name] for name in estimates]), clean["accuracy"], np.ones((len(y), 1)))
    start[:fitted], slope[:fitted] = 0.0, 1.0
    weights = np.maximum(off, LEAST_OFF) ** -2
    names = [*AS_THEY_ARE, *(f"line of {name}" for name in WITH_A_LINE)]
    found = zip(names, estimates, start[:, 0], slope[:, 0], off, weights / weights.sum(), strict=True)
    made = [Candidate(name, estimate, *map(float, numbers)) for name, estimate, *numbers in found]
    return tuple(sorted(made, key=lambda each: -each.weight))


def _lines(
    x: np.ndarray, y: np.ndarray, clean: np.ndarray, clean_accuracy: float, taken: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts and slopes `(estimates, fits)` by least squares through clean data and the rows that each fit takes.

    Args:
        x: `(estimates, rows)`.
        y: `(rows,)`.
        clean: `(estimates,)`, x without a shift.
        clean_accuracy: y without a shift.
        taken: `(rows, fits)`, ones and zeros.
    """
    x, y = x - clean[:, None], y - clean_accuracy  # clean data, at the origin now, counts in the number alone
    count = 1 + taken.sum(0)
    mean_x, mean_y = x @ taken / count, y @ taken / count
    spread = np.maximum((x * x) @ taken / count - mean_x**2, 0.0)
    along = (x * y) @ taken / count - mean_x * mean_y
    slope = np.divide(along, spread, out=np.zeros_like(along), where=spread > 1e-18)
    start = mean_y - slope * mean_x
    return start + clean_accuracy - slope * clean[:, None], slope


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
