"""Decoders of that package, by its names and arguments: neighbours, and a linear map with an L1 penalty.

They are those of `haptera.analyses.embedding.decoders`, but that their `score` is R², of classes as well, as there. To
choose the number of neighbours on samples that nobody has seen, use `haptera embed`, which does.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from haptera.analyses.embedding import decoders
from haptera.compat.cebra.estimator import array
from haptera.errors import HapteraError


class _ScoredByR2(decoders.Decoder):
    """What both decoders of that package do: take tensors, and score by R²."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points and their labels."""
        points, targets = array(X), array(y)
        if len(points) != len(targets):
            raise HapteraError(f"X has {len(points)} samples and y {len(targets)}; as many were expected")
        if targets.dtype.kind not in "fiub":
            raise HapteraError(f"y has type {targets.dtype}; numbers were expected")
        return super().fit(points, targets)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each point."""
        return super().predict(array(X))

    def score(self, X: Any, y: Any) -> float:
        """Return R²."""
        return float(r2_score(array(y), self.predict(X)))


class KNNDecoder(_ScoredByR2, decoders.KNNDecoder):
    """Neighbours: their mean for floating-point labels, else their most frequent class.

    >>> KNNDecoder(n_neighbors=1).fit(np.eye(3), np.arange(3)).predict(np.eye(3)).tolist()
    [0, 1, 2]
    """

    def __init__(self, n_neighbors: int = 3, metric: str = "cosine") -> None:
        super().__init__(n_neighbors, metric)

    @staticmethod
    def iter_hyperparams() -> Iterator[dict[str, Any]]:
        """Return the numbers of neighbours that that package tries."""
        return ({"n_neighbors": number**2, "metric": "cosine"} for number in range(1, 6))


class L1LinearRegressor(_ScoredByR2, decoders.LinearDecoder):
    """A linear map with an L1 penalty."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__("l1", alpha, "continuous")
