"""Stripes: how a network with one hidden layer learns that all directions but one do not matter, from how much data.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", section 6 and equation (6):
points are standard normal in d dimensions, the label depends on the first coordinate alone (two parallel planes, half
of the points between them), and R compares noise in the other directions with noise of the same norm in all of them.
Where the network learns features, its weights turn to the first direction and R falls as 1/P with the number P of
points. The source prints neither planes nor training; these are as in the works it cites, or chosen here.
The network is α (F(x) − F₀(x)), F = mean over hidden units of β relu(ω·x/√d + b), F₀ the same at the start: a small α
makes weights move far (features), a large one hardly at all (lazy). Hinge loss over α, SGD with momentum, until no
point is within the margin; Adam would lose the alignment.
Cost: P x units x d products for an epoch, some hundreds of epochs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.errors import check_keys
from haptera.statistics.power_law import PowerLaw, log_average, power_law

PLANES = (-0.3, 1.18549)
"""Between these lies half of the standard normal distribution."""


@dataclass(frozen=True)
class Regime:
    """How a network is trained.

    Attributes:
        alpha: the factor before it.
        lr: learning rate for each hidden unit, in units of the gradient of its own share.
    """

    alpha: float
    lr: float


REGIMES = {"feature": Regime(1.0, 0.02), "lazy": Regime(1000.0, 0.001)}
"""Rates are small, so that the noise of SGD, which has no reason to respect the invariance, adds little to R."""


@dataclass(frozen=True)
class Stripes:
    """The task and the training.

    Attributes:
        d: dimensions, one of which matters.
        hidden: units.
        batch_size: points per step.
        momentum: of SGD.
        epochs: at most.
        tested: points on which R and the error are measured.
        norm: of the noise.
    """

    d: int = 30
    hidden: int = 256
    batch_size: int = 64
    momentum: float = 0.9
    epochs: int = 1000
    tested: int = 4000
    norm: float = 1.0

    def points(self, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return `(count, d)` points and their labels, 1 outside the planes and −1 between them."""
        x = generator.standard_normal((count, self.d)).astype(np.float32)
        return x, np.where((x[:, 0] > PLANES[0]) & (x[:, 0] < PLANES[1]), -1.0, 1.0).astype(np.float32)

    def train(self, points: int, regime: Regime, seed: int) -> "Network":
        """A network on so many points, trained until it fits them with the margin, or the epochs are over."""
        generator = np.random.default_rng(seed)
        x, y = self.points(points, generator)
        net = Network.at_random(self.d, self.hidden, regime.alpha, generator)
        speed = [np.zeros_like(part) for part in net.parts]
        start = net.raw(x)
        while not net.fits and net.epochs < self.epochs:
            net.fits, net.epochs = True, net.epochs + 1
            for rows in np.array_split(generator.permutation(points), max(points // self.batch_size, 1)):
                inputs, active = x[rows], net.pre_activations(x[rows])
                hidden = np.maximum(active, 0)
                margin = y[rows] * regime.alpha * (hidden @ net.output / self.hidden - start[rows])
                pull = np.where(margin < 1, -y[rows], 0).astype(np.float32) / len(rows)
                if not pull.any():
                    continue
                net.fits = False
                back = np.outer(pull, net.output) * (active > 0)
                gradients = (back.T @ inputs / np.float32(self.d**0.5), back.sum(0), hidden.T @ pull)
                for part, own, gradient in zip(net.parts, speed, gradients, strict=True):
                    own *= np.float32(self.momentum)
                    own += gradient
                    part -= np.float32(regime.lr) * own
        return net

    def measure(self, net: "Network", seed: int) -> dict[str, float]:
        """R of equation (6), as a ratio of means, and the error, on new points."""
        generator = np.random.default_rng([seed, 1])
        x, y = self.points(self.tested, generator)
        noise = generator.standard_normal(x.shape).astype(np.float32)
        sideways = noise.copy()
        sideways[:, 0] = 0
        plain = net(x)
        ways = [way / np.linalg.norm(way, axis=1, keepdims=True) for way in (sideways, noise)]
        moved, shaken = (net(x + self.norm * way) for way in ways)
        relative = float(((moved - plain) ** 2).mean() / ((shaken - plain) ** 2).mean())
        return {"R": relative, "error": float((np.sign(plain) != y).mean())}


class Network:
    """One hidden layer; `parts` are ω `(hidden, d)`, b `(hidden,)` and β `(hidden,)`."""

    def __init__(self, weights: np.ndarray, bias: np.ndarray, output: np.ndarray, alpha: float) -> None:
        self.parts = (weights, bias, output)
        self.alpha = alpha
        self.first = tuple(part.copy() for part in self.parts)
        self.epochs, self.fits = 0, False

    @classmethod
    def at_random(cls, d: int, hidden: int, alpha: float, generator: np.random.Generator) -> "Network":
        """Standard normal weights."""
        shapes = ((hidden, d), (hidden,), (hidden,))
        weights, bias, output = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
        return cls(weights, bias, output, alpha)

    @property
    def output(self) -> np.ndarray:
        """β."""
        return self.parts[2]

    def pre_activations(self, x: np.ndarray) -> np.ndarray:
        """Return `(points, hidden)`."""
        weights, bias, _ = self.parts
        return x @ weights.T / np.float32(x.shape[1] ** 0.5) + bias

    def raw(self, x: np.ndarray) -> np.ndarray:
        """F at `(points, d)`."""
        return np.maximum(self.pre_activations(x), 0) @ self.output / len(self.output)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """α (F − F₀)."""
        weights, bias, output = self.first
        before = np.maximum(x @ weights.T / np.float32(x.shape[1] ** 0.5) + bias, 0) @ output / len(output)
        return self.alpha * (self.raw(x) - before)


def stripes(
    sizes: Sequence[int] = (500, 1000, 2000, 4000, 8000),
    seeds: Sequence[int] = (0, 1, 2),
    regimes: Sequence[str] = ("feature", "lazy"),
    task: Stripes | None = None,
) -> pd.DataFrame:
    """R against the number of points.

    Returns:
        One row for each regime, size and seed: `regime`, `points`, `seed`, `R`, `error`, `epochs`, `fits` (whether no
        point is within the margin).
    """
    task = task or Stripes()
    check_keys("regime", regimes, REGIMES)
    rows = []
    for name in regimes:
        for points in sizes:
            for seed in seeds:
                net = task.train(points, REGIMES[name], seed)
                row = {"regime": name, "points": points, "seed": seed, **task.measure(net, seed)}
                rows.append(row | {"epochs": net.epochs, "fits": net.fits})
    return pd.DataFrame(rows)


def slope(frame: pd.DataFrame) -> PowerLaw:
    """The law of R against the number of points, through log-averages over seeds."""
    means = frame.groupby("points")["R"].agg(log_average)
    return power_law(means.index.to_numpy(float), means.to_numpy())
