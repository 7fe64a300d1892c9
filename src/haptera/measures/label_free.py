"""Accuracy without labels: what the probabilities of one model say about it, by the estimators that people use.

Each function takes logits `(images, classes)`, or logarithms of probabilities, on a reference with targets and on new
data without, and returns the accuracy on the new data.

- average confidence: the mean of the largest probability (no reference needed).
- difference of confidences (Guillory et al. 2021): reference accuracy less the fall of the mean confidence.
- thresholded confidence, ATC (Garg et al. 2022): the share of images above the confidence, or the negative entropy,
  that as many reference images are above as are right.
- confidence optimal transport, COT (Lu et al. 2023): one less the cost of moving the predicted probabilities to classes
  that are as frequent as on the reference; the cost of a class is one less its probability. It knows what the others do
  not: a model that answers with one class only cannot be right. In groups of 1,000 images, each an assignment problem.
- nuclear norm (Deng et al. 2023): of the matrix of probabilities, over its largest value; confident and spread over
  classes. MaNo (Xie et al. 2024): the fourth norm of the normalised logits, here from 0 (all classes alike) to 1 (one
  class each). The sources correlate both scores with accuracy; here their fall since the reference is taken from the
  accuracy there, as for confidences.

All of them fail where a model is confidently wrong; `haptera trends --unlabelled` and `haptera diagnose` say how far
off they were on shifts that are known.
Cost: that of the softmax; COT n² to n³ in groups of 1,000 (a tenth of a second each), the nuclear norm a small
singular value decomposition.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import log_softmax

from haptera.correctness import correct
from haptera.errors import HapteraError

GROUP = 1000
"""Images that are assigned to classes at once."""
POWER = 4
Estimate = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def average_confidence(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """The mean of the largest probability on the new data."""
    return float(confidence(logits).mean())


def difference_of_confidences(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """Reference accuracy less the fall of the mean confidence."""
    return _fall(reference, targets, confidence(reference).mean() - confidence(logits).mean())


def thresholded_confidence(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """The share of images above the confidence that as many reference images are above as are right.

    >>> sure, unsure = np.array([4.0, 0.0]), np.array([0.1, 0.0])
    >>> thresholded_confidence(np.array([sure, unsure]), np.array([0, 1]), np.array([sure, sure, unsure, unsure]))
    0.5
    """
    return _above(confidence(reference), _accuracy(reference, targets), confidence(logits))


def thresholded_entropy(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """The same by the negative entropy of the probabilities."""
    return _above(_negentropy(reference), _accuracy(reference, targets), _negentropy(logits))


def optimal_transport(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """One less the cost of moving the probabilities to classes as frequent as on the reference."""
    from scipy.optimize import linear_sum_assignment

    shares = np.bincount(targets, minlength=logits.shape[1]) / len(targets)
    likely = np.exp(log_softmax(np.asarray(logits, float), axis=1))
    groups = np.array_split(np.random.default_rng(0).permutation(len(likely)), -(-len(likely) // GROUP))
    total = 0.0
    for group in groups:
        own = likely[group]
        classes = np.repeat(np.arange(len(shares)), _whole(shares, len(group)))
        rows, columns = linear_sum_assignment(-own[:, classes])
        total += float(own[rows, classes[columns]].sum())
    return total / len(likely)


def nuclear_norm(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """Reference accuracy less the fall of the nuclear norm of the probabilities."""
    return _fall(reference, targets, _nuclear(reference) - _nuclear(logits))


def mano(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> float:
    """Reference accuracy less the fall of the norm of the normalised logits."""
    return _fall(reference, targets, _norm(reference) - _norm(logits))


ESTIMATES: dict[str, Estimate] = {
    "average confidence": average_confidence,
    "difference of confidences": difference_of_confidences,
    "thresholded confidence": thresholded_confidence,
    "thresholded entropy": thresholded_entropy,
    "optimal transport": optimal_transport,
    "nuclear norm": nuclear_norm,
    "MaNo": mano,
}
"""Name -> the estimator."""


def estimate_all(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Name of an estimator -> the accuracy that it predicts.

    Args:
        reference: `(images, classes)`, logits on labelled data.
        targets: `(images,)`.
        logits: `(images, classes)`, on new data.
    """
    reference, logits, targets = np.asarray(reference), np.asarray(logits), np.asarray(targets)
    if reference.ndim != 2 or logits.ndim != 2 or reference.shape[1] != logits.shape[1]:
        raise HapteraError(
            f"logits have the shapes {reference.shape} and {logits.shape}; (images, classes) with the same classes "
            "were expected"
        )
    if len(targets) != len(reference) or not len(logits) or not len(reference):
        raise HapteraError(f"there are {len(targets)} targets for {len(reference)} images of the reference")
    return {name: estimate(reference, targets, logits) for name, estimate in ESTIMATES.items()}


def confidence(logits: np.ndarray) -> np.ndarray:
    """The largest probability of each image."""
    return np.exp(log_softmax(np.asarray(logits, float), axis=1).max(1))


def _accuracy(reference: np.ndarray, targets: np.ndarray) -> float:
    return float(correct(reference, targets).mean())


def _fall(reference: np.ndarray, targets: np.ndarray, fall: float) -> float:
    return float(np.clip(_accuracy(reference, targets) - fall, 0, 1))


def _above(known: np.ndarray, accuracy: float, scores: np.ndarray) -> float:
    """The share of scores that are not below what the given share of known ones is not below."""
    return float((scores >= np.quantile(known, 1 - accuracy)).mean()) if accuracy else 0.0


def _negentropy(logits: np.ndarray) -> np.ndarray:
    logs = log_softmax(np.asarray(logits, float), axis=1)
    return np.where(np.isfinite(logs), np.exp(logs) * logs, 0.0).sum(1)


def _whole(shares: np.ndarray, n: int) -> np.ndarray:
    """Whole numbers that add up to n, as near to the shares as they can be."""
    exact = shares * n
    whole = np.floor(exact).astype(int)
    whole[np.argsort(whole - exact, kind="stable")[: n - whole.sum()]] += 1
    return whole


def _nuclear(logits: np.ndarray) -> float:
    likely = np.exp(log_softmax(np.asarray(logits, float), axis=1))
    gram = likely.T @ likely if len(likely) > likely.shape[1] else likely @ likely.T
    values = np.sqrt(np.clip(np.linalg.eigvalsh(gram), 0, None))
    return float(values.sum() / np.sqrt(len(likely) * min(likely.shape)))


def _norm(logits: np.ndarray) -> float:
    likely = np.exp(log_softmax(np.asarray(logits, float), axis=1))
    classes = likely.shape[1]
    least, most = 1 / classes, classes ** (-1 / POWER)
    return float((np.mean(likely**POWER) ** (1 / POWER) - least) / (most - least))
