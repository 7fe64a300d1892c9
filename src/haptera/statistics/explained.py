"""The interval of R²: how much of the spread a line would explain with other models that scatter around it as these do.

With normal residuals, F = R² / (1 - R²) · (n - d) / (d - 1) of a line with d terms through n points has a noncentral F
distribution, whose noncentrality λ is n times the ratio of the true variances, along the line and around it; so the
ends of an interval for λ give those for the true R², λ / (λ + n). Source: Kelley, "Confidence intervals for
standardized effect sizes", 2007, for fixed predictors: the accuracies on the reference are taken as they are. Exact for
three points and more.
Cost: some hundred evaluations of the distribution, a millisecond.
"""

import numpy as np
from scipy.special import ncfdtr

from haptera.statistics.intervals import LEVEL

HALVINGS = 60


def explained_interval(r2: float, points: int, terms: int = 2, level: float = LEVEL) -> tuple[float, float]:
    """Both ends of the interval of R²; NaN where there are no more points than terms.

    Args:
        r2: that was found, on the scale on which the line was fitted by least squares.
        points: through which the line goes.
        terms: of the line, 2 for a straight one.
        level: the share of intervals that should hold the true R².

    >>> [round(end, 3) for end in explained_interval(0.95, 5)]
    [0.336, 0.974]
    """
    freedom = points - terms
    if freedom < 1 or not np.isfinite(r2):
        return float("nan"), float("nan")
    r2 = min(max(r2, 0.0), 1 - 1e-9)
    ratio = r2 / (1 - r2) * freedom / (terms - 1)

    def solve(share: float) -> float:
        low, high = 0.0, 1.0
        if ncfdtr(terms - 1, freedom, 0.0, ratio) <= share:
            return 0.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = ncfdtr(terms - 1, freedom, points * middle / (1 - middle), ratio) > share
            low, high = (middle, high) if above else (low, middle)
        return low

    return solve((1 + level) / 2), solve((1 - level) / 2)
