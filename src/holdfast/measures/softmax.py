"""The softmax of logits, a block of rows at a time: little memory beside the logits, and a block stays in the cache."""

from collections.abc import Iterator

import numpy as np

from holdfast.outputs import Outputs

AT_ONCE = 2**18


def log_probabilities(outputs: Outputs) -> Iterator[tuple[slice, np.ndarray]]:
    """Which rows, and their `(rows, columns)` log-probabilities; NaN where a row has NaN or +∞.

    They are float32, or float64 where the logits are, which may lie outside the range of float32. Where the model's
    classes were restricted, they are conditional on the classes that were kept.
    """
    logits = outputs.logits
    kind = np.promote_types(logits.dtype, np.float32)
    size = max(AT_ONCE // logits.shape[1], 1)
    for start in range(0, len(logits), size):
        rows = slice(start, start + size)
        logs = logits[rows].astype(kind)
        with np.errstate(invalid="ignore"):
            logs -= logs.max(1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(1, keepdims=True))
        yield rows, logs
