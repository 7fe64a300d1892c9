"""Accuracy along whole walks of CCC, and its mean over the walks of a benchmark.

Source: thesis chapter 4: the mean over difficulties, each over 3 speeds and 3 seeds. An interval of a mean is the mean
of interval ends, since the walks show the same images again and again.
"""

import pandas as pd

from haptera.measures.accuracy import share_row
from haptera.measures.averages import NUMBERS, RUN, group_means
from haptera.measures.facts import measure
from haptera.measures.pairs import records_of, rows_of
from haptera.measures.windows import last_epoch
from haptera.outputs import Outputs
from haptera.table import Rows

ABOUT = ("difficulty", "speed", "walk")


@measure(bounds=(0, 1), higher_is_better=True)
def walk_accuracy(outputs: Outputs) -> Rows:
    """Accuracy along a walk of CCC, every image counting the same; batches of clean data in between do not count.

    The rows have the columns `difficulty`, the accuracy that the walk is meant to keep, and in a benchmark `speed` and
    `walk`. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.targets is None or not len(outputs) or "expected" not in outputs.context:
        return []
    right = outputs.correct()
    if "interleaved" in outputs.context:
        right = right[~outputs.context["interleaved"].astype(bool)]
    about = {key: outputs.context[key][0].item() for key in ABOUT if key in outputs.context}
    return [about | share_row("walk_accuracy", right.sum(), len(right))] if len(right) else []


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def benchmark_accuracy(table: pd.DataFrame) -> Rows:
    """Mean accuracy of the walks of a benchmark: at each `difficulty` over speeds and walks, and over the difficulties.

    The row without a difficulty is the mean over all of them; `cells` is how many walks, and `walk_sd`, at each
    difficulty, the standard deviation among them, which table 4.1 prints.
    """
    rows = rows_of(table, "walk_accuracy")
    if rows.empty or "walk" not in rows:
        return []
    rows = rows[rows["walk"].notna()]
    by = [*RUN, "difficulty"]
    spread = rows.astype({"value": "float64"}).groupby(by, dropna=False, observed=True)["value"].std()
    each = group_means(rows, by).merge(spread.rename("walk_sd").reset_index(), on=by)
    groups = each.groupby(RUN, dropna=False, observed=True)
    every = groups[NUMBERS].mean().join(groups[["n", "cells"]].sum()).reset_index()
    return records_of(pd.concat([every, each], ignore_index=True).assign(measure="benchmark_accuracy"))
