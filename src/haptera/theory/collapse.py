"""Collapse: why entropy minimisation first helps and then destroys, in a model with two inputs and two parameters.

Source: thesis appendix C. Two Gaussian classes at (±1, 0) with variances (1, .03), everything turned by 45 degrees;
the model is BatchNorm (no offset, ε = 0) and a linear layer without bias. The shift turns the signal by 20 degrees and
adds noise, turned by 30, with variances (.25, 4) in condition 1 and (.25, 25) in condition 2. Tent adapts the scale.
Differs: the printed covariance RᵀΣ̃R turns signal and noise in opposite directions, and nothing collapses; RΣ̃Rᵀ gives
the figures of the text. Expectations are over the distribution itself (Gauss and Hermite, 200 nodes) instead of
300,000 draws, and training starts from a weight of zero, which keeps the symmetry that a random start would break.
Cost: about a second for 60,000 steps.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import entr, expit, ndtr

SIGNAL_NOISE = np.diag([1.0, 0.03])
CLEAN_ANGLE, SIGNAL_TURN, NOISE_TURN = 45.0, 20.0, 30.0
CONDITIONS = {1: (0.25, 4.0), 2: (0.25, 25.0)}


@dataclass(frozen=True)
class Classes:
    """Two classes with means ±`mean` and one covariance."""

    mean: np.ndarray
    covariance: np.ndarray

    def normalised(self) -> "Classes":
        """Scale each coordinate to variance 1 over both classes, as BatchNorm without offset does."""
        spread = np.sqrt(np.diag(self.covariance) + self.mean**2)
        return Classes(self.mean / spread, self.covariance / np.outer(spread, spread))


def clean() -> Classes:
    """The data that the model is trained on."""
    turn = _rotation(CLEAN_ANGLE)
    return Classes(turn @ [1.0, 0.0], turn @ SIGNAL_NOISE @ turn.T)


def corrupted(condition: int) -> Classes:
    """The data that the model adapts to: the signal turned, and noise added nearly at right angles to it."""
    signal, noise = _rotation(CLEAN_ANGLE + SIGNAL_TURN), _rotation(CLEAN_ANGLE + NOISE_TURN)
    added = noise @ np.diag(CONDITIONS[condition]) @ noise.T
    return Classes(signal @ [1.0, 0.0], signal @ SIGNAL_NOISE @ signal.T + added)


def trained(steps: int = 3000, lr: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Weight and scale after training on clean data: cross-entropy, lr x .1 after 1,000 and 2,000 steps."""
    data, weight, scale = clean().normalised(), np.zeros(2), np.ones(2)
    for step in range(steps):
        rate = lr * 0.1 ** ((step >= 1000) + (step >= 2000))
        gradient = _gradient(weight * scale, data, lambda z: -expit(-z))
        weight, scale = weight - rate * gradient * scale, scale - rate * gradient * weight
    return weight, scale


def trajectory(condition: int, steps: int = 60_000, lr: float = 0.01, every: int = 100) -> pd.DataFrame:
    """Tent on the corrupted data.

    Returns:
        One row per `every` steps: `condition`, `step`, `scale_1`, `scale_2`, `size` (norm of the scale), `accuracy`,
        `entropy` (mean, in nats).
    """
    data, (weight, scale) = corrupted(condition).normalised(), trained()
    rows = []
    for step in range(steps + 1):
        if step % every == 0:
            rows.append({"condition": condition, "step": step, **_state(weight, scale, data)})
        scale = scale - lr * weight * _gradient(weight * scale, data, _entropy_slope)
    return pd.DataFrame(rows)


def _state(weight: np.ndarray, scale: np.ndarray, data: Classes) -> dict[str, float]:
    nodes, shares = _nodes()
    mean, spread = _projected(weight * scale, data)
    p = expit(mean + spread * nodes)
    return {
        "scale_1": float(scale[0]),
        "scale_2": float(scale[1]),
        "size": float(np.linalg.norm(scale)),
        "accuracy": float(ndtr(mean / spread)),
        "entropy": float(shares @ (entr(p) + entr(1 - p))),
    }


def _entropy_slope(z: np.ndarray) -> np.ndarray:
    """dH/dz of a prediction σ(z): −z σ(z) σ(−z)."""
    return -z * expit(z) * expit(-z)


def _gradient(direction: np.ndarray, data: Classes, slope: object) -> np.ndarray:
    """E[slope(z) x] for z = direction · x, over the class at +mean; by symmetry the other class gives the same."""
    nodes, shares = _nodes()
    mean, spread = _projected(direction, data)
    values = shares * slope(mean + spread * nodes)  # type: ignore[operator]
    along = data.covariance @ direction / spread if spread else np.zeros(2)
    return values.sum() * data.mean + (values @ nodes) * along


def _projected(direction: np.ndarray, data: Classes) -> tuple[float, float]:
    return float(direction @ data.mean), float(np.sqrt(direction @ data.covariance @ direction))


@cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    return nodes, weights / weights.sum()


def _rotation(degrees: float) -> np.ndarray:
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
