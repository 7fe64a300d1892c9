"""Decoders: estimators of scikit-learn's shape that read a label of any kind, angles on the circle included.

    search = GridSearchCV(KNNDecoder(kind="angle"), {"n_neighbors": [1, 4, 9, 16, 25]}, cv=TimeFolds(5, gap=20))
    search.fit(embedding, heading).predict(new)

Neighbours have equal weights; numbers are averaged, angles as points on the circle, classes by vote, of which the first
wins a tie. A linear decoder fits numbers, both coordinates of an angle, or +1 and -1 for every class, of which the
largest wins. `haptera.analyses.embedding.decoding` uses the same functions, and chooses settings on a validation part.
Cost: a tree in few dimensions, else distances block by block; one decomposition serves every penalty of a ridge.
"""

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.recordings.label import KINDS, Label, circular_mean, objective

Distance = Literal["cosine", "euclidean"]
PENALTIES = ("l1", "l2")


class Decoder(BaseEstimator):
    """The part of a decoder that knows about labels; a subclass writes `_learn` and `_read`.

    `kind` is `continuous`, `discrete`, `angle` (radians) or `degrees`; None takes floats as continuous and everything
    else as classes, as `ContrastiveEmbedding` does.
    """

    kind: str | None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to read `y`, one value or row for each sample, from `X`, `(samples, dimensions)`."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=self.kind not in (None, "discrete"))
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        self.label_ = self._label(y)
        self._learn(X.astype(float, copy=False))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every sample, in the form and unit that `fit` was given."""
        check_is_fitted(self)
        found = self._read(validate_data(self, X, reset=False).astype(float, copy=False))
        if self.label_.kind == "discrete":
            return np.asarray(self.classes_[found])
        return np.rad2deg(found) if self.kind == "degrees" else found

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of classes, or else R², that of an angle on the circle; higher is better."""
        found, true = self.predict(X), np.asarray(y)
        if self.label_.kind == "discrete":
            return float(np.mean(found == true))
        truth, said = (Label.of(values, self.kind or "continuous", "y") for values in (true, found))
        return objective(truth, said.values)

    def _label(self, y: np.ndarray) -> Label:
        if self.kind is not None and self.kind not in (*KINDS, "degrees"):
            raise unknown("kind", self.kind, (*KINDS, "degrees"))
        if self.kind == "discrete" or (self.kind is None and y.dtype.kind != "f"):
            check_classification_targets(y)
            if y.ndim > 1:
                raise HapteraError(f"y has {y.shape[1]} columns; a discrete label has one")
            self.classes_, codes = np.unique(y, return_inverse=True)
            return Label(codes, "discrete", tuple(map(str, self.classes_)))
        return Label.of(y.astype(float), self.kind or "continuous", "y")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.kind in (None, "continuous")
        return tags

    def _learn(self, X: np.ndarray) -> None:
        raise NotImplementedError

    def _read(self, X: np.ndarray) -> np.ndarray:
        """Return values as `Label.values` has them."""
        raise NotImplementedError


class KNNDecoder(Decoder):
    """Read a label from the nearest neighbours of a sample.

    Args:
        n_neighbors: how many.
        metric: `cosine` for embeddings on a sphere, `euclidean` for others.
        kind: of the label; None goes by its type, see `Decoder`.

    >>> around = np.linspace(0, 360, 12, endpoint=False)
    >>> ring = np.column_stack([np.cos(np.deg2rad(around)), np.sin(np.deg2rad(around))])
    >>> KNNDecoder(3, kind="degrees").fit(ring, around).predict(ring[:1]).round(6) % 360  # of 330, 0 and 30
    array([0.])
    """

    def __init__(self, n_neighbors: int = 9, metric: str = "cosine", kind: str | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.kind = kind

    def _learn(self, X: np.ndarray) -> None:
        check_whole_number("n_neighbors", self.n_neighbors)
        if len(X) < self.n_neighbors:
            raise HapteraError(f"n_neighbors is {self.n_neighbors}; X has {len(X)} sample{'s' * (len(X) > 1)}")
        self.points_ = on_sphere(X) if self.metric == "cosine" else X
        if self.metric not in ("cosine", "euclidean"):
            raise unknown("metric", self.metric, ("cosine", "euclidean"))

    def _read(self, X: np.ndarray) -> np.ndarray:
        distance: Distance = "cosine" if self.metric == "cosine" else "euclidean"
        return vote(self.label_, nearest(self.points_, X, self.n_neighbors, distance))


class LinearDecoder(Decoder):
    """Read a label by a linear map, with a penalty on its coefficients or none.

    Args:
        penalty: `l2`, a ridge, ‖y − Xw‖² + α‖w‖²; `l1`, a lasso, ‖y − Xw‖² / 2n + α‖w‖₁ for each output; None.
        alpha: of the penalty.
        kind: of the label; None goes by its type, see `Decoder`.

    Attributes:
        coef_: `(outputs, dimensions)`.
        intercept_: `(outputs,)`.
    """

    def __init__(self, penalty: str | None = "l2", alpha: float = 1.0, kind: str | None = None) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.kind = kind

    def _learn(self, X: np.ndarray) -> None:
        if self.penalty is not None and self.penalty not in PENALTIES:
            raise unknown("penalty", self.penalty, PENALTIES)
        check_number("alpha", self.alpha, above=0)
        outputs = label_outputs(self.label_)
        if self.penalty == "l2":
            weights, offset = Ridge(X, outputs).solve(self.alpha)
            self.coef_, self.intercept_ = weights.T, offset
            return
        found = LinearRegression() if self.penalty is None else Lasso(self.alpha, max_iter=10_000)
        found.fit(X, outputs)
        self.coef_, self.intercept_ = np.atleast_2d(found.coef_), np.atleast_1d(found.intercept_)

    def _read(self, X: np.ndarray) -> np.ndarray:
        return read_outputs(X @ self.coef_.T + self.intercept_, self.label_)


class TimeFolds:
    """Folds of samples in the order of time: each test part is one stretch, and its neighbours do not train.

    Samples that follow one another are alike, so that folds of samples at random test what was nearly seen. For whole
    trials, scikit-learn's `GroupKFold` takes their numbers as `groups`.

    Args:
        n_splits: how many test parts; every sample is in one.
        gap: samples on either side of a test part that do not train, such as the window of an encoder.

    >>> [(train.tolist(), test.tolist()) for train, test in TimeFolds(2, gap=1).split(range(6))]
    [([4, 5], [0, 1, 2]), ([0, 1], [3, 4, 5])]
    """

    def __init__(self, n_splits: int = 5, gap: int = 0) -> None:
        check_whole_number("n_splits", n_splits, least=2)
        check_whole_number("gap", gap, least=0)
        self.n_splits, self.gap = n_splits, gap

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows to train on and rows to test on."""
        count = len(X)
        if count < 2 * self.n_splits:
            raise HapteraError(f"{count} samples in {self.n_splits} folds; at least two in each were expected")
        rows = np.arange(count)
        for test in np.array_split(rows, self.n_splits):
            train = rows[(rows < test[0] - self.gap) | (rows > test[-1] + self.gap)]
            if not len(train):
                raise HapteraError(f"gap is {self.gap}; nothing of {count} samples is left to train on")
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many folds there are."""
        return self.n_splits


def nearest(among: np.ndarray, of: np.ndarray, count: int, distance: Distance) -> np.ndarray:
    """Rows of `among` that are nearest to each sample of `of`, `(samples, count)`, the nearest first."""
    if distance not in ("cosine", "euclidean"):
        raise HapteraError(f"distance is {distance!r}; 'cosine' or 'euclidean' was expected")
    # Euclidean distances on the unit sphere have the order of cosine distances.
    among, of = (on_sphere(points) if distance == "cosine" else points for points in (among, of))
    rows: np.ndarray = NearestNeighbors(n_neighbors=count).fit(among).kneighbors(of, return_distance=False)
    return rows


def on_sphere(points: np.ndarray) -> np.ndarray:
    """Points with a length of 1; one at the origin stays there."""
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(length > 0, length, 1.0)


def vote(label: Label, neighbours: np.ndarray) -> np.ndarray:
    """What the neighbours say together; `neighbours` are rows of the training part, `(samples, k)`."""
    values = label.values[neighbours]
    if label.kind == "angle":
        return circular_mean(values)
    if label.kind == "continuous":
        return values.mean(1)
    count = np.zeros((len(values), int(label.values.max()) + 1), np.int64)
    np.add.at(count, (np.arange(len(values))[:, None], values), 1)
    return count.argmax(1)


def label_outputs(label: Label) -> np.ndarray:
    """Return what a linear map is fitted to, `(samples, outputs)`."""
    if label.kind == "discrete":
        return np.eye(int(label.values.max()) + 1)[label.values] * 2 - 1
    return label.features.astype(float)


def read_outputs(outputs: np.ndarray, label: Label) -> np.ndarray:
    """Return the label that outputs of a linear map stand for."""
    if label.kind == "discrete":
        return outputs.argmax(1)
    if label.kind == "angle":
        return np.mod(np.arctan2(outputs[:, 1], outputs[:, 0]), 2 * np.pi)
    return outputs[:, 0] if label.values.ndim == 1 else outputs


class Ridge:
    """Solutions for many penalties from one decomposition."""

    def __init__(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        inputs = np.asarray(inputs, float)
        self._mean, self._offset = inputs.mean(0), outputs.mean(0)
        values, self._vectors = np.linalg.eigh((inputs - self._mean).T @ (inputs - self._mean))
        self._values = values.clip(0)
        self._moment = self._vectors.T @ ((inputs - self._mean).T @ (outputs - self._offset))

    def solve(self, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients `(dimensions, outputs)` and intercepts."""
        coefficients = self._vectors @ (self._moment / (self._values + penalty)[:, None])
        return coefficients, self._offset - self._mean @ coefficients

    def predict(self, inputs: np.ndarray, penalty: float) -> np.ndarray:
        """Return the outputs of new inputs."""
        coefficients, intercept = self.solve(penalty)
        return inputs @ coefficients + intercept
