"""What a shift will cost, predicted without labels, with an interval that known corruptions have tried.

A plane from two numbers that need no labels to the error, by least squares over all known corruptions and clean data:
the size of the shift, and doubt, the share of answers whose confidence is below the threshold that as many answers on
the reference are below as are wrong (Garg et al. 2022).
The interval is conformal over whole corruptions (Dunn, Wasserman and Ramdas 2022): each corruption is left out and
predicted from the others; a new shift is taken to be as far off, in units of `offset` + size, as the given share of
them is, each corruption with the same weight and one more that is infinitely far off. `offset` is the median size. The
sampling error of the images at hand is added in quadrature: known corruptions share their images and do not show it.
What people use today, for comparison, tells accuracy from logits `(images, classes)`: average confidence; the same with
a temperature fitted on labelled reference data; the difference of confidences taken from the reference accuracy
(Guillory et al. 2021); the share of samples above a threshold of confidence that is right on the reference (Garg et al.
2022); agreement with a second model (Jiang et al. 2022).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

from haptera.correctness import correct

LEVEL = 0.9
WIDE = 0.8
"""An interval at least so wide says nothing."""


@dataclass(frozen=True)
class ErrorPrediction:
    """The error that a shift will cost.

    Attributes:
        error: on the data.
        low: the lower end of the interval.
        high: the upper end; 1 where there are too few corruptions for the level.
        level: what share of new shifts the interval is made to hold at least, if they are like the known ones.
        held: the share of known corruptions, each predicted from the others, that it held.
        corruptions: how many there are.
        inside: whether the size lies within those of the known corruptions.
    """

    error: float
    low: float
    high: float
    level: float
    held: float
    corruptions: int
    inside: bool

    @property
    def means_something(self) -> bool:
        """Say whether the interval says anything: not of almost all errors, and not beyond every known corruption."""
        return self.inside and bool(np.isfinite(self.error)) and self.high - self.low < WIDE


def predict_error(
    known: pd.DataFrame,
    clean: float,
    size: float,
    doubt: float,
    images: tuple[int, int],
    level: float = LEVEL,
) -> ErrorPrediction:
    """Predict the error of a shift of this size and doubt.

    Args:
        known: `shift`, `size`, `doubt` and `error` of known corruptions, at several severities each.
        clean: the error without a shift, where size is 0 and doubt is the error itself.
        size: of the shift.
        doubt: the share of doubtful answers on the data.
        images: how many known corruptions were tried on, and how many the data has.
        level: of the interval.
    """
    names = known["shift"].to_numpy()
    features, errors = known[["size", "doubt"]].to_numpy(float), known["error"].to_numpy(float)
    offset = float(np.median(features[:, 0])) or 1.0
    scores, weights = np.empty(len(known)), np.empty(len(known))
    corruptions = list(dict.fromkeys(names))
    for name in corruptions:
        own = names == name
        plane = _Plane(features[~own], errors[~own], clean)
        scores[own] = np.abs(errors[own] - plane(features[own])) / (offset + features[own, 0])
        weights[own] = 1 / own.sum()
    order = np.argsort(scores)
    reached = np.cumsum(weights[order]) / (len(corruptions) + 1) >= level - 1e-9
    score = float(scores[order][reached.argmax()]) if reached.any() else np.inf
    error = float(_Plane(features, errors, clean)(np.array([[size, doubt]]))[0])
    spread = np.clip(error, 0.02, 0.98) * (1 - np.clip(error, 0.02, 0.98)) * sum(1 / n for n in images)
    half = float(np.hypot(score * (offset + size), norm.ppf((1 + level) / 2) * np.sqrt(spread)))
    held = float(weights[scores <= score].sum() / len(corruptions))
    inside = bool(size <= features[:, 0].max())
    return ErrorPrediction(error, max(error - half, 0.0), min(error + half, 1.0), level, held, len(corruptions), inside)


class _Plane:
    """error = a + b size + c doubt, by least squares; within 0 and 1."""

    def __init__(self, features: np.ndarray, errors: np.ndarray, clean: float) -> None:
        design = np.column_stack([np.ones(len(features) + 1), np.vstack([[0.0, clean], features])])
        self.coefficients = np.linalg.lstsq(design, np.append(clean, errors), rcond=None)[0]

    def __call__(self, features: np.ndarray) -> np.ndarray:
        return np.clip(self.coefficients[0] + features @ self.coefficients[1:], 0.0, 1.0)


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
