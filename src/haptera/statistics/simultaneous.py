"""Simultaneous intervals: many differences of the same pairs, all intervals true at once with a chance of 95 %.

An image that a network gets wrong under contrast 4 it mostly gets wrong under contrast 5, so comparisons of the same
images go together, and a correction that takes them as independent (Bonferroni's, Šidák's, Holm's) is wider than it
need be; Holm's gives decisions but no intervals to print beside them. The maximum of the absolute statistics (max-T,
Westfall and Young 1993, single step) has both: with the correlations of the comparisons, over images, its quantile is
that of the maximum of normal variables with these correlations (the multiplier bootstrap of Chernozhukov, Chetverikov
and Kato 2013, drawn without going through the images again).
Differences of right answers are -1, 0 and 1: one pair is added on each side, as Bonett and Price (2012) do, without
which an interval of a few pairs covers far too little. Coverage, simulated: `tests/statistics/test_simultaneous.py`.
Cost: images x comparisons² for the correlations, and 10,000 draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from haptera.statistics.intervals import LEVEL

DRAWS = 10_000
LARGE = 2_000
"""Comparisons beyond which correlations are not looked at."""


@dataclass(frozen=True)
class Intervals:
    """Mean differences and where they lie, all at once.

    Attributes:
        value: `(comparisons,)`, the means.
        low: `(comparisons,)`.
        high: `(comparisons,)`.
        critical: how many standard errors each interval reaches to either side; 1.96 for one comparison.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    critical: float


def simultaneous_intervals(
    differences: Sequence[np.ndarray], units: Sequence[np.ndarray], *, shares: bool = True, level: float = LEVEL
) -> Intervals:
    """Return the mean of each of several differences with intervals that hold together.

    Args:
        differences: for each comparison `(units,)`, what differs.
        units: for each comparison `(units,)`, the name of each unit; the same unit may be in many comparisons.
        shares: whether differences are between numbers from 0 to 1, which bounds the intervals and adds a pair to each
            side.
        level: the chance that all intervals hold what they should.

    >>> pairs = np.repeat([1.0, -1.0, 0.0], [12, 4, 84])
    >>> found = simultaneous_intervals([pairs], [np.arange(100)])
    >>> round(float(found.low[0]), 3), round(float(found.high[0]), 3)
    (-0.002, 0.159)
    """
    added = 2 if shares else 0
    sizes = np.array([len(each) + added for each in differences], float)
    sums = np.array([each.sum() for each in differences])
    squares = np.array([(np.asarray(each, float) ** 2).sum() for each in differences]) + added
    middles = sums / sizes
    errors = np.sqrt(np.maximum(squares / sizes - middles**2, 0) / np.maximum(sizes - (not shares), 1))
    critical = critical_value(correlations(differences, units, middles, errors * sizes), level)
    value = sums / np.maximum(sizes - added, 1)
    ends = [middles - critical * errors, middles + critical * errors]
    if shares:
        ends = [np.clip(end, -1, 1) for end in ends]
    return Intervals(value, np.minimum(ends[0], value), np.maximum(ends[1], value), critical)


def correlations(
    differences: Sequence[np.ndarray], units: Sequence[np.ndarray], middles: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Return `(comparisons, comparisons)`, how errors of mean differences go together, over the units of both.

    Args:
        differences: as for `simultaneous_intervals`.
        units: as for it.
        middles: `(comparisons,)`, the means.
        scales: `(comparisons,)`, standard errors of the sums.
    """
    if len(differences) > LARGE:
        return np.eye(len(differences))
    names, codes = np.unique(np.concatenate(units), return_inverse=True)
    places = np.split(codes, np.cumsum([len(each) for each in units])[:-1])
    errors = np.zeros((len(names), len(differences)))
    for column, (values, place) in enumerate(zip(differences, places, strict=True)):
        if scales[column] > 0:
            errors[place, column] = (values - middles[column]) / scales[column]
    made: np.ndarray = errors.T @ errors
    np.fill_diagonal(made, 1.0)  # at most 1 before, for the pairs that are added
    return made


def critical_value(correlation: np.ndarray, level: float = LEVEL) -> float:
    """Return what the greatest of correlated standard normal variables stays below, in absolute value, at this level.

    >>> round(critical_value(np.eye(1)), 2), round(critical_value(np.ones((5, 5))), 1)
    (1.96, 2.0)
    """
    size = len(correlation)
    independent = float(ndtri((1 + level ** (1 / max(size, 1))) / 2))
    if size < 2 or np.allclose(correlation, np.eye(size)):
        return independent
    roots, axes = np.linalg.eigh(correlation)
    normal = np.random.default_rng(0).standard_normal((DRAWS, size), np.float32)
    drawn = normal @ (axes * np.sqrt(np.maximum(roots, 0))).T.astype(np.float32)
    return min(independent, float(np.quantile(np.abs(drawn).max(1), level)))
