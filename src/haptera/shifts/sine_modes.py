"""Modes of a smooth field that is zero on the frame: which there are, and the exact sums over them.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", equation (2):
τ_u = Σ C_ij sin(iπu) sin(jπv) with Var C_ij = T / (i² + j²), over i² + j² ≤ c².
Differs: the published code keeps √(i² + j²) < c + ½ (rule `reference`), the text the modes above (rule `printed`). The
norm and displacement that are printed, (π³/8)c²T and (π/4)n²T ln c, are limits for large c; here the sums are finite.
"""

from functools import lru_cache
from math import inf, pi

import numpy as np

from haptera.checks import is_number
from haptera.errors import HapteraError, unknown

RULES = ("printed", "reference")


@lru_cache(maxsize=64)
def modes(cutoff: float, rule: str = "printed") -> np.ndarray:
    """Return `(modes, 2)`, the pairs (i, j) that a cutoff keeps: i counts half waves across, j down.

    >>> modes(3).tolist()
    [[1, 1], [1, 2], [2, 1], [2, 2]]
    >>> [len(modes(c, "reference")) for c in (3, 5, 15, 30)]
    [6, 19, 172, 703]
    """
    if rule not in RULES:
        raise unknown("rule of the cutoff", rule, RULES)
    if not is_number(cutoff) or not 0 < cutoff < inf:
        raise HapteraError(f"cutoff is {cutoff!r}; a positive number, such as 3, was expected")
    number = np.arange(1, int(cutoff) + 2)
    i, j = (grid.ravel() for grid in np.meshgrid(number, number, indexing="ij"))
    kept = i**2 + j**2 <= cutoff**2 if rule == "printed" else i**2 + j**2 < (cutoff + 0.5) ** 2
    if not kept.any():
        least = 2**0.5 if rule == "printed" else 2**0.5 - 0.5
        raise HapteraError(f"cutoff {cutoff:g} keeps no mode; it must be above {least:.4g} (the mode i = j = 1)")
    return np.stack([i[kept], j[kept]], axis=1)


@lru_cache(maxsize=64)
def centre_sum(cutoff: float, rule: str = "printed") -> float:
    """Σ 1 / (i² + j²) over odd i and j: the variance of τ_u, and of τ_v, at the centre is T times this.

    >>> round(2 * centre_sum(5), 4)
    1.5111
    """
    odd = modes(cutoff, rule)
    odd = odd[(odd % 2 == 1).all(1)]
    return float((1 / (odd**2).sum(1)).sum())


def displacement(temperature: float, height: int, width: int, cutoff: float, rule: str = "printed") -> float:
    """δ: the root mean square displacement of the centre of a picture, in pixels; (3) without its limit."""
    return float((temperature * centre_sum(cutoff, rule) * ((height - 1) ** 2 + (width - 1) ** 2)) ** 0.5)


def temperature(delta: float, height: int, width: int, cutoff: float, rule: str = "printed") -> float:
    """T for a displacement of `delta` pixels; the inverse of `displacement`."""
    return delta**2 / (centre_sum(cutoff, rule) * ((height - 1) ** 2 + (width - 1) ** 2))


def gradient_norm(temperature: float, cutoff: float, rule: str = "printed") -> float:
    """The mean of ‖∇τ‖², equation (1): (π²/2) T for each mode."""
    return pi**2 / 2 * temperature * len(modes(cutoff, rule))
