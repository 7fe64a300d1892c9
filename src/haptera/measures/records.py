"""What adapters report about each step, in windows along the stream, under the names that they use.

Common names are `loss`, `kept` (share of the samples learnt from), `change` (norm of what has changed), `entropy` and
`largest` class (of the mean prediction), `resets` (so far) and `skipped` (1 at a step that was not learnt from because
it was not finite). The name is the `measure` of these rows.
"""

import numpy as np

from haptera import catalog
from haptera.measures.facts import measure
from haptera.measures.repetitions import last_epoch
from haptera.measures.windows import shared, windows
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
    return [shared(outputs.groups[0]) | row]


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
