"""Intervals at 95 %: Wilson's for a proportion of many, Student's for the mean of few units.

Sources: E. B. Wilson (1927), never outside [0, 1], sensible at 0, at 1 and for small n: the interval of every accuracy
and error here. Student (1908), with the delta method for the scale: for individuals, seeds, sessions or subjects, of
which there are two to twenty. The mean of the units is printed as it is, and its interval is Student's t on a scale on
which the mean's distribution is nearly even: plain numbers as they are, positive ones (errors, ratios) on the
logarithm, shares on the log odds. A bootstrap cannot do this: two units have three different means to draw, and its
"95 %" then covers half.
Coverage, simulated (`haptera.testing.intervals`): 93 to 96 % for 2 to 20 units that are normal, log-normal
(σ up to .5), gamma (shape 4) or beta. Units as uneven as a log-normal of σ 1 get 88 to 94 %.
Where the units are all equal there is no spread to learn from, and what is returned is their range, called so.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import expit, logit, stdtrit

from haptera.errors import HapteraError, unknown

Z95 = 1.959963984540054
LEVEL = 0.95
INTERVAL, RANGE, NONE = "95 % interval", "range", ""
SCALES = {"plain": (-np.inf, np.inf), "log": (0.0, np.inf), "share": (0.0, 1.0)}
EQUAL = 1e-12
"""Units that differ by less than this share of their mean are equal: a spread of rounding errors says nothing."""


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """Low and high end.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if n == 0:
        return 0.0, 1.0
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


@dataclass(frozen=True)
class UnitMean:
    """The mean of a few units.

    Attributes:
        value: their mean; NaN without any.
        low: lower end of what `kind` says; NaN for fewer than two units.
        high: upper end of it.
        deviation: standard deviation between units; NaN for fewer than two.
        units: how many there are.
        kind: `95 % interval`; `range` (least to greatest) where all are equal; empty for fewer than two units.
    """

    value: float
    low: float
    high: float
    deviation: float
    units: int
    kind: str

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the 95 % interval; NaN where there is none."""
        return (self.low, self.high) if self.kind == INTERVAL else (np.nan, np.nan)

    @property
    def clear(self) -> bool:
        """Return whether there is a 95 % interval, and 0 is outside."""
        return self.kind == INTERVAL and (self.low > 0 or self.high < 0)


def mean_of_units(values: np.ndarray, scale: str = "plain", level: float = LEVEL) -> UnitMean:
    """Return the mean of a few units with an interval that covers its share, or with their range, called so.

    Args:
        values: `(units,)`, one number for each; those that are not finite are left out.
        scale: `plain` for differences and scores without bounds, `log` for errors and ratios (0 or more), `share` for
            accuracies and other numbers from 0 to 1.
        level: the share of such intervals that should hold the mean of all units there could be.

    >>> found = mean_of_units([0.2, 0.3, 0.4], "log")
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2), found.kind
    (0.3, 0.13, 0.69, '95 % interval')
    >>> mean_of_units([1.0, 1.0, 1.0], "share").kind
    'range'
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    values = np.asarray(values, float).ravel()
    values = np.sort(values[np.isfinite(values)])  # sorted, so that the order of units does not decide the last digit
    units = len(values)
    least, most = SCALES[scale]
    if units and (values[0] < least or values[-1] > most):
        raise HapteraError(
            f"the scale {scale!r} takes values from {least:g} to {most:g}; found {values[0]:g} to {values[-1]:g}"
        )
    mean = float(values.mean()) if units else np.nan
    if units < 2:
        return UnitMean(mean, np.nan, np.nan, np.nan, units, NONE)
    deviation = float(values.std(ddof=1))
    if deviation <= EQUAL * max(abs(mean), 1e-300):
        return UnitMean(mean, float(values[0]), float(values[-1]), deviation, units, RANGE)
    half = float(stdtrit(units - 1, (1 + level) / 2)) * deviation / sqrt(units)
    ends = [float(_move(mean, half * side, scale)) for side in (-1, 1)]
    return UnitMean(mean, ends[0], ends[1], deviation, units, INTERVAL)


def _move(mean: float, by: float, scale: str) -> float:
    """The mean moved on a scale by what is `by` on the plain one near the mean: the delta method."""
    if scale == "log":
        return mean * float(np.exp(by / mean))
    if scale == "share":
        return float(expit(logit(mean) + by / (mean * (1 - mean))))
    return mean + by
