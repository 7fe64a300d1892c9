"""Scores of predicted labels: R², median absolute error, errors on the circle, accuracy."""

import numpy as np

from haptera.recordings.label import Label


def circular_difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The way from one angle to another, the short way round, from -π to π.

    >>> np.rad2deg(circular_difference(np.deg2rad([350.0]), np.deg2rad([10.0]))).round().tolist()
    [-20.0]
    """
    return np.mod(first - second + np.pi, 2 * np.pi) - np.pi


def circular_mean(angles: np.ndarray, axis: int = -1) -> np.ndarray:
    """The direction of the mean of points on the circle, from 0 to 2π."""
    return np.mod(np.arctan2(np.sin(angles).mean(axis), np.cos(angles).mean(axis)), 2 * np.pi)


def r2(true: np.ndarray, predicted: np.ndarray) -> float:
    """R², the mean over dimensions that change at all; not a number if none does.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]))
    0.0
    """
    true, predicted = (np.asarray(values, float).reshape(len(values), -1) for values in (true, predicted))
    total = ((true - true.mean(0)) ** 2).sum(0)
    left = ((true - predicted) ** 2).sum(0)
    # Against rounding: a constant column has a sum of squares that is almost, not exactly, zero.
    changes = total > 1e-12 * np.maximum((true**2).sum(0), 1e-300)
    return float((1 - left[changes] / total[changes]).mean()) if changes.any() else float("nan")


def label_scores(true: Label, predicted: np.ndarray) -> dict[str, float]:
    """All that can be said about predictions of a label.

    Angles have `median_error` and `mean_error` in degrees and `r2` of their points on the circle; numbers have
    `median_error` (the Euclidean distance where there are several) and `r2`; classes have `accuracy`, and
    `balanced_accuracy`, the mean over classes.
    """
    if true.kind == "discrete":
        right = predicted == true.values
        shares = [right[true.values == each].mean() for each in np.unique(true.values)]
        return {"accuracy": float(right.mean()), "balanced_accuracy": float(np.mean(shares))}
    if true.kind == "angle":
        error = np.rad2deg(np.abs(circular_difference(true.values, predicted)))
        points = Label(predicted, "angle").features
        return {
            "median_error": float(np.median(error)),
            "mean_error": float(error.mean()),
            "r2": r2(true.features, points),
        }
    off = (true.values - predicted).reshape(len(true), -1)
    error = np.linalg.norm(off, axis=1)
    return {
        "median_error": float(np.median(error)),
        "mean_error": float(error.mean()),
        "r2": r2(true.values, predicted),
    }


def objective(true: Label, predicted: np.ndarray) -> float:
    """What settings are chosen by, higher is better: accuracy of classes, or else R², of angles on the circle."""
    return label_scores(true, predicted)["accuracy" if true.kind == "discrete" else "r2"]
