"""Tuning: units as Poisson regressions on a label, and the label that explains the counts of a window best.

A generalised linear model for every unit, counts ~ Poisson(exp(w · φ(label))), with a ridge on w; then log
P(label | counts) = Σ_units n log λ(label) − λ(label) + const over candidate labels, flat over those that training saw.
φ is a Fourier basis of an angle, one column for each class, or Gaussian bumps around places of a continuous label,
which may have several dimensions, where the histograms of `decode_bayesian` cannot follow. Counts summed over a window
are Poisson with the summed rate; the width of the window is chosen on the validation part.
Source: Truccolo et al. (2005) for the regression, Zhang et al. (1998) for the decoder.
Cost: a Newton step is a product of samples x columns² for each unit; ten units of 24,000 samples take .3 s.
"""

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import uniform_filter1d
from sklearn.cluster import KMeans

from haptera.analyses.embedding.decoding import Decoding
from haptera.errors import HapteraError
from haptera.recordings.label import Label, label_scores, objective

HARMONICS, BUMPS, CANDIDATES = 5, 20, 400
RIDGE, ROUNDS = 1.0, 30
LARGEST = 20.0
"""Bounds of log rates, so that no step of Newton's runs away."""


def decode_glm(
    train: tuple[np.ndarray, Label],
    validation: tuple[np.ndarray, Label],
    test: tuple[np.ndarray, Label],
    *,
    windows: Sequence[int] = (1, 5),
    seed: int = 0,
) -> Decoding:
    """Decode a label from counts, `(samples, units)`, each part with its label and in the order of time.

    Args:
        train: for the regressions.
        validation: on which the window is chosen; the regressions are then fitted on both.
        test: to decode.
        windows: bins whose counts are taken together, centred.
        seed: of the places of bumps and candidates.
    """
    if any((counts < 0).any() for counts, _ in (train, validation, test)):
        raise HapteraError("Poisson regressions take counts, of spikes for instance; the signal has negative values")
    tuning = Tuning(*train, seed)
    chosen = max(windows, key=lambda width: objective(validation[1], tuning.decode(validation[0], width)))
    values = np.concatenate([train[1].values, validation[1].values])
    both = Tuning(np.concatenate([train[0], validation[0]]), Label(values, train[1].kind, train[1].classes), seed)
    predicted = both.decode(test[0], chosen)
    return Decoding("glm", chosen, predicted, label_scores(test[1], predicted))


class Tuning:
    """Poisson regressions of units on a label.

    Args:
        counts: `(samples, units)`.
        label: of the samples.
        seed: of the places of bumps and candidates.
    """

    def __init__(self, counts: np.ndarray, label: Label, seed: int = 0) -> None:
        self._kind = label.kind
        self._basis = _Basis(label, seed)
        inputs = self._basis(label.values)
        self.weights = np.stack([poisson_regression(inputs, unit) for unit in counts.T.astype(float)], axis=1)
        self.candidates = _candidates(label, seed)
        self.rates = np.exp(np.clip(self._basis(self.candidates) @ self.weights, -LARGEST, LARGEST))

    def decode(self, counts: np.ndarray, window: int) -> np.ndarray:
        """Return the candidate that explains the counts around each sample best."""
        sums = uniform_filter1d(counts.astype(float), window, axis=0, mode="nearest") * window
        evidence = sums @ np.log(self.rates).T - window * self.rates.sum(1)
        best: np.ndarray = self.candidates[evidence.argmax(1)]
        return best


def poisson_regression(inputs: np.ndarray, counts: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Return w that maximises Σ counts (w · x) − exp(w · x) − ½ ridge ‖w‖², the first column, a constant, not bound.

    Newton's method; a step is halved until it improves.
    """
    penalty = np.full(inputs.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(inputs.shape[1])
    weights[0] = np.log(max(counts.mean(), 1e-4))

    def value(of: np.ndarray) -> float:
        logs = np.clip(inputs @ of, -LARGEST, LARGEST)
        return float(counts @ logs - np.exp(logs).sum() - 0.5 * (penalty * of**2).sum())

    now = value(weights)
    for _ in range(ROUNDS):
        rates = np.exp(np.clip(inputs @ weights, -LARGEST, LARGEST))
        slope = inputs.T @ (counts - rates) - penalty * weights
        bend = (inputs * rates[:, None]).T @ inputs + np.diag(penalty + 1e-6)
        step = np.linalg.solve(bend, slope)
        while (then := value(weights + step)) < now and np.abs(step).max() > 1e-9:
            step = step / 2
        gain = then - now
        if gain >= 0:
            weights, now = weights + step, then
        if gain < 1e-10 * (1 + abs(now)):
            break
    return weights


class _Basis:
    """Columns of a label for a regression, the first a constant."""

    def __init__(self, label: Label, seed: int) -> None:
        self._kind = label.kind
        if label.kind == "discrete":
            self._classes = int(label.values.max()) + 1
        elif label.kind == "continuous":
            points = label.values.reshape(len(label), -1).astype(float)
            self._scale = np.maximum(points.std(0), 1e-12)
            self._centres = _places(points / self._scale, BUMPS, seed)
            apart = np.linalg.norm(self._centres[:, None] - self._centres, axis=2)
            apart[apart == 0] = np.inf
            nearest = apart.min(1)
            self._width = max(float(np.median(nearest[np.isfinite(nearest)])) if len(apart) > 1 else 1.0, 1e-6)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        one = np.ones((len(values), 1))
        if self._kind == "discrete":
            return np.concatenate([one, np.eye(self._classes)[np.minimum(values, self._classes - 1)]], axis=1)
        if self._kind == "angle":
            turns = np.arange(1, HARMONICS + 1) * values[:, None]
            return np.concatenate([one, np.cos(turns), np.sin(turns)], axis=1)
        points = values.reshape(len(values), -1) / self._scale
        squares = ((points[:, None] - self._centres) ** 2).sum(2)
        return np.concatenate([one, np.exp(-0.5 * squares / self._width**2)], axis=1)


def _candidates(label: Label, seed: int) -> np.ndarray:
    """Return labels to choose from: classes that were seen, angles all around, places that were visited."""
    if label.kind == "discrete":
        return np.unique(label.values)
    if label.kind == "angle":
        return np.arange(CANDIDATES) * 2 * np.pi / CANDIDATES
    rows = np.random.default_rng(seed).permutation(len(label))[:CANDIDATES]
    return label.values[np.sort(rows)]


def _places(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the middles of groups of points."""
    few = min(count, len(np.unique(points, axis=0)))
    some = points[np.random.default_rng(seed).permutation(len(points))[:5000]]
    found = KMeans(min(few, len(np.unique(some, axis=0))), n_init=1, random_state=seed).fit(some)
    return np.asarray(found.cluster_centers_)
