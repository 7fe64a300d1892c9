"""Betting: evidence about a mean that may be looked at after every observation, and intervals that hold at all times.

Source: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting". Whoever bets a share
of their capital on every observation, against "the mean is at least m", cannot expect to win if that is true; so the
chance that the capital ever exceeds 1/alpha is at most alpha (Ville's inequality), however often one looks. Here the
capital after observations x in [-1, 1] is the mean, over shares c, of the product of 1 - c + c (1 - x) / (1 - m).
Where it differs: bets stand still and are mixed, theirs follow the data. So the capital depends on how often each
value came and not on the order, and it grows with m, so that bisection finds the end of an interval. The mixture costs
at most log(16) = 2.8 of the logarithm of the capital. Cost: about 20 microseconds for three values.
"""

import numpy as np

SHARES = np.geomspace(0.01, 0.9, 16)
"""Of the capital that each of the bets puts on an observation."""
LEAST = 1e-12
"""Distance to the end of the scale that a mean keeps."""
STEPS = 40
"""Of the bisection, which leaves 2e-12 of an interval."""


def evidence_below(values: np.ndarray, counts: np.ndarray, mean: float) -> float:
    """Return the logarithm of the capital of a bet that the mean is below `mean`.

    If it is not, the chance that this ever exceeds log(1 / alpha) is at most alpha.

    Args:
        values: `(values,)`, from -1 to 1.
        counts: `(values,)`, how often each came.
        mean: what is bet against.

    >>> never, often = (evidence_below(np.array([-1.0, 0.0]), np.array([k, 100 - k]), 0.0) for k in (0, 30))
    >>> never < 0.1, often > 6
    (True, True)
    """
    ratio = (1.0 - np.asarray(values, float)) / max(1.0 - mean, LEAST)
    logs = np.log1p(SHARES[:, None] * (ratio - 1.0)) @ np.asarray(counts, float)
    most = float(logs.max())
    return most + float(np.log(np.exp(logs - most).mean()))


def evidence_above(values: np.ndarray, counts: np.ndarray, mean: float) -> float:
    """Return the logarithm of the capital of a bet that the mean is above `mean`; see `evidence_below`."""
    return evidence_below(-np.asarray(values, float), counts, -mean)


def anytime_interval(values: np.ndarray, counts: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return an interval that holds the mean after every number of observations at once, but for a chance of alpha.

    Half of it is spent on each side.

    >>> [round(end, 2) for end in anytime_interval(np.array([-1.0, 0.0, 1.0]), np.array([40, 940, 20]), 0.05)]
    [-0.05, 0.01]
    """
    enough = float(np.log(2 / alpha))
    values = np.asarray(values, float)
    return -_upper(-values, counts, enough), _upper(values, counts, enough)


def _upper(values: np.ndarray, counts: np.ndarray, enough: float) -> float:
    """Return the least mean that the data speaks against."""
    low, high = -1.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if evidence_below(values, counts, middle) >= enough else (middle, high)
    return high
