"""Robustness: how much more a model keeps on shifted data than the line of the others, or than another model, and why.

Source: Taori et al., "Measuring robustness to natural distribution shifts in image classification", 2020, from which
"Why do classifier accuracies show linear trends under distribution shift?", section 6, takes both words. Effective
robustness is the accuracy on shifted data above the line of the other models, or of the standard models, if somebody
says which these are; relative robustness is that above what one had before: a named model, or else what the line says
of the best of the others on the reference, where a single model would bring its own luck along. Intervals are those of
the bootstrap (`resample`): the interval of the line is where the line could have been; that of a new model adds how far
models are from a line which has not seen them, drawn from those that are known.
A model can keep more in three ways: it lies on the line, which is steeper than one, and is more accurate than all
others; it breaks closeness, its events being where the wedge of the others does not reach; or it is not similar to
the others, so that the line does not bind it. The source gives no thresholds. Here: on the line, if the interval of
its effective robustness holds 0; closeness broken, if more than 1 % of its events are outside the narrowest wedge of
the others by more than their sampling error; dissimilar, if a dominance probability of its own is above all of the
others', interval included.
Differs: the line never has seen the model that is compared with it.
Cost: that of one fit for each draw; to place a model, that of a frontier and of closeness.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.dominance import zeta
from haptera.analyses.trends.frontier import frontier, narrowest
from haptera.analyses.trends.triplets import Counts
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError, unknown
from haptera.statistics.line import SCALE, SCALES, Line, LineFit, fit, move_inside
from haptera.statistics.resample import Draws, interval

LINES = ("linear", "probit", "logit", "two_piece", "robust", "robust_probit")
"""Fits that are fit to compare with; Chebyshev's follows the models furthest from it."""
BROKEN = 0.01
STEEP, CLOSE, SIMILAR = "on the line, which is steeper than one", "closeness broken", "dissimilar"
ALLOWED, UNKNOWN = "within bounds", "accuracies alone do not tell why"


def robustness(
    reference: np.ndarray,
    shifted: np.ndarray,
    models: Sequence[str] | None = None,
    *,
    kind: str = "probit",
    draws: Draws | None = None,
    baseline: str | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row for each model, the most robust first.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        models: their names; by default their places.
        kind: of the line, one of `LINES`.
        draws: for the intervals, which are NaN without.
        baseline: what relative robustness compares with; by default the line, at the accuracy of the best other model.
        settings: of the line, `n`, `switch`, `joined` and `weights` (0: the line does not see it), as `fit` takes them.

    Returns:
        `model`, `reference`, `shifted`, the accuracy `predicted` by the line of the others, `effective` and `relative`
        robustness with the ends of their intervals, `effective_low` and so on.
    """
    if kind not in LINES:
        raise unknown("line to compare with", kind, LINES)
    x, y = np.asarray(reference, float), np.asarray(shifted, float)
    names = [str(name) for name in (models if models is not None else range(len(x)))]
    if baseline is not None and baseline not in names:
        raise unknown("baseline", baseline, names)
    if len({len(x), len(y), len(names)}) > 1:
        raise HapteraError(f"there are {len(names)} models with {len(x)} and {len(y)} accuracies")
    found = fit(x, y, kind, **settings)
    weights = settings.get("weights")
    standard = np.flatnonzero(np.ones(len(x)) if weights is None else weights)
    best, second = standard[np.argsort(-x[standard], kind="stable")[:2]]
    before = np.where(np.arange(len(x)) == best, second, best)
    named = None if baseline is None else names.index(baseline)
    frame = pd.DataFrame({"model": names, "reference": x, "shifted": y, "predicted": y - found.left_out})

    def lined(line: Line, at: np.ndarray) -> np.ndarray:
        """What a line says of the best other model of each."""
        n = settings["n"][0] if settings.get("n") else None
        return line((at if SCALE[kind] == "linear" else move_inside(at, n))[..., before])

    values = {"effective": found.left_out, "relative": y - (lined(found.line, x) if named is None else y[named])}
    others = {"effective": np.full((1, len(x)), np.nan), "relative": np.full((1, len(x)), np.nan)}
    if draws is not None:
        again = fit_draws(found, draws, settings)
        others["effective"] = again.left_out
        if draws.shifted.ndim > 1:
            then = lined(again.line, draws.reference) if named is None else draws.shifted[:, [named]]
            others["relative"] = draws.shifted - then
    for name, value in values.items():
        low, high = interval(value, others[name], draws.units if draws else float("inf"))
        frame = frame.assign(**{name: value, f"{name}_low": low, f"{name}_high": high})
    return frame.sort_values("effective", ascending=False, kind="stable", ignore_index=True)


def prediction(
    reference: np.ndarray,
    shifted: np.ndarray,
    at: Sequence[float] | np.ndarray,
    draws: Draws,
    kind: str = "probit",
    **settings: Any,
) -> pd.DataFrame:
    """The line at some accuracies on the reference.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        at: accuracies on the reference.
        draws: over examples or over models.
        kind: one of `FITS`.
        settings: of the line, `n`, `switch` and `joined`, as `fit` takes them.

    Returns:
        `accuracy`, `line` with `low` and `high`, and `new_low` to `new_high`, which a new model should be in.
    """
    at = np.asarray(at, float)
    found = fit(reference, shifted, kind, **settings)
    again = fit_draws(found, draws, settings)
    line = found.line(at)
    low, high = interval(line, again.line(at), draws.units)
    back = SCALES[SCALE[kind]][1]
    drawn = again.line.scaled(at)
    noise = np.random.default_rng(0).choice(found.away[np.isfinite(found.away)], (len(drawn), 1))
    new_low, new_high = interval(line, back(drawn + noise), draws.units)
    return pd.DataFrame(
        {"accuracy": at, "line": line, "low": low, "high": high, "new_low": new_low, "new_high": new_high}
    )


def fit_draws(found: LineFit, draws: Draws, settings: Mapping[str, Any]) -> LineFit:
    """Fit the line again to every draw; the switch between two pieces stays where it was."""
    given = settings.get("weights")
    weights = draws.weights if given is None else draws.weights * given
    same = {**settings, "switch": found.line.switch, "weights": weights}
    return fit(draws.reference, draws.shifted, found.line.fit, **same)


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
    row = {"slope": float(line.slope), "most_accurate": bool(own["reference"] > others["reference"].max())}
    columns = {"effective": "effective", "low": "effective_low", "high": "effective_high", "relative": "relative"}
    return row | {key: float(own[column]) for key, column in columns.items()}


def _similarity(name: str, pairs: pd.DataFrame) -> dict[str, Any]:
    own = (pairs["worse"] == name) | (pairs["better"] == name)
    largest = pairs[own].nlargest(1, "dominance").iloc[0]
    return {
        "dominance": float(largest["dominance"]),
        "dominance_low": float(largest["low"]),
        "with_model": largest["better"] if largest["worse"] == name else largest["worse"],
        "zeta": zeta(pairs[~own]),
    }


def is_dissimilar(name: str, pairs: pd.DataFrame) -> bool:
    """Say whether a dominance probability of a model is above all of the others', interval included."""
    found = _similarity(name, pairs)
    return bool(found["dominance_low"] > found["zeta"])


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
