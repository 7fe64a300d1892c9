"""Scales on which accuracies are compared: as they are, through the normal quantile (probit), or as log odds (logit).

Probit and logit are not defined at 0 and 1. An accuracy of 0 or 1 among n examples is moved inside by 1 / (2 n), half
of what one example counts; all other accuracies stay as they are.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from haptera.errors import HapteraError

Map = Callable[[np.ndarray], np.ndarray]
SCALES: dict[str, tuple[Map, Map]] = {
    "linear": (np.asarray, np.asarray),
    "probit": (ndtri, ndtr),
    "logit": (logit, expit),
}
"""Name -> from accuracy to the scale, and back."""


def inside(accuracies: np.ndarray, n: np.ndarray | float | None) -> np.ndarray:
    """Accuracies with 0 and 1 moved inside by 1 / (2 n); an error where n is not known.

    >>> inside(np.array([0.0, 0.5, 1.0]), 50).tolist()
    [0.01, 0.5, 0.99]
    """
    accuracies = np.asarray(accuracies, float)
    at_the_ends = (accuracies <= 0) | (accuracies >= 1)
    if not at_the_ends.any():
        return accuracies
    margin = np.broadcast_to(np.asarray(np.nan if n is None else n, float), accuracies.shape)
    if np.isnan(margin[at_the_ends]).any():
        raise HapteraError(
            "an accuracy is 0 or 1, where probit and logit are not defined; with n it could be moved inside"
        )
    margin = 1 / (2 * np.where(at_the_ends, margin, 1.0))
    return np.where(at_the_ends, np.clip(accuracies, margin, 1 - margin), accuracies)
