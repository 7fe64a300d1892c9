"""Average precision of poses: of the animals that a network says are there, how many are, at each level of recall.

Source: the keypoint evaluation of COCO. A prediction is right at a threshold t of object keypoint similarity (OKS) if
an animal that no surer prediction has taken is at least that similar; predictions are taken from the surest on, and of
several animals the most similar one. Precision is made to fall with recall and read at 101 levels of it; the average
precision (AP) is the mean over these, and over t = .5, .55, ..., .95. Average recall is the mean of the last recall.
Differs: animals without a labelled part do not count, where COCO compares them by their boxes; there is no limit to the
number of predictions in a frame (COCO takes the 20 surest). Cost: predictions x animals in each frame x 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class AveragePrecision:
    """How many of the animals are found, and how many of those found are there.

    Attributes:
        value: the mean over thresholds from .5 to .95; NaN where no animal is labelled.
        loose: at an OKS of .5.
        strict: at an OKS of .75.
        recall: the mean over thresholds of the share of animals that is found.
        animals: how many are labelled.
    """

    value: float
    loose: float
    strict: float
    recall: float
    animals: int


def average_precision(similarity: Sequence[np.ndarray], scores: Sequence[np.ndarray]) -> AveragePrecision:
    """Return the average precision over frames.

    Args:
        similarity: OKS of each frame, `(predictions, animals)`; either may be none.
        scores: how sure each prediction of a frame is, `(predictions,)`.

    >>> average_precision([np.array([[0.9], [0.2]])], [np.array([0.8, 0.9])]).loose
    0.5
    """
    animals = sum(matrix.shape[1] for matrix in similarity)
    if not animals:
        return AveragePrecision(np.nan, np.nan, np.nan, np.nan, 0)
    ordered = [np.argsort(-each, kind="stable") for each in scores]
    together = np.concatenate([each[order] for each, order in zip(scores, ordered, strict=True)])
    surest = np.argsort(-together, kind="stable")
    precisions, recalls = [], []
    for threshold in THRESHOLDS:
        right = [_right(matrix[order], threshold) for matrix, order in zip(similarity, ordered, strict=True)]
        found = np.concatenate(right)[surest]
        precisions.append(_precision(found, animals))
        recalls.append(found.sum() / animals)
    values = np.array(precisions)
    return AveragePrecision(
        float(values.mean()), float(values[0]), float(values[5]), float(np.mean(recalls)), int(animals)
    )


def _right(matrix: np.ndarray, threshold: float) -> np.ndarray:
    """Return which predictions, the surest first, have an animal of their own."""
    free, right = np.ones(matrix.shape[1], bool), np.zeros(len(matrix), bool)
    for place, row in enumerate(matrix):
        near = np.where(free, row, -1.0)
        if near.size and near.max() >= min(threshold, 1 - 1e-10):
            right[place] = True
            free[np.flatnonzero(near == near.max())[-1]] = False  # of equals the last, as in COCO's own code
    return right


def _precision(right: np.ndarray, animals: int) -> float:
    if not len(right):
        return 0.0
    hits = np.cumsum(right)
    precision = np.maximum.accumulate((hits / np.arange(1, len(right) + 1))[::-1])[::-1]
    places = np.searchsorted(hits / animals, RECALLS, side="left")
    return float(np.where(places < len(precision), precision[np.minimum(places, len(precision) - 1)], 0.0).mean())
