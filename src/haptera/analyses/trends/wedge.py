"""Wedge: between which bounds the probability Q(A) of an event may lie, given P(A).

Source: "Why do classifier accuracies show linear trends under distribution shift?", equation (1): -ν1 + (1 - δ1) P(A)
≤ Q(A) ≤ ν2 + (1 + δ2) P(A); and, in section 4, the general form -g1(P(A)) ≤ Q(A) - P(A) ≤ g2(P(A)). Probabilities are
counts here, and the four numbers are taken as the decimals they are written as, so that whether an event lies inside
is decided in whole numbers. With functions of the user's it is decided to nine decimals of a count.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from haptera.errors import HapteraError

ROUNDING = 1e-9
Curve = Callable[[np.ndarray], np.ndarray]


class Wedge(NamedTuple):
    """The four numbers of definition 1."""

    delta1: float
    delta2: float
    nu1: float
    nu2: float

    def lower(self, p: np.ndarray) -> np.ndarray:
        """The least Q(A)."""
        return (1 - self.delta1) * p - self.nu1

    def upper(self, p: np.ndarray) -> np.ndarray:
        """The largest Q(A)."""
        return (1 + self.delta2) * p + self.nu2

    def limits(self, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return for each count under P, 0 to n, the least and the largest count under Q, of m, that is inside."""
        delta1, delta2, nu1, nu2 = (Fraction(str(number)) for number in self)
        least, most = -_floor(m * nu1, m * (delta1 - 1) / n, n), _floor(m * nu2, m * (1 + delta2) / n, n)
        return np.clip(least, 0, m).astype(np.int64), np.clip(most, 0, m).astype(np.int64)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{number:g}" for number in self) + ")"


class Curves(NamedTuple):
    """Two functions of P(A), from arrays to arrays: by how much Q(A) may be smaller, and by how much larger."""

    g1: Curve
    g2: Curve

    def lower(self, p: np.ndarray) -> np.ndarray:
        """The least Q(A)."""
        return p - self.g1(p)

    def upper(self, p: np.ndarray) -> np.ndarray:
        """The largest Q(A)."""
        return p + self.g2(p)

    def limits(self, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return for each count under P, 0 to n, the least and the largest count under Q, of m, that is inside."""
        p = np.arange(n + 1) / n
        least, most = np.ceil(m * self.lower(p) - ROUNDING), np.floor(m * self.upper(p) + ROUNDING)
        return np.clip(least, 0, m).astype(np.int64), np.clip(most, 0, m).astype(np.int64)


def as_wedge(numbers: Sequence[float]) -> Wedge:
    """Four numbers as a wedge, or an error that says what is wrong with them.

    >>> print(as_wedge([0.31, 0.38, 0.005, 0.008]))
    (0.31, 0.38, 0.005, 0.008)
    """
    if len(numbers) != 4 or not all(0 <= number < float("inf") for number in numbers):
        raise HapteraError(f"the wedge is {tuple(numbers)}; four numbers δ1 δ2 ν1 ν2, none below 0, were expected")
    return Wedge(*map(float, numbers))


def _floor(start: Fraction, slope: Fraction, n: int) -> np.ndarray:
    """⌊start + slope x a⌋ for a from 0 to n, exactly, in Python's whole numbers."""
    common = start.denominator * slope.denominator
    first, step = int(start * common), int(slope * common)
    return (first + step * np.arange(n + 1, dtype=object)) // common
