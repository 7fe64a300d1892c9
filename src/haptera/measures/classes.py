"""Which classes a shift attracts, and the signs of collapse that need no labels.

Sources: error analysis of chapter 3 and figure B.7 (the classes predicted most often), table B.24 (predictions outside
the mapped classes, the error of the others), appendix C (entropy of the mean prediction, share of the largest class).
Differs: figure B.7 shows how often a class is predicted; here that is compared with how often it would be right.
"""

import numpy as np

from haptera.measures.accuracy import share_row, share_rows
from haptera.measures.calibration import log_probabilities
from haptera.measures.facts import measure
from haptera.measures.pairs import paired_interval
from haptera.measures.stacks import Columns, Stack, each_once, together
from haptera.measures.windows import common_context, last_epoch, windows
from haptera.outputs import Outputs
from haptera.table import Rows

CLASSES = 10
"""How many classes of a cell `class_attraction` reports."""
DENSE = 2**16
"""Counts that are kept for all classes of all windows; of more, only those that are not 0."""
SAMPLES = 250
"""Samples that a window needs; with fewer, chance alone makes one class of many the largest by far."""


@measure(bounds=(-1, 1))
def class_attraction(outputs: Outputs) -> Rows:
    """Share of samples predicted as a class minus the share for which it would be right, over the whole cell.

    The ten classes with the largest difference either way, `class` being the model's, and `class_name`, where classes
    have names; `predicted` and `actual` are the two shares. The interval is that of a difference of shares of the
    same samples. Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.targets is None or not len(outputs):
        return []
    n, predicted = len(outputs), outputs.predictions()
    known, actual = predicted >= 0, _actual(outputs)
    share = np.bincount(predicted[known], minlength=len(actual)) / n
    both = np.bincount(predicted[outputs.correct() & known], minlength=len(share)) / n
    truth = np.zeros(len(share))
    truth[: len(actual)] = actual / n
    excess, context = share - truth, common_context(outputs.groups[0])
    rows: Rows = []
    largest = np.argsort(-np.abs(excess), kind="stable")[:CLASSES]
    columns = (each[largest].tolist() for each in (excess, share, truth, both))
    for label, value, predicted_as, actually, both_are in zip(largest.tolist(), *columns, strict=True):
        low, high = paired_interval((predicted_as - both_are) * n, (actually - both_are) * n, n)
        row = {"measure": "class_attraction", "value": value, "low": low, "high": high, "n": n}
        row |= {"class": label, "predicted": predicted_as, "actual": actually}
        if outputs.classes is not None and label < len(outputs.classes):
            row["class_name"] = str(outputs.classes[label])
        rows.append(context | row)
    return rows


@together(class_attraction)
def _class_attractions(stack: Stack) -> Columns | None:
    targets = stack.flat.targets
    if targets is None:
        return None
    n, size, predicted = stack.samples, stack.flat.logits.shape[1], stack.flat.predictions()
    right = stack.flat.correct()
    share, truth, both = (
        np.bincount(place, minlength=stack.cells * size).reshape(stack.cells, size) / n
        for place in (
            stack.cell * size + predicted,
            stack.cell * size + targets,
            (stack.cell * size + predicted)[right],
        )
    )
    excess = share - truth
    largest = np.argsort(-np.abs(excess), axis=1, kind="stable")[:, :CLASSES]
    met = np.maximum(predicted, targets).reshape(stack.cells, n).max(1) + 1  # classes beyond have no row
    cell, place = np.nonzero(np.arange(largest.shape[1]) < met[:, None])
    label = largest[cell, place]
    value, predicted_as, actually, both_are = (each[cell, label] for each in (excess, share, truth, both))
    low, high = each_once(
        lambda more, less: paired_interval(more, less, n), (predicted_as - both_are) * n, (actually - both_are) * n
    ).T
    found: Columns = {"cell": cell, "measure": "class_attraction", "value": value, "low": low, "high": high, "n": n}
    found |= {"class": label, "predicted": predicted_as, "actual": actually}
    if (names := stack.first.classes) is not None:
        found["class_name"] = names[label].astype(object)
    return found


@measure(bounds=(0, 1))
def outside_mapping(outputs: Outputs) -> Rows:
    """Share of predictions that are right for no class of the data; no rows without a mapping of classes.

    It is 0 where predictions were restricted to the classes of the mapping.
    """
    return [] if outputs.accepted is None else share_rows("outside_mapping", outputs, _outside(outputs))


@measure(bounds=(0, 1), higher_is_better=False)
def filtered_error(outputs: Outputs) -> Rows:
    """Error among the samples whose prediction is right for some class of the data; no rows without a mapping.

    The others, the rejected inputs of table B.24, are `outside_mapping`; `n` is how many samples are left. No row where
    none is.
    """
    if outputs.accepted is None or outputs.targets is None or not len(outputs):
        return []
    contexts, codes = outputs.groups
    inside = ~_outside(outputs)
    n = np.bincount(codes, inside, len(contexts))
    wrong = np.bincount(codes, inside & ~outputs.correct(), len(contexts))
    return [
        context | share_row("filtered_error", wrong[i], int(n[i])) for i, context in enumerate(contexts) if n[i] > 0
    ]


@measure(bounds=(0, 1))
def largest_class_share(outputs: Outputs) -> Rows:
    """Share of the class predicted most often in each window of steps: 1 when only one class is left.

    Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.step is None or not len(outputs):
        return []
    found, predicted = windows(outputs, by_context=False, samples=SAMPLES), outputs.predictions()
    n, known = np.bincount(found.sample), predicted >= 0
    size = int(predicted.max()) + 1
    pairs = found.sample[known] * size + predicted[known]
    if len(found) * size <= DENSE:
        largest = np.bincount(pairs, minlength=len(found) * size).reshape(len(found), size).max(1, initial=0)
    else:
        pairs, counts = np.unique(pairs, return_counts=True)
        largest = np.zeros(len(found), np.int64)
        np.maximum.at(largest, pairs // max(size, 1), counts)
    return [
        context
        | {"measure": "largest_class_share", "value": float(largest[i] / n[i]), "n": int(n[i])}
        | {"step": int(found.last[i])}
        for i, context in enumerate(found.contexts)
    ]


@together(largest_class_share)
def _largest_class_shares(stack: Stack) -> Columns | None:
    if stack.first.step is None:
        return None
    found, size = stack.windows(SAMPLES), stack.flat.logits.shape[1]
    window = stack.windows_of_samples(found)
    n, pairs = np.bincount(window), window * size + stack.flat.predictions()
    largest = np.bincount(pairs, minlength=len(n) * size).reshape(len(n), size).max(1)
    return {"measure": "largest_class_share", "value": largest / n, "n": n} | stack.about_windows(found)


@measure(bounds=(0, float("inf")))
def mean_prediction_entropy(outputs: Outputs) -> Rows:
    """Entropy in nats of the mean probabilities in each window of steps: 0 when only one class is left.

    Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if outputs.step is None or "logits" not in outputs.arrays or not len(outputs):
        return []
    found = windows(outputs, by_context=False, samples=SAMPLES)
    total, n = np.zeros((len(found), outputs.logits.shape[1])), np.zeros(len(found), np.int64)
    for rows, logs in log_probabilities(outputs):
        if len(found) == 1:
            logs = logs[~np.isnan(logs[:, 0])]
            if len(logs):  # added up as below, so that the last digit is the same
                total[0] += np.add.reduceat(np.exp(logs), [0], axis=0, dtype=np.float64)[0]
                n[0] += len(logs)
            continue
        window = np.where(np.isnan(logs[:, 0]), len(found), found.sample[rows])  # what is NaN comes last, and is cut
        order = np.argsort(window, kind="stable")
        starts = np.flatnonzero(np.diff(window[order], prepend=-1))
        present, counts = window[order[starts]], np.diff(starts, append=len(order))
        sums = np.add.reduceat(np.exp(logs[order]), starts, axis=0, dtype=np.float64)
        known = present < len(found)
        total[present[known]] += sums[known]
        n[present[known]] += counts[known]
    entropy = _entropies(total / np.maximum(n, 1)[:, None])
    return [
        context
        | {"measure": "mean_prediction_entropy", "value": max(float(entropy[i]), 0.0), "n": int(n[i])}
        | {"step": int(found.last[i])}
        for i, context in enumerate(found.contexts)
        if n[i]
    ]


@together(mean_prediction_entropy)
def _mean_prediction_entropies(stack: Stack) -> Columns | None:
    if stack.first.step is None:
        return None
    found = stack.windows(SAMPLES)
    window = stack.windows_of_samples(found)
    n, order = np.bincount(window), np.argsort(window, kind="stable")
    ((_, logs),) = log_probabilities(stack.flat)
    total = np.add.reduceat(np.exp(logs[order]), np.cumsum(n) - n, axis=0, dtype=np.float64)
    entropy = _entropies(total / n[:, None])
    value = np.where(entropy < 0, 0.0, entropy)
    return {"measure": "mean_prediction_entropy", "value": value, "n": n} | stack.about_windows(found)


def _entropies(mean: np.ndarray) -> np.ndarray:
    """Return the entropy of each row of probabilities."""
    entropy: np.ndarray = -(mean * np.log(np.where(mean > 0, mean, 1))).sum(1)
    return entropy


def _outside(outputs: Outputs) -> np.ndarray:
    """Return whether the prediction of each sample is right for no class of the data."""
    assert outputs.accepted is not None
    columns = np.arange(outputs.accepted.shape[1]) if outputs.columns is None else outputs.columns
    outside: np.ndarray = ~np.isin(outputs.predictions(), columns[outputs.accepted.any(0)])
    return outside


def _actual(outputs: Outputs) -> np.ndarray:
    """Return for how many samples each of the model's classes would be right; with a mapping, several may be."""
    counts = np.bincount(outputs.targets)  # type: ignore[arg-type]
    if outputs.accepted is None:
        return counts
    right = counts @ outputs.accepted[: len(counts)]
    if outputs.columns is None:
        return right
    named = np.zeros(int(outputs.columns.max()) + 1, np.int64)
    named[outputs.columns] = right
    return named
