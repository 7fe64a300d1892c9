"""What people use today, for comparison: detectors of a shift, and accuracy without labels.

Detectors take features `(images, features)` of the reference and of the data. Kolmogorov and Smirnov's test is made for
each feature and corrected by Bonferroni (Rabanser et al. 2019); MMD uses a Gaussian kernel of the median distance and
permutes the images.
Accuracy is told from logits `(images, classes)`: average confidence; the same with a temperature fitted on labelled
reference data; the difference of confidences taken from the reference accuracy (Guillory et al. 2021); the share of
samples above a threshold of confidence that is right on the reference (Garg et al. 2022); agreement with a second model
(Jiang et al. 2022).
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, logsumexp
from scipy.stats import ks_2samp

from haptera.correctness import correct


def ks_p_value(reference: np.ndarray, data: np.ndarray) -> float:
    """The smallest p over features, times their number."""
    p = ks_2samp(reference, data, axis=0).pvalue
    return float(min(np.min(p) * reference.shape[1], 1.0))


def mmd(reference: np.ndarray, data: np.ndarray) -> float:
    """The squared MMD between two samples (biased estimate), with a kernel as wide as the median distance."""
    kernel = _kernel(np.concatenate([reference, data]))
    return _mmd(kernel, np.arange(len(kernel)), len(reference))


def mmd_p_value(reference: np.ndarray, data: np.ndarray, permutations: int = 200, seed: int = 0) -> float:
    """The share of divisions of the pooled features whose MMD is at least that of the given one."""
    kernel = _kernel(np.concatenate([reference, data]))
    random, m = np.random.default_rng(seed), len(reference)
    given = _mmd(kernel, np.arange(len(kernel)), m)
    chance = [_mmd(kernel, random.permutation(len(kernel)), m) for _ in range(permutations)]
    return float((1 + sum(value >= given for value in chance)) / (1 + permutations))


def _kernel(pooled: np.ndarray) -> np.ndarray:
    squares = cdist(pooled, pooled, "sqeuclidean")
    width = np.median(squares[np.triu_indices(len(pooled), 1)])
    return np.exp(-squares / max(width, 1e-12))


def _mmd(kernel: np.ndarray, order: np.ndarray, m: int) -> float:
    signs = np.empty(len(order))
    signs[order[:m]], signs[order[m:]] = 1 / m, -1 / (len(order) - m)
    return float(signs @ kernel @ signs)


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
