"""Robustness: how much more a model keeps on shifted data than the line of the others, or than another model.

Source: Taori et al., "Measuring robustness to natural distribution shifts in image classification", 2020, from which
"Why do classifier accuracies show linear trends under distribution shift?", section 6, takes both words. Effective
robustness is the accuracy on shifted data above the line of the other models; relative robustness is that above the
accuracy of what one had before: a named model, or else the best of the others on the reference. Intervals are those of
the bootstrap (`resample`): the interval of the line is where the line could have been; that of a new model adds how far
models are from a line which has not seen them, drawn from those that are known.
Differs: the line never has seen the model that is compared with it.
Cost: that of one fit for each draw.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.statistics.line import SCALE, fit
from haptera.statistics.resample import Draws, interval
from haptera.statistics.scale import SCALES

LINES = ("linear", "probit", "logit", "two_piece", "robust", "robust_probit")
"""Fits that are fit to compare with; Chebyshev's follows the models furthest from it."""


def robustness(
    reference: np.ndarray,
    shifted: np.ndarray,
    models: Sequence[str] | None = None,
    *,
    kind: str = "probit",
    n: tuple[Any, Any] | None = None,
    switch: int | float | None = None,
    joined: bool = True,
    draws: Draws | None = None,
    baseline: str | None = None,
) -> pd.DataFrame:
    """One row for each model, the most robust first.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        models: their names; by default their places.
        kind: of the line, one of `LINES`.
        n: examples on the reference and on shifted data, by which accuracies of 0 and 1 are moved inside.
        switch: of a line in two pieces, as in `fit`.
        joined: whether its pieces meet.
        draws: for the intervals, which are NaN without.
        baseline: what relative robustness compares with; by default the best of the other models on the reference.

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
    found = fit(x, y, kind, n=n, switch=switch, joined=joined)
    before = _before(x) if baseline is None else np.full(len(x), names.index(baseline))
    frame = pd.DataFrame({"model": names, "reference": x, "shifted": y, "predicted": y - found.left_out})
    values = {"effective": found.left_out, "relative": y - y[before]}
    others = {"effective": np.full((1, len(x)), np.nan), "relative": np.full((1, len(x)), np.nan)}
    if draws is not None:
        at = found.line.switch  # stays where it was
        again = fit(draws.reference, draws.shifted, kind, weights=draws.weights, n=n, switch=at, joined=joined)
        others["effective"] = again.left_out
        if draws.shifted.ndim > 1:
            others["relative"] = draws.shifted - draws.shifted[:, before]
    for name, value in values.items():
        low, high = interval(value, others[name], draws.units if draws else float("inf"))
        frame = frame.assign(**{name: value, f"{name}_low": low, f"{name}_high": high})
    return frame.sort_values("effective", ascending=False, kind="stable", ignore_index=True)


def _before(reference: np.ndarray) -> np.ndarray:
    """Return for each model the place of the best of the others."""
    best, second = np.argsort(-reference, kind="stable")[:2]
    return np.where(np.arange(len(reference)) == best, second, best)


def prediction(
    reference: np.ndarray,
    shifted: np.ndarray,
    at: Sequence[float] | np.ndarray,
    draws: Draws,
    kind: str = "probit",
    *,
    n: tuple[Any, Any] | None = None,
    switch: int | float | None = None,
    joined: bool = True,
) -> pd.DataFrame:
    """The line at some accuracies on the reference.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        at: accuracies on the reference.
        draws: over examples or over models.
        kind: one of `FITS`.
        n: examples on the reference and on shifted data.
        switch: of a line in two pieces, as in `fit`.
        joined: whether its pieces meet.

    Returns:
        `accuracy`, `line` with `low` and `high`, and `new_low` to `new_high`, which a new model should be in.
    """
    at = np.asarray(at, float)
    found = fit(reference, shifted, kind, n=n, switch=switch, joined=joined)
    at_switch = found.line.switch  # stays where it was
    again = fit(draws.reference, draws.shifted, kind, weights=draws.weights, n=n, switch=at_switch, joined=joined)
    line = found.line(at)
    low, high = interval(line, again.line(at), draws.units)
    back = SCALES[SCALE[kind]][1]
    drawn = again.line.scaled(at)
    noise = np.random.default_rng(0).choice(found.away[np.isfinite(found.away)], (len(drawn), 1))
    new_low, new_high = interval(line, back(drawn + noise), draws.units)
    return pd.DataFrame(
        {"accuracy": at, "line": line, "low": low, "high": high, "new_low": new_low, "new_high": new_high}
    )
