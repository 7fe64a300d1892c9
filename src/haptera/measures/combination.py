"""Combination: one accuracy without labels out of many estimates, chosen on known corruptions and tried on others.

Candidates are the estimates of `label_free` as they are; a line from each of them, and from the size of the shift, to
the accuracy; and a plane from each of them and the size: by least squares through clean data and the corruptions that
choose. Each of these corruptions is left
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
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from haptera.measures.label_free import ESTIMATES
from haptera.statistics.intervals import LEVEL, Z95

SIZE = "size of the shift"
FITTED = tuple(name for name in ESTIMATES if name != "difference of confidences")
"""The difference of confidences is average confidence and a constant, so that both have the same line."""
FORMS = {
    **{name: (name, False, False) for name in ESTIMATES},
    **{f"line of {name}": (name, True, False) for name in (*FITTED, SIZE)},
    **{f"plane of {name} and size": (name, True, True) for name in FITTED},
}
"""Candidate -> the estimate that it is told from, whether it is fitted, and whether by the size of the shift too."""
LEAST_OFF = 1e-3
OFFSET = 0.02
"""The least offset: accuracy is not told more exactly than that on any shift."""
FEWEST = 4
"""Corruptions below which there is no interval."""


@dataclass(frozen=True)
class Candidate:
    """A way to tell accuracy: `intercept + slope * estimate + size_slope * size`.

    Attributes:
        name: of the estimate, with "line of" or "plane of" before it where it was fitted.
        estimate: what it is told from.
        intercept: 0 for an estimate as it is.
        slope: 1 for an estimate as it is.
        size_slope: 0 but for planes.
        off: mean absolute error on the corruptions that choose, each left out in turn.
        weight: in the combination.
    """

    name: str
    estimate: str
    intercept: float
    slope: float
    size_slope: float
    off: float
    weight: float

    def accuracy(self, estimates: Mapping[str, Any] | pd.DataFrame) -> np.ndarray:
        """Return accuracies, within 0 and 1, from estimates by name, the size of the shift among them."""
        value, size = (np.asarray(estimates[name], float) for name in (self.estimate, SIZE))
        return np.clip(self.intercept + self.slope * value + self.size_slope * size, 0.0, 1.0)


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
        return float(_mean(self.candidates, estimates))

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
    predicted = _mean(candidates, rows)
    return pd.DataFrame({"shift": rows["shift"], "accuracy": rows["accuracy"].astype(float), "predicted": predicted})


def _weigh(known: pd.DataFrame, clean: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Candidates with their weights, from how far off each is on corruptions that are left out."""
    _, place = np.unique(known["shift"].to_numpy(str), return_inverse=True)
    member = np.eye(place.max() + 1)[place]  # (rows, corruptions)
    y, design = known["accuracy"].to_numpy(float), _design(known)
    left_out, all_rows = (_fit(design, y, clean, taken) for taken in (1 - member, np.ones((len(y), 1))))
    told = np.clip(np.einsum("crk,crk->cr", design, left_out[:, place]), 0, 1)
    off = (np.abs(told - y) @ member / member.sum(0)).mean(1)
    weights = np.maximum(off, LEAST_OFF) ** -2
    found = zip(FORMS.items(), all_rows[:, 0], off, weights / weights.sum(), strict=True)
    made = [
        Candidate(name, form[0], float(line[0]), float(line[1]), float(line[2]), float(away), float(weight))
        for (name, form), line, away, weight in found
    ]
    return tuple(sorted(made, key=lambda each: -each.weight))


def _design(rows: Mapping[str, Any] | pd.DataFrame) -> np.ndarray:
    """`(candidates, rows, 3)`: one, the estimate, and the size of the shift, 0 for those that do not use it."""
    size = np.atleast_1d(np.asarray(rows[SIZE], float))
    parts = [
        np.stack([np.ones_like(size), np.atleast_1d(np.asarray(rows[name], float)), size * by_size], axis=-1)
        for name, _, by_size in FORMS.values()
    ]
    return np.stack(parts)


def _fit(design: np.ndarray, y: np.ndarray, clean: Mapping[str, float], taken: np.ndarray) -> np.ndarray:
    """`(candidates, fits, 3)`, coefficients by least squares through clean data and the rows that each fit takes.

    Args:
        design: `(candidates, rows, 3)`.
        y: `(rows,)`.
        clean: the same numbers without a shift.
        taken: `(rows, fits)`, ones and zeros.
    """
    design = np.concatenate([design, _design(clean)], axis=1)
    y, taken = np.append(y, clean["accuracy"]), np.vstack([taken, np.ones(taken.shape[1])])
    products = (design[..., :, None] * design[..., None, :]).reshape(*design.shape[:2], 9)
    gram = (products.swapaxes(1, 2) @ taken).swapaxes(1, 2).reshape(len(design), -1, 3, 3)
    right = ((design * y[:, None]).swapaxes(1, 2) @ taken).swapaxes(1, 2)[..., None]
    found: np.ndarray = (np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ right)[..., 0]
    found[[not fitted for _, fitted, _ in FORMS.values()]] = (0.0, 1.0, 0.0)
    return found


def _mean(candidates: Sequence[Candidate], estimates: Mapping[str, Any] | pd.DataFrame) -> np.ndarray:
    parts = [each.weight * each.accuracy(estimates) for each in candidates]
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
