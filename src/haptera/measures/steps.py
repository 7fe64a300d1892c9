"""Steps: what adapters report about each, in windows along the stream, and what it costs in time and memory.

Records keep the names that adapters use, and the name is the `measure` of these rows. Common ones are `loss`, `kept`
(share of the samples learnt from), `change` (norm of what has changed), `entropy` and `largest` class (of the mean
prediction), `resets` (so far) and `skipped` (1 at a step that was not learnt from because it was not finite).
"""

import numpy as np
import pandas as pd

from haptera import catalog
from haptera.measures.facts import measure
from haptera.measures.pairs import beside, name_group, rows_of
from haptera.measures.stacks import Columns, Stack, together
from haptera.measures.windows import CELL, common_context, last_epoch, windows
from haptera.outputs import Outputs
from haptera.table import Rows

COUNTED, RUNNING, KEPT = "skipped", "resets", "kept"
COSTS = ("seconds", "peak_bytes")


@measure(bounds=(0, 1), higher_is_better=False)
def idle_steps(outputs: Outputs) -> Rows:
    """Share of steps of which an adapter kept no sample to learn from, where it says how many: 1 if it never learnt.

    `n` is the number of steps. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    kept = np.asarray(outputs.steps.get(KEPT, []), float)
    kept = kept[np.isfinite(kept)]
    if not len(kept):
        return []
    row = {"measure": "idle_steps", "value": float((kept == 0).mean()), "n": len(kept)}
    return [common_context(outputs.groups[0]) | row]


@measure(bounds=(float("-inf"), float("inf")))
def records(outputs: Outputs) -> Rows:
    """Each record in at most 100 windows of steps: its mean; the sum of `skipped`; the last value of `resets`.

    Steps that say nothing are left out; `n` is the number of steps that do. A record with the name of a measure would
    be taken for it, and is left out. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    names = [name for name in outputs.steps if name not in COSTS and name not in catalog.entries("measures")]
    if outputs.step is None or not names or not len(outputs):
        return []
    found = windows(outputs, by_context=False)
    rows: Rows = []
    for name in names:
        values = np.asarray(outputs.steps[name], float)
        window = np.searchsorted(found.last, np.arange(len(values)))
        known = np.flatnonzero(np.isfinite(values) & (window < len(found)))
        n = np.bincount(window[known], minlength=len(found))
        total = np.bincount(window[known], values[known], len(found)).astype(float)
        if name == RUNNING:
            total[window[known]] = values[known]  # in the order of the steps, so the last one stays
        elif name != COUNTED:
            total /= np.maximum(n, 1)
        for i in np.flatnonzero(n):
            row = {"measure": name, "value": float(total[i]), "n": int(n[i]), "step": int(found.last[i])}
            rows.append(found.contexts[i] | row)
    return rows


@measure(bounds=(0, float("inf")), higher_is_better=False)
def seconds_per_image(outputs: Outputs) -> Rows:
    """Seconds in the adapter and the model, reading and shifting left out, per image of each context.

    The first batch of an epoch, which may pay for what a process does once, counts only in a context that has no other.
    """
    if "seconds" not in outputs.steps or outputs.step is None or not len(outputs):
        return []
    contexts, codes = outputs.groups
    seconds = outputs.steps["seconds"]
    each = seconds / np.maximum(np.bincount(outputs.step, minlength=len(seconds)), 1)
    epochs, epoch = np.unique(outputs.context.get("epoch", np.zeros(len(outputs), np.int64)), return_inverse=True)
    firsts = np.array([outputs.step[epoch == place].min() for place in range(len(epochs))])
    timed = outputs.step > firsts[epoch]
    timed |= np.bincount(codes[timed], minlength=len(contexts))[codes] == 0
    codes, step = codes[timed], outputs.step[timed]
    total, n = np.bincount(codes, each[step], len(contexts)), np.bincount(codes, minlength=len(contexts))
    return [
        context | {"measure": "seconds_per_image", "value": float(total[i] / n[i]), "n": int(n[i])}
        for i, context in enumerate(contexts)
    ]


@together(seconds_per_image)
def _seconds_per_image(stack: Stack) -> Columns | None:
    if "seconds" not in stack.steps or stack.first.step is None:
        return None
    seconds, step = stack.steps["seconds"], stack.first.step
    each = seconds / np.maximum(np.bincount(step, minlength=seconds.shape[1]), 1)
    later = step[step > step.min()]
    timed = later if len(later) else step
    value = np.bincount(np.repeat(stack.every, len(timed)), each[:, timed].ravel()) / len(timed)
    return {"cell": stack.every, "measure": "seconds_per_image", "value": value, "n": len(timed)}


@measure(bounds=(0, float("inf")), higher_is_better=False)
def peak_bytes(outputs: Outputs) -> Rows:
    """The most memory that any step of the cell took, where steps report `peak_bytes`; of several epochs, the last."""
    outputs = last_epoch(outputs)
    peaks = np.asarray(outputs.steps.get("peak_bytes", []), float)
    if not np.isfinite(peaks).any():
        return []
    row = {"measure": "peak_bytes", "value": float(np.nanmax(peaks)), "n": len(outputs)}
    return [common_context(outputs.groups[0]) | row]


@together(peak_bytes)
def _peak_bytes(stack: Stack) -> Columns | None:
    peaks = np.asarray(stack.steps.get("peak_bytes", np.empty((stack.cells, 0))), float)
    known = np.flatnonzero(np.isfinite(peaks).any(1))
    if not len(known):
        return None
    return {"cell": known, "measure": "peak_bytes", "value": np.nanmax(peaks[known], axis=1), "n": stack.samples}


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def relative_seconds(table: pd.DataFrame) -> Rows:
    """Time per image over that of the unadapted model, in each stream; one core that is busy elsewhere moves it."""
    return _relative(table, "seconds_per_image", "relative_seconds")


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def relative_bytes(table: pd.DataFrame) -> Rows:
    """Peak memory over that of the unadapted model, in each stream, where it was recorded."""
    return _relative(table, "peak_bytes", "relative_bytes")


def _relative(table: pd.DataFrame, measure: str, name: str) -> Rows:
    """The ratio of sums over the contexts and parts of a stream that both have, each weighted by its samples."""
    pairs = beside(rows_of(table, measure)).dropna(subset="n")
    names = [each for each in CELL if each != "part"]
    rows: Rows = []
    for key, run in pairs.groupby(names, dropna=False, sort=True):
        n = run["n"].to_numpy(float)
        without = float(np.dot(run["value_reference"], n))
        if without > 0:
            row = {"measure": name, "value": float(np.dot(run["value"], n)) / without, "n": int(n.sum())}
            rows.append(name_group(names, key) | row)
    return rows
