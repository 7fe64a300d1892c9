"""Live channels: which channels of a layer vary, and the variance that distances are divided by.

A dead ReLU, or a filter that weight decay has emptied, leaves a channel whose variance is zero or rounding: divided by
it, any distance is infinite or noise. A channel is dead where its variance is below `DEAD` of what is typical of its
layer on every side that is compared; it is left out. Where one side varies and the other hardly does, as in a channel
that fires on one image of a thousand, the variance to divide by is at least `FLOOR` of the typical one.
"""

import numpy as np

DEAD, FLOOR = 1e-4, 1e-2
"""Shares of the typical variance of a layer; 1e-4 is above what float32 leaves of a constant channel."""


def typical_variance(var: np.ndarray) -> float:
    """The median variance of a layer's channels, `(channels,)`, without dead ones; 0 if none varies.

    >>> typical_variance(np.array([0.0, 0.0, 0.0, 2.0, 4.0]))
    3.0
    """
    largest = float(var.max(initial=0.0))
    return float(np.median(var[var > DEAD * largest])) if largest > 0 else 0.0


def live(*sides: np.ndarray) -> np.ndarray:
    """`(channels,)`, whether a channel of one layer varies on any side; the first one says what is typical."""
    typical = next((found for var in sides if (found := typical_variance(var)) > 0), 0.0)
    return np.maximum.reduce(sides) > DEAD * typical


def variance_floor(var: np.ndarray) -> float:
    """The least variance to divide by in a layer with these; 1 where none varies."""
    return FLOOR * typical_variance(var) or 1.0


def scale(var: np.ndarray) -> np.ndarray:
    """What to divide squared distances of one layer by: its variances with a floor, infinity for dead channels.

    >>> scale(np.array([0.0, 0.001, 1.0, 4.0, 1.0]))
    array([ inf, 0.01, 1.  , 4.  , 1.  ])
    """
    return np.where(live(var), np.maximum(var, variance_floor(var)), np.inf)
