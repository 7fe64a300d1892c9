"""Shift line: what a shift of some size will cost, by a straight line per family of corruptions.

Source: thesis chapter 2 and table A.6: within a family of corruptions the error grows linearly with the normalised
distance of statistics; the line is fitted on the hold-out corruption of the family and predicts the others.
A line through one corruption says nothing about how far another one may be off it; `error_prediction` does.
"""

from dataclasses import dataclass

import numpy as np

from haptera.errors import HapteraError


@dataclass(frozen=True)
class ShiftLine:
    """error = intercept + slope · size.

    Attributes:
        slope: error per unit of size.
        intercept: error without a shift.
        sizes: that it was fitted on.
        r2: share of variance explained.
    """

    slope: float
    intercept: float
    sizes: np.ndarray
    r2: float

    @classmethod
    def fit(cls, sizes: np.ndarray, errors: np.ndarray) -> "ShiftLine":
        """Least squares; at least three points of different sizes."""
        sizes, errors = np.asarray(sizes, float), np.asarray(errors, float)
        if len(sizes) < 3 or np.ptp(sizes) == 0:
            raise HapteraError(f"a line needs at least three shifts of different sizes, found {len(np.unique(sizes))}")
        slope, intercept = np.polyfit(sizes, errors, 1)
        rest = errors - intercept - slope * sizes
        total = ((errors - errors.mean()) ** 2).sum()
        r2 = 1 - (rest**2).sum() / total if total > 1e-12 else 0.0
        return cls(float(slope), float(intercept), sizes, float(r2))

    def predict(self, size: float) -> float:
        """The error at a size, within 0 and 1."""
        return float(np.clip(self.intercept + self.slope * size, 0, 1))

    def inside(self, size: float) -> bool:
        """Return whether a size lies within those that the line was fitted on."""
        return bool(self.sizes.min() <= size <= self.sizes.max())
