"""Error against the ImageNet accuracy of backbones: the line of figure 5.3 of the thesis.

Source: thesis chapter 5: out of domain −.93 percentage points of normalised error for each point of accuracy (R² .93),
within domain −.33. Ordinary least squares; p is of Student's t for a slope of 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import linregress

from haptera.errors import HapteraError


@dataclass(frozen=True)
class ErrorTrend:
    """A straight line through the errors of networks.

    Attributes:
        slope: change of the error for one unit of accuracy.
        intercept: error at accuracy 0.
        r2: share of the variance that the line explains.
        p_value: of a slope of 0.
        n: how many networks.
    """

    slope: float
    intercept: float
    r2: float
    p_value: float
    n: int


def error_trend(accuracies: Sequence[float] | np.ndarray, errors: Sequence[float] | np.ndarray) -> ErrorTrend:
    """The line through errors against accuracies of backbones.

    >>> line = error_trend([60.0, 70.0, 80.0], [0.3, 0.2, 0.1])
    >>> round(line.slope, 6), round(line.r2, 6), line.n
    (-0.01, 1.0, 3)
    """
    x, y = np.asarray(accuracies, float), np.asarray(errors, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 3 or not np.isfinite([x, y]).all():
        raise HapteraError(f"accuracies are {x.shape} and errors {y.shape}; three finite numbers each at least")
    if np.ptp(x) == 0:
        raise HapteraError("all backbones have the same accuracy; a line needs at least two different ones")
    line = linregress(x, y)
    return ErrorTrend(float(line.slope), float(line.intercept), float(line.rvalue**2), float(line.pvalue), len(x))
