"""Accuracy, error, and how they go over time, per shift and severity; intervals are Wilson's at 95 %.

Along a CCC stream there is also the accuracy that its calibration promises, with the severities of its two shifts.
"""

import numpy as np

from haptera.measures.facts import measure
from haptera.measures.stacks import Columns, Stack, each_once, together
from haptera.measures.windows import last_epoch, windows
from haptera.outputs import ASIDE, Outputs
from haptera.statistics.intervals import wilson
from haptera.table import Rows

CONTEXT = ("shift", "difficulty", *(key for key in ASIDE if key != "sample"))


@measure(bounds=(0, 1), higher_is_better=True)
def accuracy(outputs: Outputs) -> Rows:
    """Share of samples whose largest logit is an accepted class."""
    return [] if outputs.targets is None else share_rows("accuracy", outputs, outputs.correct())


@together(accuracy)
def _accuracies(stack: Stack) -> Columns | None:
    return None if stack.flat.targets is None else share_columns("accuracy", stack, stack.flat.correct())


@measure(bounds=(0, 1), higher_is_better=True)
def top5_accuracy(outputs: Outputs) -> Rows:
    """Share with an accepted class among the five largest logits; no rows where fewer classes are known."""
    known = outputs.targets is not None and outputs.keeps(5)
    return share_rows("top5_accuracy", outputs, outputs.correct(5)) if known else []


@together(top5_accuracy)
def _top5_accuracies(stack: Stack) -> Columns | None:
    known = stack.flat.targets is not None and stack.flat.keeps(5)
    return share_columns("top5_accuracy", stack, stack.flat.correct(5)) if known else None


@measure(bounds=(0, 1), higher_is_better=False)
def error(outputs: Outputs) -> Rows:
    """One minus accuracy."""
    if outputs.targets is None:
        return []
    return [
        row | {"measure": "error", "value": 1 - row["value"], "low": 1 - row["high"], "high": 1 - row["low"]}
        for row in share_rows("error", outputs, outputs.correct())
    ]


@together(error)
def _errors(stack: Stack) -> Columns | None:
    right = _accuracies(stack)
    if right is None:
        return None
    return right | {"measure": "error", "value": 1 - right["value"], "low": 1 - right["high"], "high": 1 - right["low"]}


@measure(bounds=(0, 1), higher_is_better=True)
def accuracy_over_steps(outputs: Outputs) -> Rows:
    """Accuracy in windows of whole batches that span no two contexts; `step` is the last batch of the window.

    Where most batches hold several contexts, as in a mixed stream, windows do too. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.targets is None or outputs.step is None or not len(outputs):
        return []
    found = windows(outputs)
    right, n = np.bincount(found.sample, outputs.correct()), np.bincount(found.sample)
    return [
        context | {"step": int(found.last[i])} | share_row("accuracy_over_steps", right[i], n[i])
        for i, context in enumerate(found.contexts)
    ]


@together(accuracy_over_steps)
def _accuracies_over_steps(stack: Stack) -> Columns | None:
    if stack.flat.targets is None or stack.first.step is None:
        return None
    found = stack.windows()
    window = stack.windows_of_samples(found)
    shares = share_values(np.bincount(window, stack.flat.correct()), np.bincount(window))
    return {"measure": "accuracy_over_steps"} | stack.about_windows(found) | shares


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


def share_rows(name: str, outputs: Outputs, held: np.ndarray) -> Rows:
    """Return a row for each context: the share of its samples of which something `(samples,)` holds."""
    if not len(outputs):
        return []
    contexts, codes = outputs.groups
    n, right = np.bincount(codes), np.bincount(codes, held)
    return [context | share_row(name, right[i], n[i]) for i, context in enumerate(contexts)]


def share_row(name: str, right: float, n: int) -> dict[str, object]:
    """Return a share of n as a row, with its interval."""
    low, high = wilson(float(right), int(n))
    return {"measure": name, "value": float(right / n), "low": low, "high": high, "n": int(n)}


def share_columns(name: str, stack: Stack, held: np.ndarray) -> Columns:
    """Return a row for each cell of a stack: the share of its samples of which something `(cells * samples,)` holds."""
    n = np.full(stack.cells, stack.samples)
    return {"cell": stack.every, "measure": name} | share_values(np.bincount(stack.cell, held), n)


def share_values(right: np.ndarray, n: np.ndarray) -> Columns:
    """Return shares as columns, with their intervals."""
    low, high = each_once(wilson, right, n).T
    return {"value": right / n, "low": low, "high": high, "n": n}
