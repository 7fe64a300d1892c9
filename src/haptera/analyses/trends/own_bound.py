"""The guarantee at the data's own ζ: the exact bound for the models at hand, between the accuracies that they have.

Source: "Why do classifier accuracies show linear trends under distribution shift?", sections 4 and 5.2. Models are
never quite ordered, so proposition 1 and corollary 1, which need ζ = 0, promise too much about them (.0545 where the
exact maximum of (6) is .123 at ζ = .0909). Section 4: a line through the worst and the best model needs only the
triplets of these two with each of the others, h - 2 of them; events of all other triplets may be outside any wedge. So
the wedge here holds the events of those triplets, of all that do the one with the least bound; ζ is the largest
dominance in them, and the bound on each model is the exact one (`residual_bound`). A line of two pieces needs the
triplets of each piece, between its own ends.
Cost: one linear programme of 26 variables for each model and line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.frontier import frontier
from haptera.analyses.trends.guarantee import proposition
from haptera.analyses.trends.residual_bound import maximise, residual_bounds
from haptera.analyses.trends.triplets import Counts
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError

WHOLE, FIRST, SECOND = "all models", "first piece", "second piece"


@dataclass(frozen=True, eq=False)
class OwnBound:
    """What must hold for the models between two others.

    Attributes:
        piece: which models: all, or those of a piece of the line.
        ends: the worst and the best of them.
        accuracies: of these two on the reference.
        zeta: the largest dominance in the triplets that are needed.
        wedge: that holds the events of these triplets, with the least bound.
        models: one row for each model between: `model`, `accuracy`, the `residual` from the line of the two ends, the
            exact `bound` on it, and `ordered`, what proposition 1 would say if the models were ordered.
    """

    piece: str
    ends: tuple[str, str]
    accuracies: tuple[float, float]
    zeta: float
    wedge: Wedge
    models: pd.DataFrame

    @property
    def value(self) -> float:
        """The largest of the bounds: no model can be further from the line of the two ends."""
        return float(self.models["bound"].max())

    @property
    def numbers(self) -> dict[str, Any]:
        """Return what a sentence says about it."""
        largest = self.models.nlargest(1, "residual").iloc[0]
        return {
            "piece": self.piece,
            "models": len(self.models) + 2,
            "ends": self.ends,
            "end_accuracies": self.accuracies,
            "zeta": self.zeta,
            "wedge": self.wedge,
            "bound": self.value,
            "ordered_bound": float(self.models["ordered"].max()),
            "largest_residual": float(largest["residual"]),
            "of": largest["model"],
        }


def own_bound(
    sides: tuple[np.ndarray, np.ndarray],
    counts: tuple[Counts, Counts],
    models: Sequence[str],
    members: np.ndarray | None = None,
    *,
    wedge: Wedge | None = None,
    piece: str = WHOLE,
) -> OwnBound | None:
    """Bound the residuals of models from the line of the worst and the best of them.

    Args:
        sides: accuracies `(models,)` on the reference and on shifted data.
        counts: of all models on both.
        models: their names.
        members: places of the models to look at; by default all.
        wedge: to promise with; by default that of the least bound which holds the events of the needed triplets.
        piece: what to call them.

    Returns:
        None for fewer than three models, or where all are equally accurate.
    """
    x, y = sides
    order = np.argsort(x, kind="stable") if members is None else np.asarray(members)[np.argsort(x[members])]
    if len(order) < 3 or x[order[0]] == x[order[-1]]:
        return None
    low, middle, high = int(order[0]), order[1:-1], int(order[-1])
    own, at = zeta_of_ends(counts[0], low, middle, high), x[middle]
    if wedge is None:
        reference, shifted = (side.with_ends(low, middle, high) for side in counts)
        wedge = _tightest(frontier(reference, shifted), (x[low], x[high]), own)
    line = y[low] + (y[high] - y[low]) * (at - x[low]) / (x[high] - x[low])
    levels, back = np.unique(at, return_inverse=True)
    bounds = residual_bounds(x[low], x[high], levels, wedge, [own])["bound"].to_numpy()
    rows = pd.DataFrame(
        {
            "model": [models[place] for place in middle],
            "accuracy": at,
            "residual": np.abs(y[middle] - line),
            "bound": bounds[back],
            "ordered": proposition(x[low], at, x[high], wedge),
        }
    )
    ends = (models[low], models[high]), (float(x[low]), float(x[high]))
    return OwnBound(piece, ends[0], ends[1], own, wedge, rows)


def own_bounds(
    sides: tuple[np.ndarray, np.ndarray], counts: tuple[Counts, Counts], models: Sequence[str], switch: float | None
) -> list[OwnBound]:
    """The bound for all models, and for those of each piece of a line whose first piece goes up to an accuracy."""
    x = sides[0]
    members: dict[str, np.ndarray | None] = {WHOLE: None}
    if switch is not None:
        first = x <= switch
        hinge = x == x[first].max()  # the pieces meet at these models, which are in both
        members |= {FIRST: np.flatnonzero(first), SECOND: np.flatnonzero(~first | hinge)}
    bounds = (own_bound(sides, counts, models, own, piece=piece) for piece, own in members.items())
    return [bound for bound in bounds if bound is not None]


def _tightest(wedges: pd.DataFrame, ends: tuple[float, float], zeta: float) -> Wedge:
    """The wedge of a frontier with the least bound for a model in the middle of two, at this ζ."""
    if wedges.empty:
        raise HapteraError("no wedge holds these events with these ν")
    every = [Wedge(*map(float, row)) for row in wedges[["delta1", "delta2", "nu", "nu"]].to_numpy()]
    middle = (ends[0], sum(ends) / 2, ends[1])
    bounds = maximise([(middle, wedge, zeta) for wedge in every])
    return every[int(np.argmin([bound.value for bound in bounds]))]


def zeta_of_ends(reference: Counts, low: int, middle: np.ndarray, high: int) -> float:
    """The largest dominance in the triplets of two models with each of some others."""
    single, pair = reference.pair.diagonal(), reference.pair
    below = single[low] - pair[low, np.append(middle, high)]
    above = single[middle] - pair[middle, high]
    return float(max(below.max(), above.max())) / reference.examples


def tolerated(
    accuracies: np.ndarray, counts: tuple[Counts, Counts], models: Sequence[str], wedge: Wedge
) -> dict[str, Any]:
    """Count the events outside a wedge that a line through the worst and the best model can tolerate (section 4).

    Returns:
        `outside`; how many of them are `needed`, because their triplet has both ends; how many are `tolerated`; the
        models `between` the ends, and `unbound`, those whose own triplet with both ends has an event outside.
    """
    order = np.argsort(accuracies, kind="stable")
    low, middle, high = int(order[0]), order[1:-1], int(order[-1])
    every = closeness(*counts, wedge).outside
    reference, shifted = (side.with_ends(low, middle, high) for side in counts)
    own = closeness(reference, shifted, wedge)
    places = np.concatenate([places for places, _ in reference.blocks()], axis=1)
    between = np.where((places == low) | (places == high), -1, places).max(0)
    unbound = sorted(between[own.by_triplet > 0].tolist())
    return {
        "wedge": wedge,
        "outside": every,
        "needed": own.outside,
        "tolerated": every - own.outside,
        "between": len(middle),
        "unbound": [models[place] for place in unbound],
    }
