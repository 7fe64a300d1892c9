"""What an embedding of a recording tells, in sentences with their numbers; errors of angles are in degrees."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.analyses.embedding.comparison import (
    CONSTANT,
    EMBEDDING,
    SHUFFLED_DECODER,
    SHUFFLED_TRAINING,
    WINDOWS,
    value_of,
)
from haptera.analyses.embedding.numbers import MAIN, beaten_by, fit_numbers, label_numbers, recording_numbers
from haptera.recordings.label import Label
from haptera.report.section import Finding

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

UNITS = {"angle": " deg median", "continuous": " R²", "discrete": " right"}
SEE_EVERYTHING = ("tsne", "umap")
"""Baselines without a map for new samples."""
SHAPES: dict[tuple[int, ...], str] = {
    (1, 1, 0): "one ring",
    (1, 0, 1): "a sphere",
    (1, 2, 1): "a torus",
    (1, 0, 0): "no ring, no hollow",
}
DEFINITIONS = {
    "goodness of fit": "the loss minus that of a constant embedding, nats; in bits with the sign turned. 0 is chance, "
    "and it cannot be below minus the divergence between pairs and independent samples",
    "held out": "the last part of the recording; no encoder and no decoder has seen it",
    "consistency": "R² of the best affine map from the embedding of one seed to that of another, on held-out samples",
    "shuffled decoder": "the embedding of true labels, read by a decoder whose labels are in a random order: chance",
    "shuffled training": "an encoder that learnt labels in a random order, read by a decoder with true ones",
    "constant": "the best that can be said without looking at the signal",
    "rings and hollows": "classes of persistent cohomology that live longer than any of shuffled fits",
}
QUESTIONS = {
    "mode": "How were pairs drawn?",
    "fit": "Is there structure?",
    "decoding": "What can be read?",
    "folds": "And of whole trials that were held out?",
    "baselines": "Is something simpler better?",
    "topology": "What shape is it?",
}
PER_LABEL = ("decoding", "shuffled", "windows", "baselines", "beaten_by", "folds")


def headline(embedding: "Embedding") -> str:
    """Return how large the recording is, and what its labels are."""
    whole = embedding.parts.whole
    step = f" of {1000 * whole.step:g} ms" if whole.step else ""
    labels = [f"{name} is {_described(whole.label(name))}" for name in embedding.plan.labels]
    return "; ".join([f"{whole.signal().shape[1]} {whole.channel_noun()}, {len(whole):,} samples{step}", *labels])


def findings(embedding: "Embedding") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    names, topology = embedding.plan.labels, None
    labels = {name: label_numbers(embedding, name) for name in names}
    first = next(iter(labels.values()), dict.fromkeys(PER_LABEL)) | {"labels": labels}
    if embedding.betti is not None:
        topology = {"betti": list(embedding.betti), "ring_over_shuffled": embedding.ring_ratio}
    agreement = embedding.consistency["value"]
    fit = fit_numbers(embedding.goodness_of_fit) | {
        "consistency": None if agreement.empty else {"mean": agreement.mean(), "min": agreement.min()},
        **({} if topology else {"topology": None}),
        **({} if names else first),
    }
    return [
        *_found("mode", [embedding.mode], recording_numbers(embedding)),
        *_found("fit", [_fit(embedding)], fit),
        *_found("decoding", [_decoding(embedding, label) for label in names], first),
        *_found("folds", [_folds(embedding, label) for label in names if len(embedding.folds)]),
        *_found("baselines", [text for label in names if (text := _better(embedding, label))]),
        *_found("topology", [_topology(embedding)] if topology else [], {"topology": topology}),
    ]


def _found(word: str, sentences: Iterable[str], numbers: Mapping[str, Any] | None = None) -> list[Finding]:
    """Return a finding for each sentence; those after the first go on where it ended."""
    return [
        Finding("", "", sentence) if place else Finding(word, QUESTIONS[word], sentence, numbers or {})
        for place, sentence in enumerate(sentences)
    ]


def _described(label: Label) -> str:
    if label.kind == "discrete":
        return f"discrete, {len(label.classes)} classes"
    if label.kind == "angle":
        return "an angle"
    return "continuous" + (f", {label.values.shape[1]} dimensions" if label.values.ndim > 1 else "")


def _fit(embedding: "Embedding") -> str:
    held = embedding.goodness_of_fit[embedding.goodness_of_fit["part"] == "held out"]
    bits = held[~held["shuffled"]]["bits"].mean()
    text = f"{abs(bits):.2f} bits {'above' if bits >= 0 else 'below'} chance on held-out samples"
    if not np.isfinite(bits):
        text = "not known on held-out samples, where a label is always the same"
    elif embedding.shuffled:
        null = held[held["shuffled"]]["bits"].mean()
        by_time, model = embedding.plan.by == "time", embedding.model
        # The windows of a pair in time may share samples, so that they are alike whatever is in them.
        overlap = by_time and int(np.min(model.time_offsets)) < len(model.offset_)
        what = f"shuffled {'samples' if by_time else 'labels'} {0.0 if abs(null) < 0.005 else null:.2f}"
        text += f" ({what}{', whose windows overlap' if overlap else ''})"
    text += f"; {len(embedding.fits)} seed{'s' * (len(embedding.fits) > 1)}"
    if len(embedding.consistency):
        text += f", consistency {embedding.consistency['value'].mean():.2f}"
    return text


def _decoding(embedding: "Embedding", label: str) -> str:
    kind = embedding.parts.whole.label(label).kind
    rows = embedding.decoding[embedding.decoding["label"] == label]
    bayesian = [name for name in rows["decoder"].unique() if str(name).startswith("bayesian")]

    def said(what: str, decoder: str) -> str | None:
        value = value_of(rows, what=what, decoder=decoder, measure=MAIN[kind])
        return None if value is None else _shown(value, kind)

    own = f"{said(EMBEDDING, 'knn')}{UNITS[kind]} on the last {embedding.plan.held:.0%}"
    others = {
        "ridge on the same windows": (WINDOWS, "ridge"),
        "kNN": (WINDOWS, "knn"),
        "Bayesian": (WINDOWS, bayesian[-1] if bayesian else ""),  # with the widest window
        "shuffled": (SHUFFLED_DECODER, "knn"),
        "shuffled in training": (SHUFFLED_TRAINING, "knn"),
        "constant": (CONSTANT, "constant"),
    }
    known = [f"{name} {value}" for name, where in others.items() if (value := said(*where)) is not None]
    return ", ".join([f"{label} {own}" if len(embedding.plan.labels) > 1 else own, *known])


def _folds(embedding: "Embedding", label: str) -> str:
    """Return the mean over folds of whole trials, and the range."""
    kind = embedding.parts.whole.label(label).kind
    rows = embedding.folds[(embedding.folds["label"] == label) & (embedding.folds["measure"] == MAIN[kind])]
    own = rows.loc[(rows["what"] == EMBEDDING) & (rows["decoder"] == "knn"), "value"]
    text = f"{label} {_shown(own.mean(), kind)}{UNITS[kind]} over {len(own)} folds of whole trials"
    text += f" ({_shown(own.min(), kind)} to {_shown(own.max(), kind)})"
    for name, what, decoder in (("ridge on the same windows", WINDOWS, "ridge"), (CONSTANT, CONSTANT, CONSTANT)):
        value = value_of(rows, what=what, decoder=decoder)
        text += "" if value is None else f", {name} {_shown(value, kind)}"
    return text


def _better(embedding: "Embedding", label: str) -> str:
    """Return which baselines beat the embedding; empty if none does."""
    better = beaten_by(embedding, label)
    if not better:
        return ""
    kind = embedding.parts.whole.label(label).kind
    names = ", ".join(f"{name} {_shown(value, kind)}" for name, value in better.items())
    own = value_of(embedding.decoding, what=EMBEDDING, label=label, decoder="knn", measure=MAIN[kind])
    assert own is not None
    text = f"{label} is read better from {names} than from the embedding, {_shown(own, kind)}{UNITS[kind]}"
    seen = [name for name in better if name in SEE_EVERYTHING]
    return text + f"; {' and '.join(seen)} saw the held-out samples" * bool(seen)


def _shown(value: float, kind: str) -> str:
    if kind == "angle":
        return f"{value:.1f}" if value < 20 else f"{value:.0f}"
    return f"{value:.1%}" if kind == "discrete" else f"{value:.2f}"


def _topology(embedding: "Embedding") -> str:
    assert embedding.betti is not None
    count = len(embedding.shuffled)
    text = f"{SHAPES.get(embedding.betti, 'parts, rings and hollows')} ({', '.join(map(str, embedding.betti))})"
    if embedding.ring_ratio is not None and embedding.betti[1]:
        text += f", {embedding.ring_ratio:.1f} x the longest bar of {count} shuffled fit{'s' * (count > 1)}"
    return text
