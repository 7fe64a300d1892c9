"""What a shift will cost, predicted without labels, with an interval that known corruptions have tried.

Every estimator of `haptera.measures.label_free` and the line of the size of the shift are tried on known corruptions of
the reference, which choose how they are combined; each, told by what the others choose, says how far off that is
(`haptera.measures.combination`).
What people use today, for comparison, tells accuracy from logits `(images, classes)`: average confidence; the same with
a temperature fitted on labelled reference data; the difference of confidences taken from the reference accuracy
(Guillory et al. 2021); the share of samples above a threshold of confidence that is right on the reference (Garg et al.
2022); agreement with a second model (Jiang et al. 2022).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from haptera.correctness import correct
from haptera.measures.combination import SIZE, combine
from haptera.measures.label_free import estimate_all
from haptera.statistics.intervals import LEVEL

if TYPE_CHECKING:
    from haptera.data import Classes
    from haptera.observe.moments import Observation

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


@dataclass(frozen=True, eq=False)
class LabelledReference:
    """What a model says about labelled images without a shift.

    Attributes:
        outputs: `(images, outputs)`.
        targets: `(images,)`.
        classes: how targets relate to the outputs; None if target i is output i.
    """

    outputs: np.ndarray
    targets: np.ndarray
    classes: "Classes | None" = None

    @classmethod
    def of(cls, seen: "Observation") -> "LabelledReference | None":
        """Return what was seen; None without labels."""
        return None if seen.targets is None else cls(seen.outputs, seen.targets, seen.classes)

    def estimates(self, outputs: np.ndarray) -> dict[str, float]:
        """Name of an estimator -> accuracy on images with these outputs; an answer that is not a number is wrong."""
        known, finite = self._columns(self.outputs), np.isfinite(outputs).all(1)
        targets = self.targets
        if self.classes is not None:
            accepted = self.classes.matrix(self.outputs.shape[1])[targets]
            targets = np.where(accepted, known, -np.inf).argmax(1)
        if not finite.any():
            return dict.fromkeys(estimate_all(known, targets, known), 0.0)
        found = estimate_all(known, targets, self._columns(outputs[finite]))
        return {name: float(finite.mean()) * value for name, value in found.items()}

    def _columns(self, outputs: np.ndarray) -> np.ndarray:
        return outputs if self.classes is None else outputs[:, self.classes.columns(outputs.shape[1])]


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


def average_confidence(logits: np.ndarray, temperature: float = 1.0) -> float:
    """The mean of the largest probability."""
    return float(_confidence(logits, temperature).mean())


def fit_temperature(logits: np.ndarray, targets: np.ndarray) -> float:
    """The temperature with the least negative log-likelihood on labelled data."""

    def loss(log_t: float) -> float:
        scaled = logits / np.exp(log_t)
        return float((logsumexp(scaled, 1) - scaled[np.arange(len(targets)), targets]).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def difference_of_confidences(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """Reference accuracy less the fall of the mean confidence."""
    accuracy = correct(reference, targets).mean()
    return float(np.clip(accuracy - (average_confidence(reference) - average_confidence(logits)), 0, 1))


def thresholded_confidence(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """Share of samples above the confidence that as many reference samples exceed as are right."""
    return 1 - doubt(logits, doubt_threshold(reference, 1 - correct(reference, targets).mean()))


def doubt_threshold(reference: np.ndarray, error: float) -> float:
    """The confidence that as large a share of reference samples is below as is wrong."""
    return float(np.quantile(_confidence(reference), error))


def doubt(logits: np.ndarray, threshold: float) -> float:
    """The share of samples whose confidence is below a threshold."""
    return float((_confidence(logits) < threshold).mean())


def agreement(logits: np.ndarray, other: np.ndarray) -> float:
    """Share of samples on which two models decide alike."""
    return float((logits.argmax(1) == other.argmax(1)).mean())


def _confidence(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    return np.exp(log_softmax(logits / temperature, axis=1).max(1))
