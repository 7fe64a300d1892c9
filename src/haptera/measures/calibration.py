"""Calibration: whether a model is right as often as it says it is.

Sources: expected calibration error of Naeini et al. (2015) with 15 equal bins of the top-1 confidence (table 3.13 of
the thesis); G. W. Brier (1950), the sum over classes; the negative log-likelihood in nats.
Differs: samples with a logit that is NaN or +∞ have no confidence and are left out here, where accuracy counts them as
wrong; `n` says how many are left. All need logits: there are no rows where only the best k or the labels were kept.
With a mapping of classes the confidence is that of the model's predicted class, the likelihood that of all classes that
are accepted together, and there is no Brier score where a class accepts several. Where classes were restricted,
probabilities are conditional on those that were kept.
Cost: one pass through the logits each, a third of a second for 50 million logits on one core; the softmax is taken a
block of rows at a time, which needs little memory beside the logits.
"""

from collections.abc import Iterator

import numpy as np

from haptera.measures.accuracy import share_row, share_values
from haptera.measures.facts import measure
from haptera.measures.stacks import Columns, Stack, together
from haptera.measures.windows import common_context, last_epoch
from haptera.outputs import Outputs
from haptera.statistics.intervals import mean_of_units
from haptera.table import Rows

BINS = 15
FEWEST = 30
"""Samples; a likelihood is so uneven that an interval of fewer covers less than it says."""
LEAST = float(np.log(np.nextafter(0.0, 1.0)))
"""The log-probability of a class that is given none, so that one sample cannot make a mean infinite."""
AT_ONCE = 2**18


@measure(bounds=(0, 1), higher_is_better=False)
def expected_calibration_error(outputs: Outputs) -> Rows:
    """Mean distance of accuracy from confidence over bins, weighted by samples; biased upwards where these are few."""
    if not _applies(outputs):
        return []
    contexts, codes = outputs.groups
    known, confidence, right, bins = _binned(outputs)
    place = codes[known] * BINS + bins
    gap = np.bincount(place, right - confidence, len(contexts) * BINS)
    n = np.bincount(codes[known], minlength=len(contexts))
    return [
        context
        | {"measure": "expected_calibration_error", "n": int(n[i])}
        | {"value": float(np.abs(gap[i * BINS : (i + 1) * BINS]).sum() / n[i])}
        for i, context in enumerate(contexts)
        if n[i]
    ]


@together(expected_calibration_error)
def _calibration_errors(stack: Stack) -> Columns | None:
    if stack.flat.targets is None:
        return None
    _, confidence, right, bins = _binned(stack.flat)
    gap = np.bincount(stack.cell * BINS + bins, right - confidence, stack.cells * BINS).reshape(stack.cells, BINS)
    value = np.abs(gap).sum(1) / stack.samples
    return {"cell": stack.every, "measure": "expected_calibration_error", "n": stack.samples, "value": value}


@measure(bounds=(0, 1))
def reliability(outputs: Outputs) -> Rows:
    """Accuracy in each bin of confidence that has samples, over the whole cell; `confidence` is the mean in the bin.

    Of several epochs, the last.
    """
    outputs = last_epoch(outputs)
    if not _applies(outputs):
        return []
    context = common_context(outputs.groups[0])
    _, confidence, correct, place = _binned(outputs)
    n = np.bincount(place, minlength=BINS)
    right = np.bincount(place, correct, BINS)
    total = np.bincount(place, confidence, BINS)
    return [
        context | share_row("reliability", right[i], n[i]) | {"confidence": float(total[i] / n[i])}
        for i in np.flatnonzero(n)
    ]


@together(reliability)
def _reliabilities(stack: Stack) -> Columns | None:
    if stack.flat.targets is None:
        return None
    _, confidence, correct, bins = _binned(stack.flat)
    place = stack.cell * BINS + bins
    n = np.bincount(place)
    filled = np.flatnonzero(n)
    right, total, n = np.bincount(place, correct)[filled], np.bincount(place, confidence)[filled], n[filled]
    return {"cell": filled // BINS, "measure": "reliability"} | share_values(right, n) | {"confidence": total / n}


@measure(bounds=(0, 2), higher_is_better=False)
def brier_score(outputs: Outputs) -> Rows:
    """Mean over samples of Σ over classes of (probability − 1 or 0)²."""
    if not _applies(outputs):
        return []
    column = outputs.targets
    if outputs.accepted is not None:
        if (outputs.accepted.sum(1) > 1).any():
            return []
        column = outputs.accepted.argmax(1)[outputs.targets]
    return _means("brier_score", outputs, _squared_errors(outputs, column), 2.0)


@together(brier_score)
def _brier_scores(stack: Stack) -> Columns | None:
    column = stack.flat.targets
    return None if column is None else _stack_means("brier_score", stack, _squared_errors(stack.flat, column), 2.0)


def _squared_errors(outputs: Outputs, column: np.ndarray | None) -> np.ndarray:
    """Return the score of each sample, of whose columns one is right."""
    score = np.empty(len(outputs))
    for rows, logs in log_probabilities(outputs):
        probabilities = np.exp(logs, out=logs)
        own = probabilities[np.arange(len(logs)), column[rows]]  # type: ignore[index]
        score[rows] = np.maximum((probabilities**2).sum(1) - 2 * own + 1, 0)
    return score


@measure(bounds=(0, float("inf")), higher_is_better=False)
def negative_log_likelihood(outputs: Outputs) -> Rows:
    """Mean over samples of −log of the probability given to what is right; of one sample at most 744.4."""
    if not _applies(outputs):
        return []
    return _means("negative_log_likelihood", outputs, _surprises(outputs), float("inf"))


@together(negative_log_likelihood)
def _negative_log_likelihoods(stack: Stack) -> Columns | None:
    if stack.flat.targets is None:
        return None
    return _stack_means("negative_log_likelihood", stack, _surprises(stack.flat), float("inf"))


def _surprises(outputs: Outputs) -> np.ndarray:
    """Return the negative log-likelihood of each sample."""
    likelihood = np.empty(len(outputs))
    for rows, logs in log_probabilities(outputs):
        targets = outputs.targets[rows]  # type: ignore[index]
        if outputs.accepted is None:
            likelihood[rows] = logs[np.arange(len(logs)), targets]
        else:
            likelihood[rows] = _accepted_together(logs, outputs.accepted[targets])
    surprise: np.ndarray = np.maximum(-np.maximum(likelihood, LEAST), 0)
    return surprise


def _applies(outputs: Outputs) -> bool:
    return "logits" in outputs.arrays and outputs.targets is not None and len(outputs) > 0


def _confidence(outputs: Outputs) -> np.ndarray:
    """Return `(samples,)`, the largest probability."""
    blocks = (logs.max(1).astype(np.float64) for _, logs in log_probabilities(outputs))
    return outputs.share("confidence", lambda: np.exp(np.concatenate(list(blocks))))


def _binned(outputs: Outputs) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which samples have a confidence, and of each of them that, whether it is right, and its bin."""

    def work() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        confidence = _confidence(outputs)
        known = np.flatnonzero(~np.isnan(confidence))
        return known, confidence[known], outputs.correct()[known], _bins(confidence[known])

    return outputs.share("binned", work)


def _bins(confidence: np.ndarray) -> np.ndarray:
    """Bin i holds confidences above i/15 up to (i + 1)/15."""
    places = np.ceil(confidence * BINS).astype(np.int64) - 1
    return np.minimum(np.maximum(places, 0), BINS - 1)


def _accepted_together(logs: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    """The log of the summed probability of accepted columns; the largest is taken out, so that nothing vanishes."""
    inside = np.where(accepted, logs, -np.inf)
    largest = np.maximum(inside.max(1, keepdims=True), LEAST)
    with np.errstate(divide="ignore"):
        return (largest + np.log(np.exp(inside - largest).sum(1, keepdims=True)))[:, 0]


def _means(name: str, outputs: Outputs, scores: np.ndarray, highest: float) -> Rows:
    """The mean of each context; from `FEWEST` samples on with its interval, Student's t on the logarithm."""
    contexts, codes = outputs.groups
    known = np.flatnonzero(~np.isnan(scores))
    codes, scores = codes[known], scores[known]
    n = np.bincount(codes, minlength=len(contexts))
    groups = [scores]
    if len(contexts) > 1:
        groups = np.split(scores[np.argsort(codes, kind="stable")], np.cumsum(n)[:-1])
    rows: Rows = []
    for i, context in enumerate(contexts):
        if not n[i]:
            continue
        rows.append(context | {"measure": name, "n": int(n[i])} | _mean(groups[i], highest))
    return rows


def _mean(scores: np.ndarray, highest: float) -> dict[str, float]:
    if len(scores) < FEWEST:
        return {"value": float(np.sort(scores).mean())}  # no sum that depends on the order
    found = mean_of_units(scores, "log")
    ends = {} if np.isnan(found.ends[0]) else {"low": found.low, "high": min(found.high, highest)}
    return {"value": found.value} | ends


def _stack_means(name: str, stack: Stack, scores: np.ndarray, highest: float) -> Columns:
    """The same of each cell of a stack, from the scores of all samples."""
    table = scores.reshape(stack.cells, stack.samples)
    if stack.samples < FEWEST:
        values: Columns = {"value": np.sort(table, 1).mean(1)}
    else:
        rows = [_mean(own, highest) for own in table]
        values = {key: np.array([row.get(key, np.nan) for row in rows]) for key in ("value", "low", "high")}
    return {"cell": stack.every, "measure": name, "n": stack.samples} | values


def log_probabilities(outputs: Outputs) -> Iterator[tuple[slice, np.ndarray]]:
    """Return which rows, and their `(rows, columns)` log-probabilities; NaN where a row has NaN or +∞.

    They are float32, or float64 where the logits are, which may lie outside the range of float32. Where the model's
    classes were restricted, they are conditional on the classes that were kept.
    """
    logits = outputs.logits
    if 0 < logits.size <= AT_ONCE:
        logs = outputs.share("logs", lambda: next(_blocks(logits, len(logits)))[1])
        yield slice(0, len(logits)), logs.copy()  # somebody may write into it
        return
    yield from _blocks(logits, max(AT_ONCE // logits.shape[1], 1))


def _blocks(logits: np.ndarray, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    kind = np.promote_types(logits.dtype, np.float32)
    for start in range(0, len(logits), size):
        rows = slice(start, start + size)
        logs = logits[rows].astype(kind)
        with np.errstate(invalid="ignore"):
            logs -= logs.max(1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(1, keepdims=True))
        yield rows, logs
