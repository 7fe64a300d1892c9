"""The size of a shift: how far the statistics of activations are from those of the reference, layer by layer.

Source: thesis appendix A: squared Wasserstein distance of normal distributions (A.1), the same normalised by the source
(A.2)-(A.4), Jeffreys divergence (A.5)-(A.7). Diagonal by default: channel by channel, averaged over the channels of a
layer; a network's size is the mean over layers of √ of the layer's mean. With full covariances, one distance per layer,
divided by its number of channels.
Differs: channels that vary on neither side are left out, and the variance that distances are divided by has a floor
(`haptera.statistics.moments`): a dead channel would make any distance infinite.
The test divides the pooled groups of images anew many times: p is the share of divisions that are as far apart as the
reference and the data are.
Cost: a permutation is one product of a row of shares with the moments.
Detectors that people use today, for comparison, take features `(images, features)` of the reference and of the data:
Kolmogorov and Smirnov's test of each feature (Rabanser et al. 2019), and MMD with a Gaussian kernel as wide as the
median distance, with images permuted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import eigh, solve
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

from haptera.errors import HapteraError
from haptera.statistics.moments import Moments, live, variance_floor

DISTANCES = ("wasserstein", "normalised", "jeffreys")
AT_ONCE = 50
"""Divisions in one product; a network of 20,000 channels takes 40 MB for them."""
Pair = tuple[np.ndarray, np.ndarray]


def wasserstein(source: Pair, target: Pair) -> np.ndarray:
    """W² of normal distributions with (mean, variance), per channel: (A.1) for one dimension."""
    return (source[0] - target[0]) ** 2 + (np.sqrt(source[1]) - np.sqrt(target[1])) ** 2


def normalised_wasserstein(source: Pair, target: Pair) -> np.ndarray:
    """W² over the source variance, per channel (A.4); 0 where both are constant and equal."""
    return _ratio(wasserstein(source, target), source[1])


def jeffreys(source: Pair, target: Pair) -> np.ndarray:
    """Per channel (A.7); infinite where one side is constant and the other is not equal to it."""
    off = (source[0] - target[0]) ** 2
    parts = _ratio(target[1] + off, source[1]) + _ratio(source[1] + off, target[1])
    both = (source[1] == 0) & (target[1] == 0)
    return np.where(both, np.where(off > 0, np.inf, 0.0), (parts - 2) / 4)


def full_wasserstein(mean_s: np.ndarray, cov_s: np.ndarray, mean_t: np.ndarray, cov_t: np.ndarray) -> float:
    """(A.1) with whole covariance matrices."""
    root = _root(cov_t)
    cross = np.sqrt(np.maximum(eigh(root @ cov_s @ root, eigvals_only=True), 0.0)).sum()
    return float(((mean_s - mean_t) ** 2).sum() + max(np.trace(cov_s) + np.trace(cov_t) - 2 * cross, 0.0))


def full_normalised_wasserstein(mean_s: np.ndarray, cov_s: np.ndarray, mean_t: np.ndarray, cov_t: np.ndarray) -> float:
    """(A.1) after whitening by the source; directions in which the source does not vary are left out."""
    values, vectors = eigh(cov_s)
    kept = values > values.max() * 1e-10
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    eye = np.eye(int(kept.sum()))
    return full_wasserstein(whiten.T @ mean_s, eye, whiten.T @ mean_t, whiten.T @ cov_t @ whiten)


def full_jeffreys(mean_s: np.ndarray, cov_s: np.ndarray, mean_t: np.ndarray, cov_t: np.ndarray) -> float:
    """(A.7) with whole covariance matrices, which must be invertible."""
    off = mean_s - mean_t
    both = ((cov_s, cov_t), (cov_t, cov_s))
    try:
        parts = [np.trace(solve(a, b, assume_a="pos")) + off @ solve(a, off, assume_a="pos") for a, b in both]
    except np.linalg.LinAlgError as error:
        raise HapteraError("a covariance is singular: more images are needed, or the diagonal distance") from error
    return float((sum(parts) - 2 * len(off)) / 4)


def shift_profile(reference: Moments, data: Moments) -> pd.DataFrame:
    """Each layer's distances, in the order of the model: `layer`, `depth`, `channels`, `dead`, and one per distance.

    Wasserstein distances are roots of the mean of W² over live channels; Jeffreys' is the mean. They are NaN for a
    layer whose channels are all dead. With covariances on both sides, columns `full_...` follow.
    """
    reference.like(data)
    scale = Scale.between(reference, data)
    source, target = reference.pool(), data.pool()
    columns = {
        "wasserstein": wasserstein(source, target),
        "normalised": wasserstein(source, target) / np.maximum(source[1], scale.floor),
        "jeffreys": jeffreys(*((mean, np.maximum(var, scale.floor)) for mean, var in (source, target))),
    }
    rows = []
    alive = reference.per_layer(scale.live)
    per_layer = {key: reference.per_layer(values) for key, values in columns.items()}
    for depth, (name, channels) in enumerate(zip(reference.names, reference.channels, strict=True)):
        kept = alive[name]
        row: dict[str, Any] = {"layer": name, "depth": depth, "channels": channels, "dead": int((~kept).sum())}
        row |= {key: float(values[name][kept].mean()) if kept.any() else np.nan for key, values in per_layer.items()}
        row |= {key: float(np.sqrt(row[key])) for key in ("wasserstein", "normalised")}
        if name in reference.covariance and name in data.covariance and kept.any():
            row |= _full(name, reference, data, kept)
        rows.append(row)
    return pd.DataFrame(rows)


def shift_size(reference: Moments, data: Moments) -> float:
    """One number for a network: the mean over layers of the root of the mean normalised W² over live channels."""
    reference.like(data)
    return float(_sizes(reference, Scale.between(reference, data), *reference.pool(), *data.pool()))


@dataclass(frozen=True)
class Scale:
    """What distances between two sides are divided by.

    Attributes:
        live: `(all channels,)`, whether a channel varies on either side.
        floor: `(all channels,)`, the least variance to divide by.
    """

    live: np.ndarray
    floor: np.ndarray

    @classmethod
    def between(cls, reference: Moments, data: Moments) -> "Scale":
        """Return the scale between reference and data, by what is typical of each layer of the reference."""
        return cls.of(reference, reference.pool()[1], data.pool()[1])

    @classmethod
    def of(cls, layers: Moments, *variances: np.ndarray) -> "Scale":
        """Return the scale of variances, one array for each side; the first tells what is typical of a layer."""
        cut = [layers.per_layer(var) for var in variances]
        alive = np.concatenate([live(*(side[name] for side in cut)) for name in layers.names])
        if not alive.any():
            raise HapteraError(
                f"none of the {len(alive):,} channels of {len(layers.names)} layers varies over the images; "
                "there is nothing to compare"
            )
        return cls(alive, np.repeat([variance_floor(cut[0][name]) for name in layers.names], layers.channels))


@dataclass(frozen=True)
class ShiftTest:
    """Say whether data is further from the reference than chance puts two parts of one set of images.

    Attributes:
        size: of the shift.
        chance: the median size over random divisions.
        p_value: the share of divisions at least as far apart, the given one among them.
        divisions: how many were tried.
    """

    size: float
    chance: float
    p_value: float
    divisions: int

    @property
    def ratio(self) -> float:
        """The size in units of what chance gives."""
        return self.size / self.chance if self.chance else float("inf")


def shift_test(reference: Moments, data: Moments, divisions: int = 1000, seed: int = 0) -> ShiftTest:
    """Permutation test on groups of images; without images of the reference, on two halves of the data.

    Groups must have the same size on both sides to be exchangeable; the smaller ones are put together, and images that
    do not fill a group do not take part.
    """
    if data.images is None:
        raise HapteraError("a test needs images on the side of the data")
    size = shift_size(reference, data)
    pools = [data] if reference.images is None else [reference, data]
    together = max(int(pool.images[0]) for pool in pools if pool.images is not None)
    parts = [pool.merge(together) for pool in pools]
    first, second = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if min(len(part[0]) for part in parts) < 2 or len(first) < 4:
        raise HapteraError(
            f"a test needs at least two groups of {together} images on each side, and four in all; "
            "give more images, or fewer samples of the other side"
        )
    part = len(first) // 2 if reference.images is None else len(parts[0][0])
    # From the pool, so that it does not depend on the division and all divisions are alike.
    scale = Scale.of(reference, _variance(first.mean(0), second.mean(0)))

    def sizes(chosen: np.ndarray) -> np.ndarray:
        """Return the sizes of the divisions whose rows of `chosen` are true for the groups of the first part."""
        share = chosen / part
        mean_s, second_s = share @ first, share @ second
        rest = len(first) - part
        mean_t, second_t = (
            (values.sum(0) - part * own) / rest for values, own in ((first, mean_s), (second, second_s))
        )
        return _sizes(reference, scale, mean_s, _variance(mean_s, second_s), mean_t, _variance(mean_t, second_t))

    given = size if reference.images is None else float(sizes(np.arange(len(first))[None] < part)[0])
    random = np.random.default_rng(seed)
    orders = np.stack([random.permutation(len(first)) for _ in range(divisions)])
    chance = np.concatenate([sizes(orders[start : start + AT_ONCE] < part) for start in range(0, divisions, AT_ONCE)])
    as_far = int((chance >= given * (1 - 1e-12)).sum())
    return ShiftTest(size, float(np.median(chance)), (1 + as_far) / (1 + divisions), divisions)


def ks_p_value(reference: np.ndarray, data: np.ndarray) -> float:
    """Return the smallest p over features, times their number: Kolmogorov and Smirnov, corrected by Bonferroni."""
    p = ks_2samp(reference, data, axis=0).pvalue
    return float(min(np.min(p) * reference.shape[1], 1.0))


def mmd(reference: np.ndarray, data: np.ndarray) -> float:
    """The squared MMD between two samples (biased estimate), with a kernel as wide as the median distance."""
    kernel = _kernel(np.concatenate([reference, data]))
    return _mmd(kernel, np.arange(len(kernel)), len(reference))


def mmd_p_value(reference: np.ndarray, data: np.ndarray, permutations: int = 200, seed: int = 0) -> float:
    """The share of divisions of the pooled features whose MMD is at least that of the given one."""
    kernel = _kernel(np.concatenate([reference, data]))
    random, m = np.random.default_rng(seed), len(reference)
    given = _mmd(kernel, np.arange(len(kernel)), m)
    chance = [_mmd(kernel, random.permutation(len(kernel)), m) for _ in range(permutations)]
    return float((1 + sum(value >= given for value in chance)) / (1 + permutations))


def _kernel(pooled: np.ndarray) -> np.ndarray:
    squares = cdist(pooled, pooled, "sqeuclidean")
    width = np.median(squares[np.triu_indices(len(pooled), 1)])
    return np.exp(-squares / max(width, 1e-12))


def _mmd(kernel: np.ndarray, order: np.ndarray, m: int) -> float:
    signs = np.empty(len(order))
    signs[order[:m]], signs[order[m:]] = 1 / m, -1 / (len(order) - m)
    return float(signs @ kernel @ signs)


def _variance(mean: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.maximum(second - mean**2, 0.0)


def _sizes(
    layers: Moments, scale: Scale, mean_s: np.ndarray, var_s: np.ndarray, mean_t: np.ndarray, var_t: np.ndarray
) -> np.ndarray:
    """`(..., all channels)` to `(...,)`."""
    distances = wasserstein((mean_s, var_s), (mean_t, var_t)) / np.maximum(var_s, scale.floor)
    starts = np.cumsum([0, *layers.channels[:-1]])
    alive = np.add.reduceat(scale.live.astype(float), starts)
    sums = np.add.reduceat(np.where(scale.live, distances, 0.0), starts, axis=-1)
    return np.sqrt(sums[..., alive > 0] / alive[alive > 0]).mean(-1)


def _full(name: str, reference: Moments, data: Moments, kept: np.ndarray) -> dict[str, float]:
    means = [side.per_layer(side.pool()[0])[name][kept] for side in (reference, data)]
    inner = np.ix_(kept, kept)
    arguments = (means[0], reference.covariance[name][inner], means[1], data.covariance[name][inner])
    channels = len(means[0])
    return {
        "full_wasserstein": float(np.sqrt(full_wasserstein(*arguments) / channels)),
        "full_normalised": float(np.sqrt(full_normalised_wasserstein(*arguments) / channels)),
        "full_jeffreys": full_jeffreys(*arguments) / channels,
    }


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above == 0, 0.0, above / below)
