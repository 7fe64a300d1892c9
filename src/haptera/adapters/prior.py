"""The best N: how much the training statistics should count when n images of the target are at hand.

Source: thesis chapter 2, proposition 1, and appendix A. The statistics in use are (A.8); their expected squared
Wasserstein distance to the true target statistics lies between L and U of (A.9), at confidence 1 − α. For several
channels, sums over channels, each divided by the source variance (A.40, A.46), so that no channel counts by its scale;
dead channels are left out, and nearly dead ones divided by no less than a floor (`haptera.statistics.moments`).
`AutoPrior` chooses the N with the least L, its mean over channels and layers, from unlabelled images.
Differs, where the print is wrong: the exponent −3/2 missing in lemma 3 is there, as in (A.9) and (A.30). At n = 1 the
sample variance is 0 for certain and L = U is exact; the χ² of the formula has no degrees of freedom there.
n counts images, not spatial positions; `between` says how much the mean of one image varies, where that is known.
The source knows the target; `AutoPrior` estimates it from the images seen so far, less the noise of that estimate, and
measures the spread between images instead of setting it to the whole variance.
Cost: closed forms; a simulation draws `draws` times two values per channel. `AutoPrior` takes one more pass over each
BatchNorm layer's input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import chi2
from torch import nn

from haptera.adapters.norm import Blend, per_image
from haptera.statistics.moments import scale as divisor

PRIORS = (0.0, *(2.0**k for k in range(11)))
FIRST_PRIOR = 16.0
"""The prior until the first batch was seen."""


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


class AutoPrior(nn.Module):
    """Watches the inputs of BatchNorm layers; what it has seen is state, as everything of an adapter is.

    Attributes:
        prior: the N in use.
    """

    def __init__(self, layers: Sequence[Blend]) -> None:
        super().__init__()
        self.layers = list(layers)  # no modules of this one: the model has them
        channels = sum(len(layer.mean) for layer in layers)
        self.sums: torch.Tensor
        self.images: torch.Tensor
        self.chosen: torch.Tensor
        self.register_buffer("sums", torch.zeros(3, channels, dtype=torch.float64))
        self.register_buffer("images", torch.zeros((), dtype=torch.int64))
        self.register_buffer("chosen", torch.tensor(FIRST_PRIOR, dtype=torch.float64))
        self._seen: dict[int, torch.Tensor] = {}

    @property
    def prior(self) -> float:
        """N."""
        return float(self.chosen)

    def use(self) -> None:
        """Hand N to the layers."""
        self._seen.clear()
        for layer in self.layers:
            layer.prior = self.prior

    def choose(self, n: int) -> None:
        """Add the batch that just went through, and choose N for the next one of this size."""
        seen = [self._seen.get(id(layer)) for layer in self.layers]
        if any(part is None for part in seen):
            return  # a layer that this batch did not meet
        moments = torch.cat([part for part in seen if part is not None], 2).double()
        self.sums += torch.stack([moments[:, 0].sum(0), moments[:, 1].sum(0), (moments[:, 0] ** 2).sum(0)]).to(
            self.sums
        )
        self.images += len(moments)
        m = int(self.images)
        mean, second, of_means = (self.sums / m).cpu().numpy()
        between = np.maximum(of_means - mean**2, 0) * (m / (m - 1) if m > 1 else 1)
        source = Statistics(*(self._source(name) for name in ("source_mean", "source_var")))
        off = np.sqrt(np.maximum((mean - source.mean) ** 2 - between / m, 0))  # less what noise adds to it
        spread = np.maximum(second - mean**2, 0) + (between / m if m > 1 else 0)
        target = Statistics(source.mean + off, spread, between)
        edges = np.cumsum([len(layer.mean) for layer in self.layers])[:-1]
        scale = np.concatenate([divisor(part) for part in np.split(source.var, edges)])
        candidates = [*PRIORS[1:], 2.0**20] if n == 1 else [*PRIORS, 2.0**20]
        distances = [
            np.mean([np.mean(part) for part in np.split(lower_bound(source, target, n, N) / scale, edges)])
            for N in candidates
        ]
        self.chosen.fill_(candidates[int(np.argmin(distances))])

    def _source(self, name: str) -> np.ndarray:
        return torch.cat([getattr(layer, name) for layer in self.layers]).double().cpu().numpy()

    def watch(self, blend: Blend, inputs: torch.Tensor) -> None:
        """Take the moments of what a layer is about to normalise."""
        self._seen[id(blend)] = per_image(inputs.detach())
