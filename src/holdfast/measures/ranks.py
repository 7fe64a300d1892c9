"""Whether the same models are good everywhere: the rank correlation of their errors between data sets.

Source: thesis appendix B, errors on ImageNet-D against those on ImageNet-C and ImageNet-R.
The coefficient is Spearman's; its interval is that of Bonett and Wright (2000), for six models or more.
"""

from math import atanh, sqrt, tanh

import numpy as np
import pandas as pd

from holdfast.errors import unknown
from holdfast.measures.averages import CLEAN
from holdfast.measures.facts import measure
from holdfast.measures.pairs import named_after, rows_of
from holdfast.measures.proportion import Z95
from holdfast.table import Rows

FEWEST = 3
"""Models; the order of two agrees or does not, and tells nothing."""
FEWEST_FOR_INTERVAL = 6
"""Models; the orders of fewer are so few that an interval holds nearly everything."""


@measure(bounds=(-1, 1), of="table")
def rank_correlation(table: pd.DataFrame, against: str = CLEAN) -> Rows:
    """Spearman's correlation, over models, of errors on each data set with those on one of them; `n` is models.

    A data set is a shift in a stream (the mean over severities) or a stream with several shifts (the mean over these);
    adapters and seeds are taken one at a time.

    Args:
        table: with errors.
        against: the stream or the shift to compare with; clean data by default.
    """
    rows = rows_of(table, "error")
    run = ["adapter", "seed", "model"]
    within = rows.groupby([*run, "stream", "shift"], as_index=False, dropna=False)["value"].mean()
    whole = within.groupby([*run, "stream"], as_index=False, dropna=False).agg(
        value=("value", "mean"), shifts=("shift", "size")
    )
    if against in set(whole["stream"]):
        yardstick = whole[whole["stream"] == against]
    elif against in set(within["shift"]):
        own = within[within["shift"] == against]
        yardstick = own.groupby(run, as_index=False, dropna=False)["value"].mean()
    elif against == CLEAN:
        return []
    else:
        raise unknown("stream or shift", against, [*whole["stream"], *within["shift"]])
    several = whole[whole["shifts"] > 1].assign(shift="")
    sets = pd.concat([several, within])
    sets = sets[(sets["stream"] != against) & (sets["shift"] != against)]
    pairs = sets.merge(yardstick[[*run, "value"]], on=run, suffixes=("", "_against"))
    found: Rows = []
    keys = ["adapter", "seed", "stream", "shift"]
    for key, models in pairs.groupby(keys, sort=True, dropna=False):
        if len(models) < FEWEST or models["value"].nunique() == 1 or models["value_against"].nunique() == 1:
            continue
        value = float(np.clip(np.corrcoef(models["value"].rank(), models["value_against"].rank())[0, 1], -1, 1))
        row = {"measure": "rank_correlation", "value": value, "n": len(models), "shift": "", "against": against}
        found.append(row | named_after(keys, key) | spearman_interval(value, len(models)))
    return found


def spearman_interval(value: float, n: int) -> dict[str, float]:
    """`low` and `high`; empty for fewer than six models, and for the same order."""
    if n < FEWEST_FOR_INTERVAL or abs(value) > 1 - 1e-12:
        return {}
    half = Z95 * sqrt((1 + value**2 / 2) / (n - 3))
    return {"low": tanh(atanh(value) - half), "high": tanh(atanh(value) + half)}
