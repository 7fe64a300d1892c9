"""What a shift will cost, predicted without labels, with an interval that known corruptions have tried.

Every estimator of `haptera.measures.label_free` and the line of the size of the shift are tried on known corruptions of
the reference, which choose how they are combined; each, told by what the others choose, says how far off that is
(`haptera.measures.combination`).
For comparison, what else people use: a temperature fitted on labelled reference data, with which average confidence is
calibrated there, and agreement with a second model (Jiang et al. 2022).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from haptera.measures.combination import SIZE, combine
from haptera.statistics.intervals import LEVEL

WIDE = 0.8
"""An interval at least so wide says nothing."""


@dataclass(frozen=True)
class ErrorPrediction:
    """The error that a shift will cost.

    Attributes:
        error: on the data.
        low: the lower end of the interval.
        high: the upper end; 1 where there are too few corruptions.
        level: what share of new shifts the interval holds, if they are like the known ones.
        held: the share of known corruptions which it held, each by the others.
        off: mean absolute difference between predicted and true error on them.
        corruptions: how many were tried.
        chosen_on: the corruptions that chose how estimates are combined.
        inside: whether the size lies within those of the known corruptions.
        methods: a row for each candidate, the one that counts most first: `method`, `accuracy` on the data, `off`, the
            mean absolute error on the corruptions that choose, each left out in turn, and `weight`.
    """

    error: float
    low: float
    high: float
    level: float
    held: float
    off: float
    corruptions: int
    chosen_on: tuple[str, ...]
    inside: bool
    methods: tuple[Mapping[str, Any], ...]

    @property
    def means_something(self) -> bool:
        """Say whether the interval says anything: not of almost all errors, and not beyond every known corruption."""
        return self.inside and bool(np.isfinite(self.error)) and self.high - self.low < WIDE


def predict_error(
    known: pd.DataFrame,
    clean: Mapping[str, float],
    estimates: Mapping[str, float],
    images: tuple[int, int],
    choose_on: str = "all",
) -> ErrorPrediction | None:
    """Predict the error of a shift; None with fewer than two corruptions that choose.

    Args:
        known: `shift`, `holdout`, `error`, `size` and a column for each estimator, several severities each.
        clean: `error` and what each estimator says without a shift.
        estimates: what each says of the data, and `size`, that of the shift.
        images: how many known corruptions were tried on, and how many the data has.
        choose_on: which corruptions choose: `all` or `holdout`.
    """
    frame = known.assign(accuracy=1 - known["error"], **{SIZE: known["size"]})
    without_shift = {**clean, "accuracy": 1 - clean["error"], SIZE: 0.0}
    if (found := combine(frame, without_shift, images[0], choose_on)) is None:
        return None
    values = {**estimates, SIZE: estimates["size"]}
    accuracy = found.accuracy(values)
    low, high = found.interval(accuracy, images[1])
    methods = tuple(
        {"method": each.name, "accuracy": float(each.accuracy(values))} | {"off": each.off, "weight": each.weight}
        for each in found.candidates
    )
    inside = bool(estimates["size"] <= known["size"].max())
    tried = (LEVEL, found.held, found.off, found.tried["shift"].nunique(), found.chosen_on)
    return ErrorPrediction(1 - accuracy, 1 - high, 1 - low, *tried, inside, methods)


def fit_temperature(logits: np.ndarray, targets: np.ndarray) -> float:
    """The temperature with the least negative log-likelihood on labelled data."""

    def loss(log_t: float) -> float:
        scaled = logits / np.exp(log_t)
        return float((logsumexp(scaled, 1) - scaled[np.arange(len(targets)), targets]).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def agreement(logits: np.ndarray, other: np.ndarray) -> float:
    """Share of samples on which two models decide alike."""
    return float((logits.argmax(1) == other.argmax(1)).mean())
