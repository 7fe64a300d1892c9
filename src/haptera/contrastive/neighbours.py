"""The sample whose label is nearest to a query: a sort for one dimension, a tree for few, blocked products for many.

Samples with equal labels share one entry, and one of them is drawn: an animal that sits still, or a film that is shown
ten times, does not give the same sample every time. Labels that repeat (angles) are points on a circle.
Cost, for T samples and B queries of d dimensions: B log T, against T·B·d for a matrix of distances, which is what more
than 16 dimensions need, a block at a time.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from haptera.errors import HapteraError

TREE_DIMENSIONS = 16
_BLOCK = 2**22


class Members:
    """Items sorted by their code, so that one of a code's items can be drawn for many codes at once.

    >>> members = Members(np.array([7, 8, 9]), np.array([0, 2, 2]))
    >>> members.codes.tolist(), members.draw(np.array([0, 0]), np.random.default_rng(0)).tolist()
    ([0, 2], [7, 7])
    """

    def __init__(self, items: np.ndarray, codes: np.ndarray) -> None:
        self.items = items[np.argsort(codes, kind="stable")]
        self._counts = np.bincount(codes)
        self._first = self._counts.cumsum() - self._counts
        self.codes = np.flatnonzero(self._counts)

    def has(self, codes: np.ndarray) -> np.ndarray:
        """Say whether there is an item of each code."""
        return np.isin(codes, self.codes)

    def of(self, code: int) -> np.ndarray:
        """All items of a code."""
        return self.items[self._first[code] : self._first[code] + self._counts[code]]

    def draw(self, codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One item of each code, each as likely as any other of that code."""
        return self.items[self._first[codes] + random.integers(self._counts[codes])]


class Nearest:
    """Find the item whose point, a row of `(items, dimensions)`, is nearest to a query."""

    def __init__(self, points: np.ndarray, items: np.ndarray) -> None:
        if points.shape[1] == 1:
            different, codes = np.unique(points[:, 0], return_inverse=True)
        else:
            different, codes = np.unique(points, axis=0, return_inverse=True)
        self._members = Members(items, codes.reshape(-1))
        self._points = different
        self._tree = cKDTree(different) if 1 < points.shape[1] <= TREE_DIMENSIONS else None
        if different.ndim == 2 and self._tree is None:
            self._middle = different.mean(0)
            self._points = (different - self._middle).astype(np.float32)
            self._squares = (self._points**2).sum(1)

    def draw(self, queries: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """An item whose point is nearest to each query `(queries, dimensions)`."""
        if self._tree is not None:
            return self._members.draw(np.asarray(self._tree.query(queries)[1]), random)
        return self._members.draw(
            self._search_line(queries[:, 0]) if self._points.ndim == 1 else self._search_blocks(queries), random
        )

    def _search_line(self, queries: np.ndarray) -> np.ndarray:
        right = np.searchsorted(self._points, queries).clip(1, max(len(self._points) - 1, 1))
        if len(self._points) == 1:
            return np.zeros(len(queries), np.int64)
        return right - (queries - self._points[right - 1] <= self._points[right] - queries)

    def _search_blocks(self, queries: np.ndarray) -> np.ndarray:
        centred = (queries - self._middle).astype(np.float32)
        best = np.full(len(queries), np.inf, np.float32)
        found = np.zeros(len(queries), np.int64)
        size = max(_BLOCK // len(queries), 1)
        for start in range(0, len(self._points), size):
            block = slice(start, start + size)
            distances = self._squares[block] - 2 * centred @ self._points[block].T
            nearest = distances.argmin(1)
            least = distances[np.arange(len(queries)), nearest]
            better = least < best
            best[better], found[better] = least[better], nearest[better] + start
        return found


class LabelSpace:
    """Continuous labels, some of which may repeat.

    Args:
        dimensions: of the label.
        period: None, or after how much the label repeats: one number for all columns, or one or None for each.

    >>> angle = LabelSpace(1, period=360.0)
    >>> angle.difference(np.array([[350.0]]), np.array([[10.0]])).tolist()
    [[20.0]]
    """

    def __init__(self, dimensions: int, period: float | Sequence[float | None] | None = None) -> None:
        periods = list(period) if isinstance(period, Sequence | np.ndarray) else [period] * dimensions
        if len(periods) != dimensions:
            raise HapteraError(f"period has {len(periods)} entries for a continuous label of {dimensions} columns")
        if any(one is not None and not one > 0 for one in periods):
            raise HapteraError(f"period is {period}; more than 0, or None where a column does not repeat, was expected")
        self._periods = np.array([np.inf if one is None else one for one in periods])
        self._round = np.isfinite(self._periods)

    def difference(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return the way from `start` to `stop`, the short way round."""
        difference = stop - start
        periods = self._periods[self._round]
        difference[:, self._round] = (difference[:, self._round] + periods / 2) % periods - periods / 2
        return difference

    def points(self, labels: np.ndarray) -> np.ndarray:
        """Labels as points between which distances are straight: a circle of the right circumference for an angle."""
        if not self._round.any():
            return labels
        radius = self._periods[self._round] / (2 * np.pi)
        angles = labels[:, self._round] / radius
        return np.hstack([labels[:, ~self._round], radius * np.cos(angles), radius * np.sin(angles)])
