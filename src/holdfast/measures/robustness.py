"""Robustness: how much more a model keeps on shifted data than the line of the others, or than another model.

Source: Taori et al., "Measuring robustness to natural distribution shifts in image classification", 2020, from which
"Why do classifier accuracies show linear trends under distribution shift?", section 6, takes both words. Effective
robustness is the accuracy on shifted data above the line of the other models; relative robustness is that above the
accuracy of what one had before: a named model, or else the best of the others on the reference.
Differs: the line never has seen the model that is compared with it.
Cost: that of one fit for each draw.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from holdfast.errors import HoldfastError, unknown
from holdfast.measures.line import fit
from holdfast.measures.resample import Draws, interval

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
        raise HoldfastError(f"there are {len(names)} models with {len(x)} and {len(y)} accuracies")
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
    """For each model the place of the best of the others."""
    best, second = np.argsort(-reference, kind="stable")[:2]
    return np.where(np.arange(len(reference)) == best, second, best)
