"""Accuracy, error, and how they go over time, per shift and severity; intervals are Wilson's at 95 %.

Along a CCC stream there is also the accuracy that its calibration promises, with the severities of its two shifts.
"""

import numpy as np

from haptera.measures.facts import measure
from haptera.measures.repetitions import last_epoch
from haptera.measures.windows import windows
from haptera.outputs import ASIDE, Outputs
from haptera.statistics.intervals import wilson
from haptera.table import Rows

CONTEXT = ("shift", *(key for key in ASIDE if key != "sample"))


@measure(bounds=(0, 1), higher_is_better=True)
def accuracy(outputs: Outputs) -> Rows:
    """Share of samples whose largest logit is an accepted class."""
    return _shares("accuracy", outputs, 1)


@measure(bounds=(0, 1), higher_is_better=True)
def top5_accuracy(outputs: Outputs) -> Rows:
    """Share with an accepted class among the five largest logits; no rows where fewer classes are known."""
    return _shares("top5_accuracy", outputs, 5) if outputs.keeps(5) else []


@measure(bounds=(0, 1), higher_is_better=False)
def error(outputs: Outputs) -> Rows:
    """One minus accuracy."""
    return [
        row | {"measure": "error", "value": 1 - row["value"], "low": 1 - row["high"], "high": 1 - row["low"]}
        for row in accuracy(outputs)
    ]


@measure(bounds=(0, 1), higher_is_better=True)
def accuracy_over_steps(outputs: Outputs) -> Rows:
    """Accuracy in windows of whole batches that span no two contexts; `step` is the last batch of the window.

    Where most batches hold several contexts, as in a mixed stream, windows do too. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.targets is None or outputs.step is None or not len(outputs):
        return []
    found = windows(outputs)
    right, n = _counts(outputs.correct(), found.sample, len(found))
    return [
        context | {"step": int(found.last[i])} | _share("accuracy_over_steps", right[i], n[i])
        for i, context in enumerate(found.contexts)
    ]


@measure(bounds=(0, float("inf")), higher_is_better=False)
def seconds_per_image(outputs: Outputs) -> Rows:
    """Seconds in the adapter and the model, reading and shifting left out, per image of each context."""
    if "seconds" not in outputs.steps or outputs.step is None or not len(outputs):
        return []
    contexts, codes = outputs.groups
    seconds = outputs.steps["seconds"]
    each = seconds / np.maximum(np.bincount(outputs.step, minlength=len(seconds)), 1)
    total, n = _counts(each[outputs.step], codes, len(contexts))
    return [
        context | {"measure": "seconds_per_image", "value": float(total[i] / n[i]), "n": int(n[i])}
        for i, context in enumerate(contexts)
    ]


def _shares(name: str, outputs: Outputs, k: int) -> Rows:
    if outputs.targets is None or not len(outputs):
        return []
    contexts, codes = outputs.groups
    right, n = _counts(outputs.correct(k), codes, len(contexts))
    return [context | _share(name, right[i], n[i]) for i, context in enumerate(contexts)]


def _counts(values: np.ndarray, codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum and number of the values of each group."""
    return np.bincount(codes, values, size), np.bincount(codes, minlength=size)


def _share(name: str, right: float, n: int) -> dict[str, object]:
    low, high = wilson(float(right), int(n))
    return {"measure": name, "value": float(right / n), "low": low, "high": high, "n": int(n)}


@measure(bounds=(0, 1))
def expected_accuracy(outputs: Outputs) -> Rows:
    """The accuracy of the calibrated model at every step of the walk.

    The rows have further columns: `severity_1` and `severity_2` of the shifts that `shift` names, and `difficulty`, the
    accuracy that the walk is meant to keep. `step` is the last batch of a step of the walk, `n` its images.
    """
    outputs = last_epoch(outputs)
    if outputs.step is None or not len(outputs) or any(key not in outputs.context for key in CONTEXT):
        return []
    between = outputs.context.get("interleaved", np.zeros(len(outputs), bool))
    order = np.lexsort((outputs.ids, outputs.step))  # ids are positions in the stream
    order = order[~between[order]]
    columns = {key: outputs.context[key][order] for key in CONTEXT}
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
