"""Where a CCC stream is: the severities of its two shifts, and the accuracy that its calibration promises there.

Reads what the stream says about its samples (`haptera.streams.walk`); a stream that says nothing has no rows.
"""

import numpy as np

from haptera.measures.facts import measure
from haptera.measures.repetitions import last_epoch
from haptera.outputs import ASIDE, Outputs
from haptera.table import Rows

TOLD = ("shift", *(key for key in ASIDE if key != "sample"))


@measure(bounds=(0, 1))
def expected_accuracy(outputs: Outputs) -> Rows:
    """The accuracy of the calibrated model at every step of the walk.

    The rows have further columns: `severity_1` and `severity_2` of the shifts that `shift` names, and `difficulty`, the
    accuracy that the walk is meant to keep. `step` is the last batch of a step of the walk, `n` its images.
    """
    outputs = last_epoch(outputs)
    if outputs.step is None or not len(outputs) or any(key not in outputs.context for key in TOLD):
        return []
    between = outputs.context.get("interleaved", np.zeros(len(outputs), bool))
    order = np.lexsort((outputs.ids, outputs.step))  # ids are positions in the stream
    order = order[~between[order]]
    columns = {key: outputs.context[key][order] for key in TOLD}
    new = np.zeros(len(order), bool)
    for column in columns.values():
        new[1:] |= column[1:] != column[:-1]
    last = np.append(np.flatnonzero(new) - 1, len(order) - 1)
    rows = []
    for end, n in zip(last, np.diff(last, prepend=-1), strict=True):
        told = {key: column[end].item() for key, column in columns.items()}
        value = {"measure": "expected_accuracy", "value": told.pop("expected"), "n": int(n)}
        rows.append(told | {"step": int(outputs.step[order[end]])} | value)
    return rows
