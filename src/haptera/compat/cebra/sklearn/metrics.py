"""Metrics under the names of `cebra.sklearn.metrics`: loss, goodness of fit, consistency.

Different from that package: labels of consistency may have several columns, an angle is not told from a number, and a
bin that is empty everywhere is left out; the loss of one session of a model of several is compared with chance for one
session, which is what it was computed for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from haptera.analyses.embedding.consistency import BINS, consistency
from haptera.compat.cebra.arguments import translate
from haptera.compat.cebra.estimator import CEBRA, array, kinds
from haptera.contrastive.inputs import Inputs, is_several
from haptera.contrastive.loss import in_bits
from haptera.contrastive.modes import Mode
from haptera.errors import HapteraError
from haptera.recordings.label import Label

BETWEEN = ("datasets", "runs")


def infonce_loss(
    cebra_model: CEBRA,
    X: Any,
    *y: Any,
    session_id: int | None = None,
    num_batches: int = 500,
    correct_by_batchsize: bool = False,
) -> float:
    """Return the mean loss of batches of pairs of one session.

    Args:
        cebra_model: a fitted model.
        X: `(samples, channels)`.
        *y: labels, as in `fit`.
        session_id: which session it is, if there are several.
        num_batches: that are drawn.
        correct_by_batchsize: take the loss of a constant embedding away.
    """
    nats, chance = _fit_of(cebra_model, X, y, session_id, num_batches)
    return nats if correct_by_batchsize else nats + chance


def goodness_of_fit_score(
    cebra_model: CEBRA, X: Any, *y: Any, session_id: int | None = None, num_batches: int = 500
) -> float:
    """Return the goodness of fit of one session in bits: 0 for a constant embedding, more is better."""
    return in_bits(_fit_of(cebra_model, X, y, session_id, num_batches)[0])


def goodness_of_fit_history(model: CEBRA) -> np.ndarray:
    """Return the goodness of fit of every step of training, in bits."""
    return -model.embedding_.goodness_of_fit_history_ / np.log(2)


def infonce_to_goodness_of_fit(
    infonce: Any, model: CEBRA | None = None, batch_size: int | None = None, num_sessions: int | None = None
) -> Any:
    """Return a loss as bits above a constant embedding: by a model, or by its batch size and number of sessions."""
    if model is not None:
        if batch_size is not None or num_sessions is not None:
            raise HapteraError("batch_size and num_sessions are those of the model; leave them out")
        batch_size, num_sessions = model.batch_size, model.num_sessions_ or 1
    if batch_size is None or num_sessions is None:
        raise HapteraError(
            f"batch_size is {batch_size} and num_sessions {num_sessions}; whole numbers were expected, or a model with "
            "a batch size"
        )
    return (np.log(batch_size * num_sessions) - infonce) / np.log(2)


def consistency_score(
    embeddings: Sequence[Any],
    between: str | None = None,
    labels: Sequence[Any] | None = None,
    dataset_ids: Sequence[Any] | None = None,
    num_discretization_bins: int = BINS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return R² of linear maps between embeddings, the pairs they belong to, and what was compared.

    Args:
        embeddings: `(samples, dimensions)` each.
        between: `runs`, of the same samples, or `datasets`, aligned by labels.
        labels: of each embedding, for `datasets`.
        dataset_ids: to which data set each embedding belongs; pairs of the same one are averaged.
        num_discretization_bins: of a continuous label.

    Returns:
        Scores, one for each ordered pair; the pairs; the ids.
    """
    if between not in BETWEEN:
        raise HapteraError(f"between is {between!r}; {' or '.join(map(repr, BETWEEN))} was expected")
    points = {str(number): array(one) for number, one in enumerate(embeddings)}
    if between == "runs":
        if labels is not None or dataset_ids is not None:
            raise HapteraError("labels or dataset_ids were given, and runs share their samples; leave them out")
        ids, placed = np.arange(len(points)), None
    else:
        if labels is None or len(labels) != len(points):
            raise HapteraError(f"{len(labels or ())} labels were given; one for each of {len(points)} was expected")
        ids = np.arange(len(points)) if dataset_ids is None else np.asarray(dataset_ids)
        if len(ids) != len(points) or len(set(ids.tolist())) < 2:
            raise HapteraError(f"dataset_ids is {list(ids)}; one for each embedding, of two sets or more, was expected")
        placed = {name: [_label(one)] for name, one in zip(points, labels, strict=True)}
    table = consistency(points, placed, bins=num_discretization_bins)
    pairs = [
        (ids[int(source)], ids[int(target)]) for source, target in zip(table["source"], table["target"], strict=True)
    ]
    means: dict[tuple[Any, Any], list[float]] = {}
    for pair, value in zip(pairs, table["value"], strict=True):
        if pair[0] != pair[1]:
            means.setdefault(pair, []).append(float(value))
    return np.array([np.mean(some) for some in means.values()]), np.array(list(means)), ids


def _label(values: Any) -> Label:
    values = array(values)
    return Label.of(values, "continuous" if values.dtype.kind == "f" else "discrete")


def _fit_of(model: CEBRA, X: Any, y: Sequence[Any], session_id: int | None, batches: int) -> tuple[float, float]:
    """Return the goodness of fit in nats, and the loss of a constant embedding."""
    if is_several(X):
        raise HapteraError(f"X has {len(X)} sessions; one was expected, with its session_id")
    labels = [array(one) for one in y]
    use_labels = translate(model.get_params(deep=False), kinds(labels)).use_labels
    embedding = model.embedding_
    session = embedding.model_.session(session_id)
    inputs = Inputs.read(embedding, model.channels(X, session), labels if use_labels else [])
    mode, pairs = Mode.choose(inputs.context, embedding.get_params(deep=False)), model.batch_size or inputs.lengths[0]
    nats = embedding.model_.goodness_of_fit(inputs, mode, pairs, [session], batches)
    return nats, float(np.log(pairs)) * len(embedding.model_.losses)
