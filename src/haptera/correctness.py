"""Correctness: whether an answer is right, class mappings included; no other module decides it.

`Outputs` asks here, and so does all code that has the logits of a model, the targets of a data set and no Outputs, or
that changes a few logits and keeps count of who leads. An answer is right where a class that the data set's class
accepts has the largest logit, or is among the k largest; ties go to the lower index, a logit that is NaN makes the
answer wrong.
"""

from typing import TYPE_CHECKING

import numpy as np

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.data import Classes


LABELS = 50
"""Fewer labels than these may well leave most of a model's classes out."""


def correct(logits: np.ndarray, targets: np.ndarray, classes: "Classes | None" = None, k: int = 1) -> np.ndarray:
    """Say of each answer whether it is right: `(samples,)`.

    Args:
        logits: `(samples, outputs)`, all outputs of the model.
        targets: `(samples,)`, classes of the data set.
        classes: how these relate to the model's; None if target i is output i.
        k: how many of the largest logits count as the answer.

    >>> correct(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1])).tolist()
    [True, False]
    """
    outputs = logits.shape[1]
    check_classes(classes, outputs)
    check_targets(targets, outputs, classes)
    if classes is None:
        return ranks(logits, targets) < k
    return ranks(logits[:, classes.columns(outputs)], targets, classes.matrix(outputs)) < k


def ranks(logits: np.ndarray, targets: np.ndarray, accepted: np.ndarray | None = None) -> np.ndarray:
    """Count the columns of the logits that come before the best accepted one, `(samples,)`; all, where one is NaN.

    Args:
        logits: `(samples, columns)`.
        targets: `(samples,)`.
        accepted: `(classes of the data, columns)`; None if target i is column i.
    """
    logits = logits.astype(np.promote_types(logits.dtype, np.float32), copy=False)
    column = targets if accepted is None else np.argmax(np.where(accepted[targets], logits, -np.inf), axis=1)
    own = logits[np.arange(len(logits)), column][:, None]
    rank = beats(logits, np.arange(logits.shape[1]), own, column[:, None]).sum(1)
    return np.where(np.isnan(logits).any(1), logits.shape[1], rank)


def leaders(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns with the largest and the second largest logit of every sample: `(samples,)` each."""
    first = logits.argmax(1)
    if logits.shape[1] == 1:
        raise HapteraError("logits have one class; at least two were expected")
    masked = logits.copy()
    masked[np.arange(len(logits)), first] = -np.inf
    return first, masked.argmax(1)


def beats(value: np.ndarray, place: np.ndarray, other: np.ndarray, other_place: np.ndarray) -> np.ndarray:
    """Say whether a logit leads over another one, given the column of each; ties go to the lower column."""
    result: np.ndarray = (value > other) | ((value == other) & (place < other_place))
    return result


def among(best: np.ndarray, targets: np.ndarray, accepted: np.ndarray | None = None) -> np.ndarray:
    """Say whether an accepted column is among given ones, `(samples, k)`; -1 stands for none."""
    if accepted is None:
        return (best == targets[:, None]).any(1)
    inside = (best >= 0) & (best < accepted.shape[1])
    return (accepted[targets[:, None], np.where(inside, best, 0)] & inside).any(1)


def check_classes(classes: "Classes | None", outputs: int, names: tuple[str, ...] | None = None) -> None:
    """Refuse a mapping that names classes which the model does not have, and other classes without a mapping.

    Args:
        classes: how the data set's classes relate to the model's.
        outputs: how many the model has.
        names: those of the data set's classes, where it has labels and names.
    """
    if classes is None and names is not None and len(names) != outputs:
        first = ", ".join(repr(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
        raise HapteraError(
            f"the data has {len(names):,} classes ({first}) and the model {outputs:,} outputs, so that class i of the "
            "data cannot be output i; give a mapping (--mapping FILE, or mapping in the study file): a CSV with the "
            f"header class,accepted and a line for each class, such as '{names[0]},{outputs - 1}' if output "
            f"{outputs - 1} is right for {names[0]!r}"
        )
    largest = -1 if classes is None else max(max(group) for group in classes.accepted)
    if largest >= outputs:
        raise HapteraError(
            f"the mapping names the model's class {largest}; the model has {outputs} (0 to {outputs - 1})"
        )


def few_labels(targets: np.ndarray, outputs: int, classes: "Classes | None", names: tuple[str, ...] | None) -> str:
    """Return a remark on labels without names that use less than half of a model's outputs; empty if they do not.

    >>> few_labels(np.arange(60) % 6, 1000, None, None)
    'labels go from 0 to 5 and the model has 1,000 outputs; if label i is not output i, give a mapping'
    """
    most = int(targets.max(initial=0))
    if classes is not None or names is not None or len(targets) < LABELS or 2 * (most + 1) > outputs:
        return ""
    return (
        f"labels go from 0 to {most} and the model has {outputs:,} outputs; if label i is not output i, give a mapping"
    )


def check_targets(targets: np.ndarray, outputs: int, classes: "Classes | None") -> None:
    """Refuse labels that no class of the model answers to."""
    valid = outputs if classes is None else len(classes.accepted)
    if len(targets) and not 0 <= targets.min() <= targets.max() < valid:
        wrong = targets[(targets < 0) | (targets >= valid)][0]
        raise HapteraError(
            f"label {wrong} is out of range: the model has {valid} classes (0 to {valid - 1}); "
            "a data set with other classes needs a mapping"
        )
