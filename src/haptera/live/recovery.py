"""Recovery: whether a stream that has changed is back, by moving averages of ranks.

The rank of a score in the first half of the reference, from 0 to 1, has mean 1/2 and mean distance 1/4 from it while
nothing is changed. Both are averaged with weights that fall by half every third of a window; the stream is back where
all averages are within `LIMIT` standard deviations, which allow for the size of the reference as well.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

LIMIT = 3.0
TIMES, LEAST, MOST = 4, 500, 20_000
"""A window has so many times the images that a change took to be noticed, within these bounds."""
_DEVIATIONS = np.array([1 / np.sqrt(12), 1 / np.sqrt(48)])
"""Of a uniform rank, and of its distance from the middle."""


class Recovery:
    """Averages of the ranks of every signal since an alarm.

    Args:
        first: `(signals, images)`, sorted scores of the reference.
        images: from the change to the alarm; over several times as many, a change that stays cannot hide.
    """

    def __init__(self, first: np.ndarray, images: int) -> None:
        self.window = int(np.clip(TIMES * images, LEAST, MOST))
        self._first = first
        self._averages, self._weights = np.zeros((len(first), 2)), np.zeros((len(first), 2))
        self._seen = np.zeros(len(first), np.int64)

    @classmethod
    def of_state(cls, state: Mapping[str, Any], first: np.ndarray) -> "Recovery":
        """Return what `state` was taken of."""
        made = cls(first, 0)
        made.window = int(state["window"])
        made._averages[...], made._weights[...] = state["averages"], state["weights"]
        made._seen[...] = state["seen"]
        return made

    def state(self) -> dict[str, Any]:
        """Return what changes."""
        arrays = {"averages": self._averages, "weights": self._weights, "seen": self._seen}
        return {"window": self.window, **{name: values.copy() for name, values in arrays.items()}}

    def update(self, scores: np.ndarray, rows: np.ndarray) -> bool:
        """Add the scores of some signals, `(rows, images)`, and say whether the stream is back."""
        count = scores.shape[1]
        size = self._first.shape[1]
        ranks = np.stack(
            [
                np.searchsorted(self._first[row], own, "left") + np.searchsorted(self._first[row], own, "right")
                for row, own in zip(rows, scores, strict=True)
            ]
        ) / (2 * size)
        values = np.stack([ranks, np.abs(ranks - 0.5)], -1)
        keep = 0.5 ** (3 / self.window)
        weights = keep ** np.arange(count - 1, -1, -1)
        self._averages[rows] = self._averages[rows] * keep**count + np.einsum("i,rik->rk", weights, values)
        self._weights[rows] *= np.array([keep, keep**2]) ** count
        self._weights[rows] += [weights.sum(), np.square(weights).sum()]
        self._seen[rows] += count
        known = self._seen > 0
        if (self._seen[known] < self.window).any():
            return False
        total, squares = self._weights[known].T
        means = self._averages[known] / total[:, None]
        deviations = _DEVIATIONS * np.sqrt(squares / total**2 + 1 / size)[:, None]
        return bool((np.abs(means - [0.5, 0.25]) < LIMIT * deviations).all())
