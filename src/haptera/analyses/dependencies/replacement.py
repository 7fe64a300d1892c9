"""Replacement: what a network loses when a class's logit is derived from others instead of computed.

Source: "Neural Dependencies Emerging from Learning Massive Categories", table 1: mean |e| and mean |e| / mean |f_i| of
the derived logit, accuracy with it in the place of the own one, over all samples and over those of the class. The
source shows six picked classes; here it is every class, in one pass over the logits.
Cost: for a sample only the largest logit, the second largest and the derived one decide, so all classes together take
one product with the sparse coefficients.

`removable` goes on from there: which classes can be derived together before accuracy drops. A class that is removed is
derived from classes that are left; when one of these is removed in its turn, what it is derived from takes its place.
The class that costs the least now goes next (lazily: a class is looked at again when its last known cost is the least).
Cost: for each look a pass over the columns that change; the logits are held twice.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso, Dependencies
from haptera.analyses.dependencies.second_moment import BLOCK, check_logits
from haptera.checks import check_number
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
    logits = check_logits("logits", logits)
    own = logits if onto is None else check_logits("onto", onto)
    if targets is not None:
        targets = check_targets(targets, len(own), own.shape[1])
    blocks = (slice(first, first + BLOCK) for first in range(0, len(logits), BLOCK))
    return replacement_of_stream(
        ((logits[rows], own[rows], None if targets is None else targets[rows]) for rows in blocks), dependencies
    )


def replacement_of_stream(
    batches: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray | None]],
    dependencies: Dependencies,
    watch: Callable[[np.ndarray], None] | None = None,
) -> pd.DataFrame:
    """Table 1 from batches of (logits, logits to replace, targets), of which one is held at a time.

    `watch` is shown the absolute errors of every batch, `(samples, classes)`.
    """
    classes = len(dependencies)
    sums = {name: np.zeros(classes) for name in ("error", "size", "right", "hits", "own_hits", "positives")}
    samples = right_before = 0
    labelled = True
    for logits, own, targets in batches:
        derived = np.asarray((dependencies.coefficients @ np.ascontiguousarray(logits.T)).T)
        samples += len(logits)
        errors = np.abs(own - derived)
        sums["error"] += errors.sum(0, dtype=np.float64)
        if watch is not None:
            watch(errors)
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


def check_targets(targets: np.ndarray, samples: int, classes: int) -> np.ndarray:
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


def removable(logits: np.ndarray, targets: np.ndarray, lasso: CovarianceLasso, *, drop: float = 0.0) -> pd.DataFrame:
    """Remove classes greedily while accuracy stays within `drop` of what it was.

    Args:
        logits: `(samples, classes)`.
        targets: `(samples,)`.
        lasso: fitted on one network, on these samples or others.
        drop: how much accuracy may be lost in all, between 0 and 1.

    Returns:
        One row for each class that goes, in order: `class`, `on` (the classes it is derived from when all have gone),
        `coefficients`, and `accuracy` after it went.
    """
    logits = check_logits("logits", logits)
    targets = check_targets(targets, len(logits), logits.shape[1])
    check_number("drop", drop, least=0, most=1, what="a share of the samples")
    if lasso.moment_.cross is not None or lasso.n_features_in_ != logits.shape[1]:
        raise HapteraError("lasso was fitted between two networks, or on other classes; one network was expected")
    state = _State(logits, targets, lasso)
    costs = replacement(logits, lasso.dependencies_, targets)["accuracy"]
    queue = [(-accuracy, place) for place, accuracy in enumerate(costs)]
    heapq.heapify(queue)
    least = state.right / len(logits) - drop - 1e-12
    gone: list[tuple[int, float]] = []
    while queue and len(gone) < logits.shape[1] - 1:
        _, place = heapq.heappop(queue)
        look = state.look(place)
        accuracy = look.right / len(logits)
        if accuracy < least:
            continue
        if queue and -accuracy > queue[0][0]:
            heapq.heappush(queue, (-accuracy, place))
            continue
        state.remove(place, look)
        gone.append((place, accuracy))
    rows = [(place, *state.derivation(place), accuracy) for place, accuracy in gone]
    return pd.DataFrame(rows, columns=["class", "on", "coefficients", "accuracy"])


def without(logits: np.ndarray, gone: pd.DataFrame) -> np.ndarray:
    """Logits, of these samples or others, with every class that `removable` took away derived from those left."""
    result = np.array(check_logits("logits", logits), dtype=np.float64)
    for place, on, coefficients in zip(gone["class"], gone["on"], gone["coefficients"], strict=True):
        result[:, place] = result[:, on] @ coefficients
    return result


@dataclass(frozen=True)
class _Look:
    """What would be if a class were removed: the columns that change, who leads then, and how often rightly."""

    theta: np.ndarray
    changed: np.ndarray
    columns: np.ndarray
    leader: np.ndarray
    right: int


class _State:
    """The logits with the derived columns in place, and who leads in every sample."""

    def __init__(self, logits: np.ndarray, targets: np.ndarray, lasso: CovarianceLasso) -> None:
        kind = logits.dtype if logits.dtype.kind == "f" else np.float64
        self.columns = np.array(logits, dtype=kind, order="F")  # a copy: columns are overwritten
        self.targets, self.lasso = targets, lasso
        self.leader = leaders(logits)[0]
        self.right = int((self.leader == targets).sum())
        self.gone = np.zeros(logits.shape[1], bool)
        self.maps = np.zeros((logits.shape[1], logits.shape[1]))  # how the classes that are gone are derived

    def look(self, place: int) -> _Look:
        """Derive a class from those left, and with it all that were derived from it."""
        theta = self._derive(place)
        on = np.flatnonzero(theta)
        column = self.columns[:, on] @ theta[on]
        users = np.flatnonzero(self.maps[:, place])
        move = column - self.columns[:, place]
        changed = np.sort(np.append(users, place))
        columns = self.columns[:, changed] + move[:, None] * np.where(changed == place, 1.0, self.maps[changed, place])
        rows = np.arange(len(column))
        rival = self.leader.copy()
        led = np.flatnonzero(np.isin(rival, changed))
        others = self.columns[led]
        others[:, changed] = -np.inf
        rival[led] = others.argmax(1)
        best = columns.argmax(1)
        wins = beats(columns[rows, best], changed[best], self.columns[rows, rival], rival)
        leader = np.where(wins, changed[best], rival)
        return _Look(theta, changed, columns, leader, int((leader == self.targets).sum()))

    def remove(self, place: int, look: _Look) -> None:
        """Take the class away."""
        self.columns[:, look.changed] = look.columns
        self.leader, self.right = look.leader, look.right
        self.maps += np.outer(self.maps[:, place], look.theta)
        self.maps[:, place] = 0
        self.maps[place] = look.theta
        self.gone[place] = True

    def derivation(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes that a removed one is derived from, and their coefficients."""
        on = np.flatnonzero(self.maps[place])
        return on, self.maps[place, on]

    def _derive(self, place: int) -> np.ndarray:
        """Coefficients on the classes that are left; solved anew where the class was derived from one that is gone."""
        row = self.lasso.dependencies_.coefficients[[place]]
        theta = row.toarray()[0]
        if self.gone[row.indices].any():
            theta = self.lasso.derive(place, np.flatnonzero(~self.gone & (np.arange(len(self.gone)) != place)))
        return theta
