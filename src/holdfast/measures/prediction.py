"""Prediction: what a line says at any accuracy, how sure it is, and where a new model would be found.

Source: the bootstrap, see `resample`. The interval of the line is where the line could have been; that of a new model
adds how far models are from a line which has not seen them, drawn from those that are known.
Cost: that of one fit for each draw.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from holdfast.measures.line import SCALE, fit
from holdfast.measures.resample import Draws, interval
from holdfast.measures.scale import SCALES


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
