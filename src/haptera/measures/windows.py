"""Windows: a stream cut into runs of whole batches, few enough to draw and long enough to mean something; last epochs.

Epochs are the same images again, and are not averaged as if they were more of them. Table B.3 of the thesis prints the
error after each epoch: measures that have a row for each context have one for each epoch, all others are about the
last, and so is what compares cells.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from haptera.outputs import Outputs

WINDOWS = 100
"""The most windows into which a stream is divided, but for those that a change of context cuts."""
EPOCH = "epoch"
CELL = ["model", "stream", "adapter", "seed", "part"]
"""What tells one cell from another, and names the rows that compare them."""


@dataclass(frozen=True)
class Windows:
    """Which window each sample is in.

    Attributes:
        sample: `(samples,)`, the window of each sample.
        last: `(windows,)`, the last step of each window.
        contexts: for each window, what is known about all of its samples.
    """

    sample: np.ndarray
    last: np.ndarray
    contexts: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.last)


def windows(outputs: Outputs, by_context: bool = True, samples: int = 1) -> Windows:
    """Cut a stream, whose steps must be known, into windows.

    Args:
        outputs: of one cell.
        by_context: whether a change of context, of a shift for instance, ends a window. It does not where most
            batches hold several contexts.
        samples: the least that a window holds on average, but for those that are cut.
    """
    return outputs.share(("windows", by_context, samples), lambda: _windows(outputs, by_context, samples))


def _windows(outputs: Outputs, by_context: bool, samples: int) -> Windows:
    assert outputs.step is not None
    contexts, codes = outputs.groups
    given = outputs.step
    steps, piece = outputs.share("batches", lambda: np.unique(given, return_inverse=True))
    if len(steps) == 1 and not (by_context and len(contexts) > 1):
        return Windows(np.zeros(len(outputs), np.int64), steps, _contexts(contexts, codes, piece, 1))
    most = min(WINDOWS, max(len(outputs) // samples, 1))
    first = np.arange(0, len(steps), -(-len(steps) // most))
    window = np.arange(len(steps)) // -(-len(steps) // most)
    if by_context and len(contexts) > 1:
        pieces, own = np.unique(outputs.step.astype(np.int64) * len(contexts) + codes, return_inverse=True)
        if len(pieces) <= 2 * len(steps):
            steps, groups = np.divmod(pieces, len(contexts))  # a piece is one context in one batch
            run = np.cumsum(np.diff(groups, prepend=groups[0]) != 0)  # pieces of one context that follow each other
            place = (np.arange(len(steps)) - np.searchsorted(run, run)) // -(-len(steps) // most)
            _, first, window = np.unique(run * len(steps) + place, return_index=True, return_inverse=True)
            piece = own
    sample = window[piece]
    return Windows(sample, steps[np.append(first[1:], len(steps)) - 1], _contexts(contexts, codes, sample, len(first)))


def common_context(contexts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what all contexts agree on.

    >>> common_context([{"shift": "fog", "severity": 3.0}, {"shift": "snow", "severity": 3.0}])
    {'severity': 3.0}
    """
    first, *others = contexts
    return {key: value for key, value in first.items() if all(other[key] == value for other in others)}


def _contexts(contexts: list[dict[str, Any]], codes: np.ndarray, sample: np.ndarray, size: int) -> list[dict[str, Any]]:
    """The context of each window; what is common to all of the outputs where a window has several."""
    if len(contexts) == 1:
        return contexts * size
    lowest, highest = np.full(size, len(contexts)), np.full(size, -1)
    np.minimum.at(lowest, sample, codes)
    np.maximum.at(highest, sample, codes)
    common = common_context(contexts)
    return [contexts[low] if low == high else common for low, high in zip(lowest, highest, strict=True)]


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
