"""Repetitions: epochs are the same images again, and are not averaged as if they were more of them; the last counts.

Table B.3 of the thesis prints the error after each epoch: measures that have a row for each context have one for each
epoch, all others are about the last. What compares cells takes the last. Seeds: `mean_over_seeds`.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from haptera.outputs import Outputs

EPOCH = "epoch"
CELL = ["model", "stream", "adapter", "seed", "part"]


def last_epoch(outputs: Outputs) -> Outputs:
    """The outputs of the last epoch, its steps counted from 0; the outputs themselves where there is one pass."""
    if EPOCH not in outputs.context or not len(outputs):
        return outputs
    epochs = outputs.context[EPOCH]
    rows = np.flatnonzero(epochs == epochs.max())
    context = {key: column[rows] for key, column in outputs.context.items() if key != EPOCH}
    steps, records = outputs.step, outputs.steps
    if steps is not None:
        first, last = int(steps[rows].min()), int(steps[rows].max())
        steps = steps[rows] - first
        records = {key: values[first : last + 1] for key, values in records.items()}
    return replace(
        outputs,
        arrays={key: array[rows] for key, array in outputs.arrays.items()},
        ids=outputs.ids[rows],
        targets=None if outputs.targets is None else outputs.targets[rows],
        step=steps,
        context=context,
        steps=records,
    )


def last_epochs(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last epoch of every run, without the column `epoch`."""
    if EPOCH not in rows:
        return rows
    run = [name for name in CELL if name in rows]
    last = rows.groupby(run, dropna=False, observed=True)[EPOCH].transform("max")
    return rows[rows[EPOCH].isna() | (rows[EPOCH] == last)].drop(columns=EPOCH)
