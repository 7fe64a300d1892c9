"""The best N: how much the training statistics should count when n images of the target are at hand.

Source: thesis chapter 2, proposition 1, and appendix A. The statistics in use are (A.8); their expected squared
Wasserstein distance to the true target statistics lies between L and U of (A.9), at confidence 1 − α. For several
channels, sums over channels, each divided by the source variance (A.40, A.46), so that no channel counts by its scale;
dead channels are left out, and nearly dead ones divided by no less than a floor (`holdfast.live_channels`).
Differs, where the print is wrong: the exponent −3/2 missing in lemma 3 is there, as in (A.9) and (A.30). At n = 1 the
sample variance is 0 for certain and L = U is exact; the χ² of the formula has no degrees of freedom there.
n counts images, not spatial positions; `between` says how much the mean of one image varies, where that is known.
Cost: closed forms; a simulation draws `draws` times two values per channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from holdfast.live_channels import scale as divisor

PRIORS = (0.0, *(2.0**k for k in range(11)))


@dataclass(frozen=True)
class Statistics:
    """Mean and variance of every channel, `(channels,)`.

    Attributes:
        mean: over images and positions.
        var: over images and positions.
        between: the variance between images of an image's own mean. The source takes it to be the whole variance, as it
            is where an image has one value per channel; where it has many, their mean varies less.
    """

    mean: np.ndarray
    var: np.ndarray
    between: np.ndarray | None = None


def lower_bound(source: Statistics, target: Statistics, n: float, prior: float) -> np.ndarray:
    """L of (A.9), per channel."""
    between, total = target.var if target.between is None else target.between, prior + n
    mixed = prior / total * source.var + n / total * (target.var - between / n)
    off = (prior / total) ** 2 * (target.mean - source.mean) ** 2
    return (np.sqrt(target.var) - np.sqrt(np.maximum(mixed, 0))) ** 2 + off + n / total**2 * between


def upper_bound(source: Statistics, target: Statistics, n: float, prior: float, alpha: float = 0.05) -> np.ndarray:
    """U of (A.9), per channel."""
    lower = lower_bound(source, target, n, prior)
    if n <= 1:
        return lower
    total = prior + n
    least = prior / total * source.var + chi2.ppf(alpha / 2, n - 1) / total * target.var
    with np.errstate(divide="ignore", invalid="ignore"):
        defect = target.var**2.5 * (n - 1) / (2 * total**2) * least**-1.5
    return lower + np.where(target.var > 0, defect, 0.0)


def simulated(
    source: Statistics, target: Statistics, n: int, prior: float, draws: int = 2000, seed: int = 0
) -> np.ndarray:
    """The expectation itself, per channel, from draws of the sample mean and variance of n normal values."""
    random = np.random.default_rng(seed)
    mean = target.mean + np.sqrt(target.var / n) * random.standard_normal((draws, len(target.mean)))
    spread = random.chisquare(n - 1, (draws, len(target.mean))) if n > 1 else np.zeros((draws, len(target.mean)))
    share = prior / (prior + n)
    mean = share * source.mean + (1 - share) * mean
    var = share * source.var + (1 - share) * target.var / n * spread
    return ((np.sqrt(var) - np.sqrt(target.var)) ** 2 + (mean - target.mean) ** 2).mean(0)


def prior_curve(
    source: Statistics,
    target: Statistics,
    n: int,
    priors: Sequence[float] = PRIORS,
    alpha: float = 0.05,
    draws: int = 2000,
) -> pd.DataFrame:
    """Figure 2.5 for one layer: `prior`, `lower`, `upper`, `simulated`; means over channels, normalised."""
    scale = divisor(source.var)
    rows = []
    for prior in priors:
        values: dict[str, Any] = {"prior": float(prior), "n": n}
        values["lower"] = (lower_bound(source, target, n, prior) / scale).mean()
        values["upper"] = (upper_bound(source, target, n, prior, alpha) / scale).mean()
        values["simulated"] = (simulated(source, target, n, prior, draws) / scale).mean()
        rows.append(values)
    return pd.DataFrame(rows)


def best_prior(layers: Sequence[tuple[Statistics, Statistics]], n: float, bound: str = "lower") -> float:
    """The N that minimises the mean over layers of the normalised bound; infinity if more is always better.

    Args:
        layers: source and target of each.
        n: images in a batch.
        bound: which of the two; the lower one is close to the expectation for n above a few.
    """
    function = lower_bound if bound == "lower" else upper_bound

    def distance(log_prior: float) -> float:
        prior = float(np.exp(log_prior))
        return float(
            np.mean([(function(s, t, n, prior) / scale).mean() for (s, t), scale in zip(layers, scales, strict=True)])
        )

    scales = [divisor(source.var) for source, _ in layers]
    grid = np.linspace(np.log(0.01), np.log(1e6), 60)
    values = [distance(x) for x in grid]
    k = int(np.argmin(values))
    if k == len(grid) - 1:
        return float("inf")
    found = minimize_scalar(distance, bounds=(grid[max(k - 1, 0)], grid[k + 1]), method="bounded")
    return float(np.exp(found.x)) if k else 0.0
