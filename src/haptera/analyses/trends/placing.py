"""Placing: one model against the line, the wedge and the similarity of all others, and which case it is.

Source: "Why do classifier accuracies show linear trends under distribution shift?", section 6. A new model can keep
more on shifted data in three ways: it lies on the line, which is steeper than one, and is more accurate than all
others; it breaks closeness, its events being where the wedge of the others does not reach; or it is not similar to
the others, so that the line does not bind it. The source gives no thresholds. Here: on the line, if the interval of
its effective robustness holds 0; closeness broken, if more than 1 % of its events are outside the narrowest wedge of
the others by more than their sampling error; dissimilar, if a dominance probability of its own is above all of the
others', interval included.
Cost: that of a frontier and of closeness.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.dominance import zeta
from haptera.analyses.trends.frontier import frontier, narrowest
from haptera.analyses.trends.triplets import Counts
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError, unknown
from haptera.statistics.line import fit

BROKEN = 0.01
STEEP, CLOSE, SIMILAR = "on the line, which is steeper than one", "closeness broken", "dissimilar"
ALLOWED, UNKNOWN = "within bounds", "accuracies alone do not tell why"


def place(
    names: Sequence[str],
    robustness: pd.DataFrame,
    *,
    pairs: pd.DataFrame | None = None,
    counts: tuple[Counts, Counts] | None = None,
    models: Sequence[str] = (),
    wedge: Wedge | None = None,
) -> pd.DataFrame:
    """One row for each model that is placed among all others.

    Args:
        names: of the models to place.
        robustness: of all models, as `robustness` returns it.
        pairs: of all models, as `dominance` returns them; without, similarity is not tested.
        counts: of all models under P and Q; without, closeness is not tested.
        models: names of all models in the order of `counts`.
        wedge: of the others; by default the narrowest one.

    Returns:
        `model` and its `case`; `slope` of the straight line of the others and whether the model is `most_accurate`;
        `effective` robustness with its interval `low` to `high`, and `relative` robustness; its largest `dominance`,
        `with_model` whom, the lower end `dominance_low` of its interval, and the `zeta` of the others; of its `events`
        how many are `outside` the `wedge` of the others, and `clear` how many by more than chance.
    """
    known = robustness["model"].tolist()
    for name in names:
        if name not in known:
            raise unknown("model", name, known)
    rows = []
    for name in names:
        row = _on_the_line(name, robustness)
        row |= _similarity(name, pairs) if pairs is not None else {}
        row |= _events(list(models).index(name), counts, wedge) if counts is not None else {}
        rows.append({"model": name, "case": _case(row)} | row)
    return pd.DataFrame(rows)


def _case(row: dict[str, Any]) -> str:
    if np.isnan(row["low"]):
        return "no interval, so no case"
    if row["low"] <= 0 <= row["high"]:
        return STEEP if row["slope"] > 1 and row["most_accurate"] else "on the line"
    side = "above the line" if row["effective"] > 0 else "below the line"
    tested = {CLOSE: row.get("clear", np.nan) > BROKEN * row.get("events", 1)}
    tested |= {SIMILAR: row.get("dominance_low", np.nan) > row.get("zeta", 1)}
    found = [case for case, holds in tested.items() if holds]
    if not found:
        found = [ALLOWED if "zeta" in row and "clear" in row else UNKNOWN]
    return f"{side}: {' and '.join(found)}"


def _on_the_line(name: str, robustness: pd.DataFrame) -> dict[str, Any]:
    own = robustness[robustness["model"] == name].iloc[0]
    others = robustness[robustness["model"] != name]
    if len(others) < 3:
        raise HapteraError(f"there are {len(others)} other models to place {name} among; three at least were expected")
    line = fit(others["reference"].to_numpy(), others["shifted"].to_numpy()).line
    return {
        "slope": float(line.slope),
        "most_accurate": bool(own["reference"] > others["reference"].max()),
        "effective": float(own["effective"]),
        "low": float(own["effective_low"]),
        "high": float(own["effective_high"]),
        "relative": float(own["relative"]),
    }


def _similarity(name: str, pairs: pd.DataFrame) -> dict[str, Any]:
    own = (pairs["worse"] == name) | (pairs["better"] == name)
    largest = pairs[own].nlargest(1, "dominance").iloc[0]
    return {
        "dominance": float(largest["dominance"]),
        "dominance_low": float(largest["low"]),
        "with_model": largest["better"] if largest["worse"] == name else largest["worse"],
        "zeta": zeta(pairs[~own]),
    }


def _events(place: int, counts: tuple[Counts, Counts], wedge: Wedge | None) -> dict[str, Any]:
    reference, shifted = (side.without(place) for side in counts)
    wedge = wedge or narrowest(frontier(reference, shifted))
    others, everyone = closeness(reference, shifted, wedge), closeness(*counts, wedge)
    return {
        "events": everyone.events - others.events,
        "outside": everyone.outside - others.outside,
        "clear": everyone.clear - others.clear,
        "wedge": str(wedge),
    }
