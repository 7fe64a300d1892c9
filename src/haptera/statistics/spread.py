"""Spread: how far off a prediction is on a new shift, from errors on known ones that are not independent.

A mean square of n errors, each a sum of independent ones, has fewer than n degrees of freedom; they and its expectation
are those of a quadratic form of normal errors (Satterthwaite, 1946). `haptera.measures.combination` makes the forms.
"""

from dataclasses import dataclass
from functools import cache
from math import hypot, inf, sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

FEWEST = 4
"""Corruptions below which there is no interval."""


@dataclass(frozen=True)
class Spread:
    """How relative errors on new shifts are spread.

    Attributes:
        deviation: a normal error's standard deviation; infinite with too few corruptions.
        freedom: degrees of freedom behind it.
        corruptions: how many it is from; 0 with too few.
    """

    deviation: float = inf
    freedom: float = 0.0
    corruptions: int = 0


def mean_squares(errors: np.ndarray, counts: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean squares of errors, and the same as quadratic forms of the corruptions' own errors, each for all."""
    share = member / member.sum(0)
    return np.square(errors) @ share, np.einsum("rc,ri,rj->cij", share, counts, counts)


def spread_of(squares: np.ndarray, forms: np.ndarray, added: float) -> Spread:
    """Return the spread of new relative errors from mean squares of `(corruptions,)` known ones.

    Args:
        squares: `(corruptions,)`.
        forms: what they are of independent errors u with variance 1: uᵀ A u, with A `(corruptions, all, all)`.
        added: the variance that u adds to a prediction of a new shift, beside the 1 of its own error.
    """
    if len(squares) < FEWEST:
        return Spread()
    form = forms.mean(0)
    expected = float(np.trace(form))
    freedom = expected**2 / float(np.square(form).sum())  # of Satterthwaite
    return Spread(sqrt(squares.mean() * (1 + added) / expected), freedom, len(squares))


def deviation_of(accuracy: float, scale: float, spread: Spread, images: tuple[int, int], level: float) -> float:
    """Return half of the interval by the spread of relative errors, over what a normal distribution has."""
    if not spread.corruptions:
        return inf
    share = min(max((accuracy * images[0] + 2) / (images[0] + 4), 0.02), 0.98)  # a few images do not make it sure
    sampling = sqrt(share * (1 - share) * sum(1 / max(n, 1) for n in images))
    return hypot(_student(level, spread.freedom) / quantile(level) * spread.deviation * scale, sampling)


@cache
def _student(level: float, freedom: float) -> float:
    return float(stdtrit(freedom, (1 + level) / 2))


@cache
def quantile(level: float) -> float:
    """Return how many deviations an interval of a level has on each side."""
    return float(ndtri((1 + level) / 2))
