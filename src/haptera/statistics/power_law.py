"""Power law: y ≈ a xᵇ over models or sizes, as a straight line through logarithms.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", figure 5 (ε ≈ .24 √R) and its
coefficient of correlation, that of log ε and log R. Intervals are Student's t for the exponent and Fisher's z for the
correlation; both take the points as independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, exp, inf, nan, sqrt, tanh

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from haptera.errors import HapteraError
from haptera.statistics.intervals import Z95

FEWEST = 3
INDICES = ("R", "D", "G")


@dataclass(frozen=True)
class PowerLaw:
    """y ≈ prefactor · x ** exponent.

    Attributes:
        exponent: the slope of the logarithms.
        exponent_low: lower end of its 95 % interval, as `exponent_high` is the upper one.
        exponent_high: see above.
        prefactor: y at x = 1.
        correlation: of the logarithms.
        correlation_low: lower end of its 95 % interval; NaN for three points.
        correlation_high: upper end.
        n: how many points.
        left_out: how many had no logarithm, such as an error of 0.
    """

    exponent: float
    exponent_low: float
    exponent_high: float
    prefactor: float
    correlation: float
    correlation_low: float
    correlation_high: float
    n: int
    left_out: int

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The law at x."""
        return self.prefactor * np.asarray(x, float) ** self.exponent


def power_law(x: np.ndarray, y: np.ndarray) -> PowerLaw:
    """Fit y ≈ a xᵇ to `(points,)` by least squares of the logarithms; points that have none are left out.

    >>> law = power_law([0.01, 0.1, 1.0], [0.02, 0.2 * 0.1**0.5, 0.2])
    >>> round(law.exponent, 6), round(law.prefactor, 6)
    (0.5, 0.2)
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    with np.errstate(invalid="ignore"):
        known = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    a, b = np.log(x[known]), np.log(y[known])
    n = len(a)
    if n < FEWEST or np.ptp(a) == 0:
        raise HapteraError(
            f"a power law needs at least {FEWEST} points of different x above 0, found {len(np.unique(a))}"
        )
    off = a - a.mean()
    slope = float(off @ b / (off @ off))
    rest = b - b.mean() - slope * off
    half = float(stdtrit(n - 2, 0.975)) * sqrt(float(rest @ rest) / (n - 2) / float(off @ off))
    spread = float(np.sqrt((off @ off) * ((b - b.mean()) ** 2).sum()))
    correlation = float(np.clip(off @ (b - b.mean()) / spread, -1, 1)) if spread else nan
    low, high = _fisher(correlation, n)
    prefactor = exp(float(b.mean()) - slope * float(a.mean()))
    return PowerLaw(slope, slope - half, slope + half, prefactor, correlation, low, high, n, len(x) - n)


def log_average(values: np.ndarray) -> float:
    """exp of the mean logarithm, over seeds; 0 if one value is 0.

    >>> round(log_average([0.1, 10]), 6)
    1.0
    """
    values = np.asarray(values, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.exp(np.log(values).mean())) if len(values) else nan


def power_laws(frame: pd.DataFrame) -> dict[str, PowerLaw]:
    """Index of stability -> the law of the column `error` against it; one that cannot be fitted is left out."""
    known = frame[frame["error"] > 0]
    laws = {}
    for index in INDICES:
        if (known[index] > 0).sum() >= FEWEST and known.loc[known[index] > 0, index].nunique() > 1:
            laws[index] = power_law(frame[index].to_numpy(), frame["error"].to_numpy())
    return laws


def over_seeds(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Log-averages of `error`, `R`, `D` and `G` over the rows that share `by`: networks that differ in the seed."""
    groups = frame.groupby(list(by), sort=False)
    return groups[["error", *INDICES]].agg(log_average).join(groups.size().rename("seeds")).reset_index()


def local_slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return `(points − 1,)`: the exponents between neighbours."""
    return np.diff(np.log(np.asarray(y, float))) / np.diff(np.log(np.asarray(x, float)))


def _fisher(correlation: float, n: int) -> tuple[float, float]:
    if n <= FEWEST or not np.isfinite(correlation):
        return nan, nan
    middle = atanh(correlation) if abs(correlation) < 1 else inf * correlation
    half = Z95 / sqrt(n - 3)
    return tanh(middle - half), tanh(middle + half)
