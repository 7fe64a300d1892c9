"""What adaptation wins, and what it costs on the data the model came from: differences to the unadapted model.

Sources: thesis chapters 2 and 3; forgetting after table 3.14, which takes the accuracy on clean data after adapting,
with the statistics of BatchNorm corrected to the clean data again. A stream with clean batches in between
(`interleave`), or one whose severity returns to 0, shows that: an adapter that takes statistics of the batch takes
those of the clean one. The adapter also learns from the clean batches, which table 3.14 does not.
"""

import numpy as np
import pandas as pd

from holdfast.measures.facts import measure
from holdfast.measures.pairs import NAMES, beside, named_after, newcombe, records_of, rows_of
from holdfast.measures.proportion import wilson
from holdfast.table import Rows

CLEAN = "clean"
AT_THE_END = 4
"""Forgetting is measured on the last quarter of the clean windows."""


@measure(bounds=(-1, 1), higher_is_better=True, of="table")
def adaptation_gain(table: pd.DataFrame) -> Rows:
    """Accuracy minus that of the unadapted model on the same samples; the interval takes them as independent."""
    pairs = beside(rows_of(table, "accuracy"))
    if pairs.empty:
        return []
    ends = ["value", "low", "high"]
    both = zip(pairs[ends].to_numpy(float), pairs[[f"{end}_reference" for end in ends]].to_numpy(float), strict=True)
    pairs["low"], pairs["high"] = zip(*(newcombe(own, other) for own, other in both), strict=True)
    pairs["value"] -= pairs["value_reference"]
    pairs = pairs.drop(columns=[name for name in pairs if str(name).endswith("reference")])
    return records_of(pairs.assign(measure="adaptation_gain"))


@measure(bounds=(-1, 1), higher_is_better=False, of="table")
def forgetting(table: pd.DataFrame) -> Rows:
    """Accuracy on clean data that is lost at the end of a stream: the unadapted model's minus the adapted one's.

    Clean are windows of the shift "clean" or of severity 0. Of those that come after the first shifted window the last
    quarter counts, at least one. Negative where the adapted model has become better. No rows for a stream without
    clean data after shifted data. The interval takes the two accuracies as independent.
    """
    rows = rows_of(table, "accuracy_over_steps")
    rows = rows[rows["step"].notna() & rows["n"].notna()]
    unshifted = (rows["shift"] == CLEAN) | (rows["severity"] == 0)
    if rows.empty or not unshifted.any():
        return []
    begins = rows[~unshifted].groupby(NAMES, dropna=False)["step"].min().rename("begins").reset_index()
    after = rows[unshifted].merge(begins, on=NAMES)
    pairs = beside(after[after["step"] > after["begins"]].drop(columns="begins"))
    found: Rows = []
    for names, run in pairs.groupby(NAMES, dropna=False, sort=True):
        run = run.sort_values("step")
        last = run.tail(-(-len(run) // AT_THE_END))
        n = int(last["n"].sum())
        own, other = (_pooled(last[name], last["n"], n) for name in ("value", "value_reference"))
        low, high = newcombe(other, own)
        row = {"measure": "forgetting", "value": other[0] - own[0], "low": low, "high": high, "n": n, "shift": CLEAN}
        found.append(named_after(NAMES, names) | row)
    return found


def _pooled(share: pd.Series, n: pd.Series, total: int) -> tuple[float, float, float]:
    """The share over several windows, and its interval."""
    right = float(np.dot(share.to_numpy(float), n.to_numpy(float)))
    return right / total, *wilson(right, total)
