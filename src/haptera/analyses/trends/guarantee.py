"""Guarantees: how far from a line the accuracies of similar models can lie when two distributions are close.

Source: "Why do classifier accuracies show linear trends under distribution shift?", proposition 1 (2), corollary 1
(3) and figure 2, for ordered models; `residual_bound` has the exact bound for approximately ordered ones. Residuals
are vertical.
Differs: in appendix B the residual of D is taken to the line AB, not BC, and a sign in (7) is turned; the results
stand.
Cost: some ten operations for each triplet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.triplets import places_of_triplets
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError

POINTS = 41
"""Accuracies of the new model at which its region is drawn."""


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What a wedge promises, and what was found.

    Attributes:
        wedge: the wedge.
        bound: corollary 1: some line is this near to all models, if they are ordered.
        best: how near the best line, Chebyshev's, is.
        triplets: residual and bound (2), as `triplet_residuals` returns them.
    """

    wedge: Wedge
    bound: float
    best: float
    triplets: pd.DataFrame

    def count(self) -> dict[str, Any]:
        """Return the bound, the best line, and how many of the triplets break theirs."""
        broken, largest = int(self.triplets["broken"].sum()), self.triplets["residual"].max()
        numbers = {"wedge": self.wedge, "corollary": self.bound, "best_line": self.best}
        return numbers | {"triplets": len(self.triplets), "broken": broken, "largest_residual": largest}


def proposition(low: np.ndarray, middle: np.ndarray, high: np.ndarray, wedge: Wedge) -> np.ndarray:
    """Bound (2) on the residual of the middle model from the line of the two others.

    Args:
        low: accuracies under P of the worst of three models.
        middle: of the middle one.
        high: of the best, above `low`.
        wedge: in which the events of the triplet lie.

    >>> round(float(proposition(0.6, 0.7, 0.8, Wedge(0.31, 0.38, 0.005, 0.008))), 4)
    0.0545
    """
    left, right, whole = np.subtract(middle, low), np.subtract(high, middle), np.subtract(high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        harmonic, larger = 2 * left * right / whole, np.maximum(left, right) / whole
    return (wedge.delta1 + wedge.delta2) / 2 * harmonic + max(wedge.nu1, wedge.nu2) + (1 + larger) * wedge.nu2


def corollary(span: float, wedge: Wedge) -> float:
    """Bound (3): some line is this near to all models, whose accuracies under P span that much."""
    return 25 / 64 * float(span) * (wedge.delta1 + wedge.delta2) / 2 + 3 * max(wedge.nu1, wedge.nu2)


def triplet_residuals(
    reference: np.ndarray, shifted: np.ndarray, wedge: Wedge, models: Sequence[str] | None = None, *, ends: bool = False
) -> pd.DataFrame:
    """Residual and bound (2) of every triplet of models.

    Args:
        reference: `(models,)`, accuracies under P.
        shifted: `(models,)`, accuracies under Q.
        wedge: in which the events lie.
        models: their names; by default their places.
        ends: only the triplets with the worst and the best model, which are all that a line through both needs.

    Returns:
        `low`, `middle`, `high` (the models, by accuracy under P), `residual`, `bound` and whether it is `broken`. A
        triplet whose ends are equally accurate has no line and is left out.
    """
    x, y = _accuracies(reference, shifted)
    names = np.array(models if models is not None else [str(i) for i in range(len(x))], dtype=object)
    order = np.argsort(x, kind="stable")
    last = len(x) - 1
    if ends:
        j = np.arange(1, last)
        i, k = np.zeros_like(j), np.full_like(j, last)
    else:
        i, j, k = np.concatenate(list(places_of_triplets(len(x))), axis=1)
    i, j, k = order[i], order[j], order[k]
    lined = x[i] < x[k]
    i, j, k = i[lined], j[lined], k[lined]
    line = y[i] + (y[k] - y[i]) * (x[j] - x[i]) / (x[k] - x[i])
    residual, bound = np.abs(line - y[j]), proposition(x[i], x[j], x[k], wedge)
    return pd.DataFrame(
        {"low": names[i], "middle": names[j], "high": names[k], "residual": residual, "bound": bound}
        | {"broken": residual > bound}
    )


def region(reference: np.ndarray, shifted: np.ndarray, wedge: Wedge, at: np.ndarray) -> pd.DataFrame:
    """Where one more model must lie, if it is ordered with the known ones (figure 2).

    With two known models bound (2) is applied once, with three thrice: wherever the new one stands in a triplet, at an
    end or in the middle, the residual of the middle model bounds its accuracy under Q.

    Args:
        reference: `(models,)`, accuracies of the known models under P, two at least.
        shifted: `(models,)`, under Q.
        wedge: in which the events lie.
        at: accuracies of the new model under P.

    Returns:
        `accuracy`, `low` and `high`; an empty interval (low above high) says that the known models and the wedge
        contradict each other there.
    """
    x, y = _accuracies(reference, shifted)
    if len(x) < 2:
        raise HapteraError(f"{len(x)} model was given; two at least span a region")
    at = np.asarray(at, float)
    low, high = np.zeros_like(at), np.ones_like(at)
    order = np.argsort(x, kind="stable")
    i, j = np.triu_indices(len(x), 1)
    a, b = order[i], order[j]
    a, b = a[x[a] < x[b]], b[x[a] < x[b]]
    for place, accuracy in enumerate(at):
        least, middle, most = np.sort(np.stack([x[a], x[b], np.full(len(a), accuracy)]), axis=0)
        bound = proposition(least, middle, most, wedge)
        with np.errstate(divide="ignore", invalid="ignore"):
            line = y[a] + (y[b] - y[a]) * (accuracy - x[a]) / (x[b] - x[a])
            # At an end, the new model moves the line at the middle one by only a part of its own distance.
            lever = np.where(accuracy > x[b], (accuracy - x[a]) / (x[b] - x[a]), (x[b] - accuracy) / (x[b] - x[a]))
        inside = (accuracy >= x[a]) & (accuracy <= x[b])
        width = bound * np.where(inside, 1.0, lever)
        low[place] = max(0.0, float(np.max(line - width)))
        high[place] = min(1.0, float(np.min(line + width)))
    return pd.DataFrame({"accuracy": at, "low": low, "high": high})


def regions(reference: np.ndarray, shifted: np.ndarray, wedge: Wedge, models: Sequence[str]) -> pd.DataFrame:
    """Where one more model must lie, given the worst and the best, and given the one in the middle too: figure 2.

    Returns:
        `known`, which of the two; `accuracy`, `low` and `high`, without empty intervals.
    """
    x, y = _accuracies(reference, shifted)
    low, high = x.argmin(), x.argmax()
    middle = np.abs(x - (x[low] + x[high]) / 2).argmin()
    known = {"bound (2) once": [low, high], f"thrice, with {models[middle]}": [low, middle, high]}
    at = np.linspace(x[low], x[high], POINTS)
    parts = {name: region(x[places], y[places], wedge, at) for name, places in known.items()}
    return pd.concat(parts, names=["known"]).reset_index("known").query("low <= high")


def _accuracies(reference: np.ndarray, shifted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(reference, float), np.asarray(shifted, float)
    if x.ndim != 1 or x.shape != y.shape:
        raise HapteraError(f"accuracies have the shapes {x.shape} and {y.shape}; twice (models,) was expected")
    return x, y
