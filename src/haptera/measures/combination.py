"""Combination: one accuracy without labels out of many estimates, chosen on known corruptions and tried on others.

Candidates are the estimates of `label_free` as they are; a line from each of them, and from the size of the shift, to
the accuracy; and a plane from each of them and the size: by least squares through clean data and the corruptions that
choose. What was not estimated, such as the size in a network that hides its layers, has no candidate. Each of these
corruptions is left out in turn, at all severities; a candidate counts by the inverse square of how far off it is on
them.
The interval is from corruptions that had no say in what told them: each predicted by what all the others choose; or,
where hold-out corruptions choose alone, all others. Errors are relative to an offset plus the predicted loss of
accuracy, root mean square within each corruption, then Student's t over corruptions.
Where all choose, the errors are not independent: each corruption also moved the lines that told the others. A mean
square of n of them has fewer than n degrees of freedom, and with few corruptions far fewer. Both its expectation and
its degrees of freedom follow from how much every corruption counts in every prediction (Satterthwaite, 1946, for a
quadratic form of normal errors), and so does how much a line that all of them gave is off on a new shift. The weights
count as given there.
It holds for a new shift whose relative error is normal, with the same spread as theirs and alike at all severities; it
promises nothing of a shift of another kind. The sampling error of both sets of images is added in quadrature.
`haptera diagnose` tells the accuracy of a set of images so, and a guard that of a window of its stream.
Cost: a line for each candidate and corruption; then some microseconds for each accuracy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from haptera.measures.label_free import ESTIMATES
from haptera.statistics.intervals import LEVEL
from haptera.statistics.spread import FEWEST, Spread, deviation_of, mean_squares, quantile, spread_of

SIZE = "size of the shift"
FITTED = tuple(name for name in ESTIMATES if name != "difference of confidences")
"""The difference of confidences is average confidence and a constant, so that both have the same line."""
FORMS = {
    **{name: (name, False, False) for name in ESTIMATES},
    **{f"line of {name}": (name, True, False) for name in (*FITTED, SIZE)},
    **{f"plane of {name} and size": (name, True, True) for name in FITTED},
}
"""Candidate -> the estimate that it is told from, whether it is fitted, and whether by the size of the shift too."""
Forms = Mapping[str, tuple[str, bool, bool]]
Columns = Mapping[str, np.ndarray]
LEAST_OFF = 1e-3
OFFSET = 0.02
"""The least offset: accuracy is not told more exactly than that on any shift."""


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

    def accuracy(self, estimates: Mapping[str, Any]) -> np.ndarray:
        """Return accuracies, within 0 and 1, from estimates by name, the size of the shift among them."""
        value = self.intercept + self.slope * np.asarray(estimates[self.estimate], float)
        if self.size_slope:
            value = value + self.size_slope * np.asarray(estimates[SIZE], float)
        return np.clip(value, 0.0, 1.0)


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
        spread: of relative errors on new shifts, as those that were tried tell it.
    """

    candidates: tuple[Candidate, ...]
    chosen_on: tuple[str, ...]
    tried: pd.DataFrame
    clean: float
    offset: float
    images: int
    spread: Spread

    def accuracy(self, estimates: Mapping[str, float]) -> float:
        """Return the accuracy that estimates amount to."""
        intercept, slope, size_slope, weight = self._lines
        size = estimates[SIZE] if size_slope.any() else 0.0
        told = intercept + slope * np.array([estimates[each.estimate] for each in self.candidates]) + size_slope * size
        return min(max(float(weight @ told.clip(0.0, 1.0)), 0.0), 1.0)

    def interval(self, accuracy: float, images: int, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval of an accuracy told from so many images; 0 to 1 with too few known corruptions."""
        half = quantile(level) * self.deviation(accuracy, images, level)
        return max(accuracy - half, 0.0), min(accuracy + half, 1.0)

    def deviation(self, accuracy: float, images: int, level: float = LEVEL) -> float:
        """Return the standard error of an accuracy told from so many images; infinite with too few known corruptions.

        It is the half width of the interval of this level, divided by what a normal distribution has.
        """
        return deviation_of(accuracy, self._scale(accuracy), self.spread, (images, self.images), level)

    @property
    def off(self) -> float:
        """Mean absolute error on corruptions that had no say; NaN where there are none."""
        return float((self.tried["predicted"] - self.tried["accuracy"]).abs().mean())

    @property
    def held(self) -> float:
        """Share of corruptions that had no say whose interval, by the others of them, holds; NaN with too few."""
        if self.spread.corruptions <= FEWEST:
            return nan
        inside = (self.tried["low"] <= self.tried["accuracy"]) & (self.tried["accuracy"] <= self.tried["high"])
        return float(inside.mean())

    def _scale(self, accuracy: float) -> float:
        return self.offset + max(self.clean - accuracy, 0.0)

    @cached_property
    def _lines(self) -> np.ndarray:
        """`(4, candidates)`: intercepts, slopes, slopes by size and weights."""
        return np.array([[own.intercept, own.slope, own.size_slope, own.weight] for own in self.candidates]).T


def combine(known: pd.DataFrame, clean: Mapping[str, float], images: int, choose_on: str = "all") -> Combination | None:
    """Choose on known corruptions, and try on those that had no say; None with fewer than two that choose.

    Args:
        known: `shift`, `holdout`, `accuracy` and a column for each estimate that there is, the size of the shift among
            them, several severities for each corruption.
        clean: the same numbers without a shift.
        images: that each corruption was tried on.
        choose_on: `all`, and each is tried with what the others choose; or `holdout`, and the others are tried.
    """
    every: Columns = {str(name): known[name].to_numpy() for name in known}
    held = every["holdout"].astype(bool)
    rows = _take(every, held) if choose_on == "holdout" else every
    names = tuple(dict.fromkeys(rows["shift"]))
    if len(names) < 2:
        return None
    candidates = _weigh(rows, clean)
    if choose_on == "holdout":
        others = _take(every, ~held)
        fits = [(candidates, np.ones(len(others["shift"]), bool))]
    else:
        others = rows = _take(rows, np.concatenate([np.flatnonzero(rows["shift"] == name) for name in names]))
        own = [rows["shift"] == name for name in names if len(names) >= FEWEST]
        fits = [(_weigh(_take(rows, ~each), clean), each) for each in own]
    nothing = _try(_take(rows, rows["shift"] == ""), candidates)  # keeps the columns where none is tried
    tried = pd.concat([*(_try(_take(others, each), fit) for fit, each in fits), nothing])
    offset = max(float(np.median(np.maximum(clean["accuracy"] - rows["accuracy"], 0.0))), OFFSET)
    scale = offset + np.maximum(clean["accuracy"] - tried["predicted"].to_numpy(float), 0.0)
    tried = tried.assign(scale=scale).reset_index(drop=True)
    _, place = np.unique(tried["shift"].astype(str), return_inverse=True)
    member = np.eye(place.max(initial=-1) + 1)[place]  # (rows, corruptions)
    errors = (tried["predicted"] - tried["accuracy"]).to_numpy(float) / scale
    counts, added = -member, 0.0  # how much each corruption's own error counts in each row's
    if choose_on != "holdout" and len(tried):
        parts = [_shares(rows, clean, fit, each, ~each, scale) @ member[~each] for fit, each in fits]
        counts = np.concatenate(parts) - member
        every_row = np.ones(len(scale), bool)
        whole = _shares(rows, clean, candidates, every_row, every_row, scale) @ member
        added = float(np.square(whole).sum(1).mean())
    squares, forms = mean_squares(errors, counts, member)
    spread = spread_of(squares, forms, added)
    without = [spread_of(np.delete(squares, own), np.delete(forms, own, 0), added) for own in range(len(squares))]
    half = quantile(LEVEL) * np.array(
        [
            deviation_of(value, size, without[own], (images,) * 2, LEVEL)
            for own, value, size in zip(place, tried["predicted"], scale, strict=True)
        ]
    )
    tried["low"], tried["high"] = np.maximum(tried["predicted"] - half, 0.0), np.minimum(tried["predicted"] + half, 1.0)
    return Combination(candidates, names, tried, clean["accuracy"], offset, images, spread)


def _take(rows: Columns, taken: np.ndarray) -> Columns:
    return {name: values[taken] for name, values in rows.items()}


def _try(rows: Columns, candidates: Sequence[Candidate]) -> pd.DataFrame:
    predicted = _mean(candidates, rows)
    return pd.DataFrame({"shift": rows["shift"], "accuracy": rows["accuracy"].astype(float), "predicted": predicted})


def _weigh(known: Columns, clean: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Candidates with their weights, from how far off each is on corruptions that are left out."""
    _, place = np.unique(known["shift"].astype(str), return_inverse=True)
    member = np.eye(place.max() + 1)[place]  # (rows, corruptions)
    forms = {name: form for name, form in FORMS.items() if form[0] in known and (SIZE in known or not form[2])}
    y, design = known["accuracy"].astype(float), _design(known, forms)
    design = np.concatenate([design, _design(clean, forms)], axis=1)
    left_out, all_rows = (_fit(forms, design, y, clean, taken) for taken in (1 - member, np.ones((len(y), 1))))
    design = design[:, :-1]
    told = np.clip(np.einsum("crk,crk->cr", design, left_out[:, place]), 0, 1)
    off = (np.abs(told - y) @ member / member.sum(0)).mean(1)
    weights = np.maximum(off, LEAST_OFF) ** -2
    found = zip(forms.items(), all_rows[:, 0], off, weights / weights.sum(), strict=True)
    made = [
        Candidate(name, form[0], float(line[0]), float(line[1]), float(line[2]), float(away), float(weight))
        for (name, form), line, away, weight in found
    ]
    return tuple(sorted(made, key=lambda each: -each.weight))


def _design(rows: Mapping[str, Any], forms: Forms) -> np.ndarray:
    """`(candidates, rows, 3)`: one, the estimate, and the size of the shift, 0 for those that do not use it."""
    parts = []
    for name, _, by_size in forms.values():
        value = np.atleast_1d(np.asarray(rows[name], float))
        size = np.atleast_1d(np.asarray(rows[SIZE], float)) if by_size else np.zeros_like(value)
        parts.append(np.stack([np.ones_like(value), value, size], axis=-1))
    return np.stack(parts)


def _fit(forms: Forms, design: np.ndarray, y: np.ndarray, clean: Mapping[str, float], taken: np.ndarray) -> np.ndarray:
    """`(candidates, fits, 3)`, coefficients by least squares through clean data and the rows that each fit takes.

    Args:
        forms: the candidates.
        design: `(candidates, rows + 1, 3)`, clean data last.
        y: `(rows,)`.
        clean: the same numbers without a shift.
        taken: `(rows, fits)`, ones and zeros.
    """
    y, taken = np.append(y, clean["accuracy"]), np.vstack([taken, np.ones(taken.shape[1])])
    products = (design[..., :, None] * design[..., None, :]).reshape(*design.shape[:2], 9)
    gram = (products.swapaxes(1, 2) @ taken).swapaxes(1, 2).reshape(len(design), -1, 3, 3)
    right = ((design * y[:, None]).swapaxes(1, 2) @ taken).swapaxes(1, 2)[..., None]
    found: np.ndarray = (np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ right)[..., 0]
    found[[not fitted for _, fitted, _ in forms.values()]] = (0.0, 1.0, 0.0)
    return found


def _mean(candidates: Sequence[Candidate], estimates: Mapping[str, Any]) -> np.ndarray:
    parts = [each.weight * each.accuracy(estimates) for each in candidates]
    return np.clip(np.sum(parts, axis=0), 0.0, 1.0)


def _shares(
    rows: Columns,
    clean: Mapping[str, float],
    candidates: Sequence[Candidate],
    own: np.ndarray,
    taken: np.ndarray,
    scale: np.ndarray,
) -> np.ndarray:
    """Return `(own, taken)`: how much the relative error of a row that was taken counts in a prediction of another."""
    fitted = [each for each in candidates if FORMS[each.name][1]]
    forms = {each.name: FORMS[each.name] for each in fitted}
    design, base = _design(rows, forms), _design(clean, forms)
    there = np.concatenate([design[:, taken], base], axis=1)
    inverse = np.linalg.pinv(there.swapaxes(1, 2) @ there, rcond=1e-10, hermitian=True)
    weights = np.array([each.weight for each in fitted])
    found = (design[:, own] @ inverse * weights[:, None, None]) @ design[:, taken].swapaxes(1, 2)
    return found.sum(0) * scale[taken] / scale[own][:, None]
