"""Effective robustness in a study: how much more a model keeps under a shift than the line of the other models says.

Source: as `robustness`, which has the same for accuracies of any origin. The reference is the accuracy on clean data;
the line is a probit one through all other models with the same adapter. Intervals draw binomial counts for each model
apart, since the table does not know who is right on which sample; `haptera trends` on the same study does.
Cost: two fits, one of them of 200 draws at once, for each shift, severity and adapter.
"""

import numpy as np
import pandas as pd

from haptera.measures.averages import CLEAN, once
from haptera.measures.facts import measure
from haptera.measures.pairs import rows_of
from haptera.statistics.line import fit
from haptera.statistics.resample import interval, over_examples
from haptera.table import Rows

FEWEST = 4
"""Models; the line of the others needs three."""
DRAWS = 200
CELL = ["stream", "adapter", "seed", "shift", "severity"]


@measure(bounds=(-1, 1), higher_is_better=True, of="table")
def effective_robustness(table: pd.DataFrame) -> Rows:
    """Accuracy under a shift above the probit line, over accuracy on clean data, of all other models.

    Adapters are taken one at a time; no rows where fewer than four models were measured on clean and on shifted data.
    """
    rows = rows_of(table, "accuracy")
    rows = rows[rows["n"].notna()]
    unshifted = (rows["shift"] == CLEAN) | (rows["severity"] == 0)
    names = ["model", "adapter", "seed"]
    own = unshifted & (rows["stream"] == CLEAN)
    base = rows[own if own.any() else unshifted].groupby(names, dropna=False, as_index=False)
    clean = base.agg(x=("value", "mean"), of=("n", "max"))  # in other streams these are the same images
    cells = once(rows[~unshifted], [*CELL, "model"]).groupby([*CELL, "model"], dropna=False, as_index=False)
    both = cells.agg(y=("value", "mean"), n=("n", "sum")).merge(clean, on=names)
    found: Rows = []
    for cell, run in both.groupby(CELL, dropna=False, sort=True):
        x, y = run["x"].to_numpy(float), run["y"].to_numpy(float)
        if len(np.unique(x)) < FEWEST:
            continue
        n = run["of"].to_numpy(np.int64), run["n"].to_numpy(np.int64)
        draws = over_examples((x, n[0]), (y, n[1]), draws=DRAWS)
        value = fit(x, y, "probit", n=n).left_out
        low, high = interval(value, fit(draws.reference, draws.shifted, "probit", n=n).left_out)
        low, high = np.maximum(np.fmin(low, value), -1), np.minimum(np.fmax(high, value), 1)
        named = dict(zip(CELL, cell, strict=True)) | {"measure": "effective_robustness"}
        numbers = zip(run["model"], value.tolist(), low.tolist(), high.tolist(), n[1].tolist(), strict=True)
        keys = ("model", "value", "low", "high", "n")
        found += [named | dict(zip(keys, row, strict=True)) for row in numbers]
    return found
