"""Means of many small groups at once, each with the interval of few units that `mean_of_units` gives.

Groups of one size and scale are the rows of a matrix. Cost: a sort of all units.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from haptera.statistics.intervals import EQUAL, LEVEL, SCALES, mean_of_units


@dataclass(frozen=True)
class GroupMeans:
    """What is known about each group, in the order of their numbers; see `haptera.statistics.intervals.UnitMean`.

    Attributes:
        low: lower end of the 95 % interval; NaN where there is none.
        high: upper end of it.
        deviation: standard deviation between units; NaN for fewer than two.
        units: how many there are.
    """

    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray
    units: np.ndarray


def means_of_groups(values: np.ndarray, groups: np.ndarray, scales: np.ndarray) -> GroupMeans:
    """Return the spread and the interval of the mean of every group.

    Args:
        values: `(units,)`.
        groups: `(units,)`, whole numbers.
        scales: `(units,)`, the scale of each unit's group.

    >>> found = means_of_groups(np.array([0.2, 0.3, 5.0, 0.4]), np.array([1, 1, 0, 1]), np.array(["log"] * 4))
    >>> found.low.round(2).tolist(), found.high.round(2).tolist(), found.units.tolist()
    ([nan, 0.13], [nan, 0.69], [1, 3])
    """
    order = np.lexsort((values, groups))
    values, groups, scales = values[order], groups[order], scales[order]
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
    sizes = np.diff(starts, append=len(groups))
    odd = np.unique(np.searchsorted(starts, np.flatnonzero(~np.isfinite(values)), "right") - 1)
    low, high, deviation = (np.full(len(starts), np.nan) for _ in range(3))
    units, scale = sizes.copy(), scales[starts]
    plain = np.ones(len(starts), bool)
    plain[odd] = False
    for size in np.unique(sizes[sizes > 1]):
        for name in SCALES:
            own = np.flatnonzero((sizes == size) & (scale == name) & plain)
            matrix = values[starts[own][:, None] + np.arange(size)]
            low[own], high[own], deviation[own] = _intervals(matrix, name)
    for group in odd.tolist():
        found = mean_of_units(values[starts[group] : starts[group] + sizes[group]], str(scale[group]))
        low[group], high[group] = found.ends
        deviation[group], units[group] = found.deviation, found.units
    return GroupMeans(low, high, deviation, units)


def _intervals(matrix: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both ends and the standard deviation of each row, as `mean_of_units` has them."""
    if (matrix < SCALES[scale][0]).any() or (matrix > SCALES[scale][1]).any():
        outside = (matrix < SCALES[scale][0]) | (matrix > SCALES[scale][1])
        mean_of_units(matrix[outside.any(1)][0], scale)  # says what is wrong
    mean, deviation, units = matrix.mean(1), matrix.std(1, ddof=1), matrix.shape[1]
    equal = deviation <= EQUAL * np.maximum(np.abs(mean), 1e-300)
    half = float(stdtrit(units - 1, (1 + LEVEL) / 2)) * deviation / np.sqrt(units)
    ends = []
    for by in (-half, half):
        with np.errstate(all="ignore"):  # those that are equal have no interval
            if scale == "log":
                moved = mean * np.exp(by / mean)
            elif scale == "share":
                moved = expit(logit(mean) + by / (mean * (1 - mean)))
            else:
                moved = mean + by
        ends.append(np.where(equal, np.nan, moved))
    return ends[0], ends[1], deviation
