"""Decoders of that package, by its names and arguments: neighbours, and a linear map with an L1 penalty.

Their `score` is R², of classes as well, as there. To choose the number of neighbours on samples that nobody has seen,
use `haptera embed`, which does.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from haptera.compat.cebra.estimator import array
from haptera.errors import HapteraError


class Decoder(BaseEstimator):
    """What the decoders share; a subclass makes its scikit-learn estimator in `build`."""

    def build(self, y: np.ndarray) -> Any:
        """Return the estimator for such targets."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points and their labels."""
        points, targets = array(X), array(y)
        if len(points) != len(targets):
            raise HapteraError(f"X has {len(points)} samples and y {len(targets)}; as many were expected")
        if targets.dtype.kind not in "fiub":
            raise HapteraError(f"y has type {targets.dtype}; numbers were expected")
        self.decoder_ = self.build(targets).fit(points, targets)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each point."""
        return self.decoder_.predict(array(X))

    def score(self, X: Any, y: Any) -> float:
        """Return R²."""
        return float(r2_score(array(y), self.predict(X)))


class KNNDecoder(Decoder):
    """Neighbours: their mean for floating-point labels, else their most frequent class.

    >>> KNNDecoder(n_neighbors=1).fit(np.eye(3), np.arange(3)).predict(np.eye(3)).tolist()
    [0, 1, 2]
    """

    def __init__(self, n_neighbors: int = 3, metric: str = "cosine") -> None:
        self.n_neighbors, self.metric = n_neighbors, metric

    def build(self, y: np.ndarray) -> KNeighborsRegressor | KNeighborsClassifier:
        """Return a regressor for floating-point labels, else a classifier."""
        kind = KNeighborsRegressor if y.dtype.kind == "f" else KNeighborsClassifier
        return kind(n_neighbors=self.n_neighbors, metric=self.metric)

    @staticmethod
    def iter_hyperparams() -> Iterator[dict[str, Any]]:
        """Return the numbers of neighbours that that package tries."""
        return ({"n_neighbors": number**2, "metric": "cosine"} for number in range(1, 6))


class L1LinearRegressor(Decoder):
    """A linear map with an L1 penalty."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def build(self, y: np.ndarray) -> Lasso:
        """Return the regression."""
        return Lasso(alpha=self.alpha)
