"""Removal: which classes of a network can be derived from the others, together, before accuracy drops.

Goes on from table 1 of "Neural Dependencies Emerging from Learning Massive Categories", which replaces one class at a
time. A class that is removed is derived from classes that are left; when one of these is removed in its turn, what it
is derived from takes its place. The class that costs the least now goes next (lazily: a class is looked at again when
its last known cost is the least).
Cost: for each look a pass over the columns that change; the logits are held twice.
"""

import heapq
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.lasso_rounds import solve
from haptera.analyses.dependencies.replacement import checked_targets, replacement
from haptera.analyses.dependencies.second_moment import checked_logits
from haptera.checks import check_number
from haptera.correctness import beats, leaders
from haptera.errors import HapteraError


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
    logits = checked_logits("logits", logits)
    targets = checked_targets(targets, len(logits), logits.shape[1])
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
    result = np.array(checked_logits("logits", logits), dtype=np.float64)
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
        self.targets, self.lasso, self.matrix = targets, lasso, lasso.moment_.matrix()
        self.leader = leaders(logits)[0]
        self.right = int((self.leader == targets).sum())
        self.gone = np.zeros(logits.shape[1], bool)
        self.maps = np.zeros((logits.shape[1], logits.shape[1]))  # how the classes that are gone are derived

    def look(self, place: int) -> _Look:
        """Derive a class from those left, and with it all that were derived from it."""
        theta = self._derived(place)
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

    def _derived(self, place: int) -> np.ndarray:
        """Coefficients on the classes that are left; solved anew where the class was derived from one that is gone."""
        row = self.lasso.dependencies_.coefficients[[place]]
        theta = row.toarray()[0]
        if self.gone[row.indices].any():
            left = np.flatnonzero(~self.gone & (np.arange(len(self.gone)) != place))
            lam, nothing = self.lasso.dependencies_.lam[[place]], np.array([-1])
            start = row[:, left]
            found = solve(self.matrix[np.ix_(left, left)], self.matrix[[place]][:, left], lam, nothing, start)
            theta = np.zeros(len(self.gone))
            theta[left] = found.toarray()[0]
        return theta
