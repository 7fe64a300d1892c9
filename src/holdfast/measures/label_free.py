"""Accuracy without labels, from outputs alone: what people use today, for comparison.

Average confidence; the same with a temperature fitted on labelled reference data; the difference of confidences taken
from the reference accuracy (Guillory et al. 2021); the share of samples above a threshold of confidence that is right
on the reference (Garg et al. 2022); agreement with a second model (Jiang et al. 2022). Logits are `(images, classes)`.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from holdfast.correctness import correct


def average_confidence(logits: np.ndarray, temperature: float = 1.0) -> float:
    """The mean of the largest probability."""
    return float(_confidence(logits, temperature).mean())


def fitted_temperature(logits: np.ndarray, targets: np.ndarray) -> float:
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
