"""Replacement: what a network loses when a class's logit is derived from others instead of computed.

Source: "Neural Dependencies Emerging from Learning Massive Categories", table 1: mean |e| and mean |e| / mean |f_i| of
the derived logit, accuracy with it in the place of the own one, over all samples and over those of the class. The
source shows six picked classes; here it is every class, in one pass over the logits.
Cost: for a sample only the largest logit, the second largest and the derived one decide, so all classes together take
one product with the sparse coefficients.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.covariance_lasso import Dependencies
from haptera.analyses.dependencies.second_moment import BLOCK, checked_logits
from haptera.correctness import beats, leaders
from haptera.errors import HapteraError


def replacement(
    logits: np.ndarray,
    dependencies: Dependencies,
    targets: np.ndarray | None = None,
    onto: np.ndarray | None = None,
) -> pd.DataFrame:
    """Table 1 for every class.

    Args:
        logits: `(samples, classes)`.
        dependencies: of these logits, or of those of another set of samples.
        targets: `(samples,)`; without them there is no accuracy.
        onto: `(samples, targets)`, the logits of the other network, if the dependencies are between two.

    Returns:
        One row for each class: `class`, `mean_error` and `relative_mean_error`; with targets also `accuracy` (with the
        derived logit), `own_accuracy` (without), `positives` (samples of the class), `positive_accuracy` and
        `own_positive_accuracy`; NaN where a class has no sample.
    """
    logits = checked_logits("logits", logits)
    own = logits if onto is None else checked_logits("onto", onto)
    if targets is not None:
        targets = checked_targets(targets, len(own), own.shape[1])
    blocks = (slice(first, first + BLOCK) for first in range(0, len(logits), BLOCK))
    return replacement_of_stream(
        ((logits[rows], own[rows], None if targets is None else targets[rows]) for rows in blocks), dependencies
    )


def replacement_of_stream(
    batches: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray | None]], dependencies: Dependencies
) -> pd.DataFrame:
    """Table 1 from batches of (logits, logits to replace, targets), of which one is held at a time."""
    classes = len(dependencies)
    sums = {name: np.zeros(classes) for name in ("error", "size", "right", "hits", "own_hits", "positives")}
    samples = right_before = 0
    labelled = True
    for logits, own, targets in batches:
        derived = np.asarray((dependencies.coefficients @ np.ascontiguousarray(logits.T)).T)
        samples += len(logits)
        sums["error"] += np.abs(own - derived).sum(0, dtype=np.float64)
        sums["size"] += np.abs(own).sum(0, dtype=np.float64)
        if targets is None:
            labelled = False
            continue
        rows = np.arange(len(own))
        first, second = leaders(own)
        wins = beats(derived, np.arange(classes), own[rows, first][:, None], first[:, None])
        wins[rows, first] = beats(derived[rows, first], first, own[rows, second], second)
        right = first == targets
        right_before += int(right.sum())
        sums["positives"] += np.bincount(targets, minlength=classes)
        sums["own_hits"] += np.bincount(targets, right, classes)
        hits = np.bincount(targets, wins[rows, targets], classes)
        sums["hits"] += hits
        # Where the derived logit does not win, the leader of the others decides: the first, or for its own class the
        # second.
        sums["right"] += hits + (~wins[right]).sum(0) - np.bincount(first[right], ~wins[rows, first][right], classes)
        seconds = (second == targets) & ~wins[rows, first]
        sums["right"] += np.bincount(first[seconds], minlength=classes)
    table = {
        "class": np.arange(classes),
        "mean_error": sums["error"] / max(samples, 1),
        "relative_mean_error": _ratio(sums["error"], sums["size"]),
    }
    if labelled and samples:
        table |= {
            "accuracy": sums["right"] / samples,
            "own_accuracy": np.full(classes, right_before / samples),
            "positives": sums["positives"].astype(np.int64),
            "positive_accuracy": _ratio(sums["hits"], sums["positives"]),
            "own_positive_accuracy": _ratio(sums["own_hits"], sums["positives"]),
        }
    return pd.DataFrame(table)


def checked_targets(targets: np.ndarray, samples: int, classes: int) -> np.ndarray:
    """Targets as whole numbers that fit the logits, or an error that says why they do not."""
    targets = np.asarray(targets)
    if targets.shape != (samples,) or targets.dtype.kind not in "iu":
        raise HapteraError(f"targets are {targets.dtype} {targets.shape}; whole numbers ({samples},) were expected")
    if samples and (targets.min() < 0 or targets.max() >= classes):
        wrong = targets[(targets < 0) | (targets >= classes)][0]
        raise HapteraError(f"targets hold {wrong}; the logits have classes 0 to {classes - 1}")
    return targets.astype(np.int64)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
