"""Estimates: the accuracy of many models on data without labels, by every method, and which method to believe.

Methods that need predictions: agreement on the line (`agreement`). Methods that need logits: those of
`haptera.measures.label_free`, for each model alone. And the mean of all.
None of them can know from the new data how far off it is. Labelled sets of shifted data tell: each method predicts them
as if they had no labels. What it is off there on average, for each model, may be taken away; the method that is, with
that or without, the least off on known sets that are left out in turn is chosen, so that the new data never choose. The
interval of a model is Student's for one more error like those on the known sets, relative to an offset plus the loss of
accuracy that is predicted: exact for shifts of the same kind whose relative errors are normal, and no promise for
another kind. Fewer than four known sets give none.
Cost: that of the methods, once for each known set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from haptera.analyses.trends.agreement import AgreementLine, agreement_line
from haptera.analyses.trends.answers import Answers
from haptera.errors import HapteraError
from haptera.measures.label_free import estimate_all
from haptera.statistics.intervals import LEVEL

AGREEMENT, SIMPLE, MEAN = "agreement on the line", "agreement, ALine-S", "mean of all methods"
FEWEST_SETS = 4
OFFSET = 0.02
"""The least offset: accuracy is not told more exactly than that on any shift."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Accuracies without labels.

    Attributes:
        method: that was chosen.
        corrected: whether what it is off on known sets is taken away.
        frame: one row for each model: `model`, `reference` accuracy, `predicted` with the interval `low` to `high`, and
            `truth`, where there are targets after all; NaN where there is none.
        methods: one row for each method: `method`, `known`, its mean absolute error on known sets, each left out in
            turn; `plain`, the same without taking away what it is off; and `new`, on the new data.
        every: `(models, methods)`, what each method predicts for the new data, before anything is taken away.
        line: the line of agreements.
        sets: how many known sets there are.
    """

    method: str
    corrected: bool
    frame: pd.DataFrame
    methods: pd.DataFrame
    every: pd.DataFrame
    line: AgreementLine
    sets: int


def estimate(reference: Answers, new: Answers) -> tuple[pd.DataFrame, AgreementLine]:
    """What every method predicts, `(models, methods)`, and the line of agreements."""
    accuracy = reference.accuracy
    line = agreement_line(accuracy, reference.predictions, new.predictions)
    columns = {AGREEMENT: line.accuracy, SIMPLE: line.simple}
    if reference.logits is not None and new.logits is not None:
        assert reference.targets is not None
        rows = [estimate_all(ours, reference.targets, theirs) for ours, theirs in _zip(reference, new)]
        columns |= {name: np.array([row[name] for row in rows]) for name in rows[0]}
    frame = pd.DataFrame(columns, index=pd.Index(reference.models, name="model"))
    return frame.assign(**{MEAN: frame.drop(columns=SIMPLE).mean(axis=1)}), line


def known_errors(reference: Answers, known: Sequence[Answers]) -> np.ndarray:
    """`(sets, models, methods)`, what every method predicts for known sets, less their true accuracy."""
    return np.array([estimate(reference, each)[0].to_numpy() - each.accuracy[:, None] for each in known])


def predict(
    reference: Answers, new: Answers, known: Sequence[Answers] = (), errors: np.ndarray | None = None
) -> Predicted:
    """Predict the accuracy of every model on new data.

    Args:
        reference: what the models said on labelled data.
        new: what they said on new data; targets, if it has any, are only compared with.
        known: what they said on labelled sets of shifted data, which choose the method and give the intervals.
        errors: what `known_errors` returns for them, where it is known from before, for the same models.
    """
    reference, new, *known = _common([reference, new, *known])
    every, line = estimate(reference, new)
    truth = new.accuracy if new.targets is not None else np.full(len(new.models), np.nan)
    errors = known_errors(reference, known) if errors is None else errors
    errors = errors.reshape(len(known), *every.shape)
    sizes, size = _scales(reference.accuracy, errors, [side.accuracy for side in known], every.to_numpy())
    methods = _judge(every, errors / sizes, sizes, truth)
    chosen = methods.iloc[int(methods[["known", "plain"]].min(axis=1).argmin())] if len(known) > 1 else None
    method = AGREEMENT if chosen is None else str(chosen["method"])
    corrected = chosen is not None and bool(chosen["known"] <= chosen["plain"])
    own, scales, scale = (part[..., list(every).index(method)] for part in (errors, sizes, size))
    predicted, low, high = student_prediction(every[method].to_numpy(), own, scales, scale, corrected)
    ends = {"predicted": predicted, "low": low, "high": high}
    frame = pd.DataFrame({"model": new.models, "reference": reference.accuracy} | ends | {"truth": truth})
    frame = frame.sort_values("predicted", ascending=False, kind="stable", ignore_index=True)
    return Predicted(method, corrected, frame, methods, every, line, len(known))


def student_prediction(
    values: np.ndarray, errors: np.ndarray, scales: np.ndarray, scale: np.ndarray, corrected: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, perhaps less what they were off on average, with the interval for one more error like these.

    Args:
        values: `(models,)`, predicted.
        errors: `(sets, models)`, predicted less true on known sets.
        scales: `(sets, models)`, in units of which errors are alike: larger where more accuracy is lost.
        scale: `(models,)`, the same for the new data.
        corrected: whether the mean error is taken away; else errors are taken to be around 0.

    Returns:
        Values within 0 and 1, and both ends, which are NaN for fewer than four sets.
    """
    sets, unknown = len(errors), np.full(len(values), np.nan)
    relative = errors / scales
    middle = values - scale * relative.mean(0) if corrected and sets > 1 else values
    if sets < FEWEST_SETS:
        return np.clip(middle, 0, 1), unknown, unknown
    freedom = sets - 1 if corrected else sets
    spread = relative.std(0, ddof=1) * sqrt(1 + 1 / sets) if corrected else np.sqrt(np.mean(relative**2, axis=0))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * spread * scale
    return np.clip(middle, 0, 1), np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def _scales(
    reference: np.ndarray, errors: np.ndarray, truths: Sequence[np.ndarray], every: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """An offset plus the predicted loss of accuracy, for known sets and for the new one; the offset is its median."""
    predicted = errors + np.reshape(truths, (len(errors), len(reference), 1))
    lost, new = (np.maximum(reference[:, None] - part, 0.0) for part in (predicted, every))
    offset = np.maximum(np.median(lost, axis=(0, 1)) if len(lost) else 0.0, OFFSET)
    return offset + lost, offset + new


def _judge(every: pd.DataFrame, relative: np.ndarray, scales: np.ndarray, truth: np.ndarray) -> pd.DataFrame:
    """One row for each method, the one that is least off on known sets first."""
    rows, sets = [], len(relative)
    for place, name in enumerate(every):
        own, scale = relative[..., place], scales[..., place]
        left_out = scale * sets / (sets - 1) * (own - own.mean(0)) if sets > 1 else np.full((1, len(truth)), np.nan)
        rows.append(
            {"method": name, "known": float(np.abs(left_out).mean())}
            | {"plain": float(np.abs(scale * own).mean()) if sets else np.nan}
            | {"new": float(np.abs(every[name].to_numpy() - truth).mean())}
        )
    return pd.DataFrame(rows).sort_values("known", kind="stable", ignore_index=True)


def _common(sides: list[Answers]) -> list[Answers]:
    """The same models in the same order."""
    both = [name for name in sides[0].models if all(name in side.models for side in sides)]
    if len(both) < 3:
        raise HapteraError(
            f"{' and '.join(side.source for side in sides)} have {len(both)} models in common; at least three were "
            "expected"
        )
    return [side.only(both) for side in sides]


def _zip(reference: Answers, new: Answers) -> list[tuple[np.ndarray, np.ndarray]]:
    assert reference.logits is not None
    assert new.logits is not None
    return list(zip(reference.logits, new.logits, strict=True))
