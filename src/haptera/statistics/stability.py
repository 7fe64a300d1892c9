"""Stability: how far an output moves when the image is deformed, and when it gets noise of the same norm.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", equations (4) and (5):
R = ⟨‖f(τx) − f(x)‖²⟩ / ⟨‖f(x + η) − f(x)‖²⟩; D and G are its two parts over ⟨‖f(x) − f(z)‖²⟩ of two images, so R = D/G.
⟨ ⟩ is the mean, or the median, in all parts of a ratio, the norm of η included: it lies on a sphere of radius
⟨‖τx − x‖⟩.
Differs: one pass with noise serves both. Its norm is that of one aggregate, and what the other one sees is multiplied
by the square of the ratio of the two norms, which is exact where f is linear. Intervals are over images, the
bootstrap's.
Pairs are all pairs of images within a group; up to 1,000 images are one group.
Cost: images² x outputs for the pairs of a group, and a sort of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.statistics.resample import interval

AGGREGATES = ("mean", "median")
GROUP = 1000
DRAWS = 200
FEWEST = 20
"""Images; of fewer an interval of a ratio of means covers less than it says."""
KNOTS = np.linspace(0.3, 0.7, 5)
"""Quantiles of all pairs between which the medians of draws are found."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Squared distances of what one network, or one of its layers, gives.

    Attributes:
        deformed: `(images,)`, ‖f(τx) − f(x)‖².
        noisy: `(images,)`, ‖f(x + η) − f(x)‖².
        pairs: ‖f(x) − f(z)‖² for all pairs of a group, `(images of the group, images of the group)`; the groups follow
            one another in the order of the images.
        noise: aggregate -> by how much `noisy` is multiplied for it, 1 for the aggregate whose norm η had.
    """

    deformed: np.ndarray
    noisy: np.ndarray
    pairs: Sequence[np.ndarray]
    noise: Mapping[str, float]

    def __post_init__(self) -> None:
        n = len(self.deformed)
        if len(self.noisy) != n or sum(map(len, self.pairs)) != n:
            raise HapteraError(
                f"distances of {n} deformed and {len(self.noisy)} noisy images, pairs of {sum(map(len, self.pairs))}"
            )
        if n < 2:
            raise HapteraError(f"stability needs at least two images, found {n}")

    def __len__(self) -> int:
        return len(self.deformed)


def pair_distances(outputs: np.ndarray, group: int = GROUP) -> list[np.ndarray]:
    """Squared distances between `(images, outputs)`, in groups of at most so many images."""
    groups = max(-(-len(outputs) // group), 1)
    found = []
    for part in np.array_split(np.asarray(outputs, np.float64), groups):
        centred = part - part.mean(0)
        squares = (centred**2).sum(1)
        distances = np.maximum(squares[:, None] + squares - 2 * centred @ centred.T, 0.0)
        np.fill_diagonal(distances, 0.0)
        found.append(distances)
    return found


def stability_indices(distances: Distances, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """R, D and G, each as ratio of means and of medians, with 95 % intervals over images.

    Args:
        distances: of a network or a layer.
        draws: of images, for the intervals; 0 leaves these out, and so do fewer than 20 images.
        seed: of the draws.

    Returns:
        Six rows: `index`, `aggregate`, `value`, `low`, `high`, `n`. NaN where the noise, or the choice of the image,
        changes nothing.
    """
    n = len(distances)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, n, (draws, n))
    times = np.stack([np.bincount(rows, minlength=n) for rows in drawn]) if draws else np.zeros((0, n), int)
    spread = _Pairs(distances.pairs)
    rows = []
    for aggregate in AGGREGATES:
        take = np.mean if aggregate == "mean" else np.median
        noisy = distances.noisy * distances.noise[aggregate]
        parts = [take(distances.deformed), take(noisy), spread.aggregate(aggregate)]
        others = [take(distances.deformed[drawn], axis=1), take(noisy[drawn], axis=1)]
        others.append(spread.drawn(aggregate, times))
        for index, (above, below) in {"R": (0, 1), "D": (0, 2), "G": (1, 2)}.items():
            value = _ratio(parts[above], parts[below])
            low = high = np.full((), np.nan)
            if draws and n >= FEWEST and np.isfinite(value):
                low, high = interval(value, _ratio(others[above], others[below]), units=n)
                low, high = np.fmin(low, value), np.fmax(high, value)
            ends = {"low": float(low), "high": float(high)}
            rows.append({"index": index, "aggregate": aggregate, "value": float(value), **ends, "n": n})
    return pd.DataFrame(rows)


class _Pairs:
    """Mean and median over pairs, of all images or of images drawn with replacement.

    In a draw a pair counts as often as both of its images came, and no image is paired with itself. The median of a
    draw is found between a few quantiles of all pairs, by how much of the draw lies below each.
    """

    def __init__(self, groups: Sequence[np.ndarray]) -> None:
        self.groups = groups
        self.values = np.concatenate([group[np.triu_indices(len(group), 1)] for group in groups])
        if not len(self.values):
            raise HapteraError("there are no pairs of images: batches of at least two were expected")

    def aggregate(self, aggregate: str) -> float:
        return float(self.values.mean() if aggregate == "mean" else np.median(self.values))

    def drawn(self, aggregate: str, times: np.ndarray) -> np.ndarray:
        """Return `(draws,)`, from how often each image came, `(draws, images)`."""
        if aggregate == "mean":
            return self._mean(times, self.groups)
        knots = np.quantile(self.values, KNOTS)
        below = np.stack([self._mean(times, [group <= knot for group in self.groups]) for knot in knots], 1)
        return np.array([np.interp(0.5, shares, knots) for shares in below])

    def _mean(self, times: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the mean of any property of pairs."""
        total, weight = np.zeros(len(times)), np.zeros(len(times))
        start = 0
        for group in groups:
            counts = times[:, start : start + len(group)].astype(np.float32)
            values = group.astype(np.float32)
            np.fill_diagonal(values, 0.0)
            total += ((counts @ values) * counts).sum(1, dtype=np.float64)
            weight += counts.sum(1, dtype=np.float64) ** 2 - (counts**2).sum(1, dtype=np.float64)
            start += len(group)
        return np.divide(total, weight, out=np.full(len(times), np.nan), where=weight > 0)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, np.asarray(above) / below, np.nan)
