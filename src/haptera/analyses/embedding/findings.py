"""What an embedding of a recording tells, in sentences with their numbers; errors of angles are in degrees."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.baselines import BASELINES
from haptera.analyses.embedding.comparison import (
    CONSTANT,
    EMBEDDING,
    OF_SIGNAL,
    SHUFFLED_DECODER,
    SHUFFLED_TRAINING,
    WINDOWS,
    Reading,
    value_of,
)
from haptera.recordings.label import Label
from haptera.report.section import Finding, answer, lead
from haptera.words import count

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

UNITS = {"angle": " deg median", "continuous": " R²", "discrete": " right"}
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
    labels = [f"{name} is {describe_label(whole.label(name))}" for name in embedding.plan.labels]
    return "; ".join([f"{whole.signal().shape[1]} {whole.channel_noun()}, {len(whole):,} samples{step}", *labels])


def describe_label(label: Label) -> str:
    """Return the kind of a label in words."""
    if label.kind == "discrete":
        return f"discrete, {len(label.classes)} classes"
    if label.kind == "angle":
        return "an angle"
    return "continuous" + (f", {label.values.shape[1]} dimensions" if label.values.ndim > 1 else "")


def findings(embedding: "Embedding") -> list[Finding]:
    """Return how pairs were drawn, whether there is structure, what can be read from it, and what shape it has."""
    readings = [embedding.reading(name) for name in embedding.plan.labels]
    labels = {each.name: each.numbers() for each in readings}
    first = next(iter(labels.values()), dict.fromkeys(PER_LABEL)) | {"labels": labels}
    topology = None
    if embedding.betti is not None:
        topology = {"betti": list(embedding.betti), "ring_over_shuffled": embedding.ring_ratio}
    fit = _fit_numbers(embedding) | ({} if topology else {"topology": None}) | ({} if readings else first)
    answers: dict[str, tuple[list[str], dict[str, Any]]] = {
        "mode": ([embedding.mode], _recording_numbers(embedding)),
        "fit": ([_fit(embedding)], fit),
        "decoding": ([_decoding(each, embedding.plan.held, len(readings) > 1) for each in readings], first),
        "folds": ([_folds(each) for each in readings if len(each.folds)], {}),
        "baselines": ([text for each in readings if (text := _better(each))], {}),
        "topology": ([_shape(embedding)] if topology else [], {"topology": topology}),
    }
    every = [(word, sentences, numbers) for word, (sentences, numbers) in answers.items() if sentences]
    told = [each for word, sentences, numbers in every for each in answer(word, QUESTIONS[word], *sentences, **numbers)]
    return lead(told, _leads(embedding, readings))


def _leads(embedding: "Embedding", readings: Sequence[Reading]) -> dict[str, tuple[str, str]]:
    """Return the number of each answer and where the page shows it."""
    bits = part_means(embedding.goodness_of_fit)["held_out"]["bits"]
    leads = {"fit": (f"{bits:.2f} bits" if np.isfinite(bits) else "", "Goodness of fit over training")}
    leads |= {"folds": ("", "Folds of whole trials"), "baselines": ("", "All scores")}
    if embedding.betti is not None:
        leads["topology"] = (SHAPES.get(embedding.betti, ""), "Births and deaths")
    for first in readings[:1]:
        number = f"{_text(first.value(EMBEDDING), first)}{UNITS[first.kind]}"
        leads["decoding"] = (number, f"Decoding of {first.name}")
    return leads


def _decoding(reading: Reading, held: float, several: bool) -> str:
    """Return the score of the embedding, and those of everything beside it."""
    others = {
        "ridge on the same windows": reading.value(WINDOWS, "ridge"),
        "kNN": reading.value(WINDOWS),
        "Bayesian": reading.of_signal.get(OF_SIGNAL["bayesian"]),
        "GLM": reading.value(WINDOWS, "glm"),
        "shuffled": reading.value(SHUFFLED_DECODER),
        "shuffled in training": reading.value(SHUFFLED_TRAINING),
        "constant": reading.value(CONSTANT, CONSTANT),
    }
    own = f"{_text(reading.value(EMBEDDING), reading)}{UNITS[reading.kind]} on the last {held:.0%}"
    known = [f"{name} {_text(value, reading)}" for name, value in others.items() if value is not None]
    text = ", ".join([f"{reading.name} {own}" if several else own, *known])
    return text + "; the embedding is no better than the constant guess" * reading.is_a_guess


def _folds(reading: Reading) -> str:
    """Return the mean over folds of whole trials, and the range."""
    own = reading.fold_values
    mean, low, high = (_text(value, reading) for value in (own.mean(), own.min(), own.max()))
    text = f"{reading.name} {mean}{UNITS[reading.kind]} over {len(own)} folds of whole trials ({low} to {high})"
    for name, what, decoder in (("ridge on the same windows", WINDOWS, "ridge"), (CONSTANT, CONSTANT, CONSTANT)):
        value = value_of(reading.folds, what=what, decoder=decoder)
        text += "" if value is None else f", {name} {_text(value, reading)}"
    return text


def _better(reading: Reading) -> str:
    """Return what reads the label better than the embedding; empty if nothing does."""
    if not reading.better:
        return ""
    names = ", ".join(f"{name} {_text(value, reading)}" for name, value in reading.better.items())
    own = f"{_text(reading.value(EMBEDDING), reading)}{UNITS[reading.kind]}"
    seen = " and ".join(name for name in reading.better if name in BASELINES and BASELINES[name].sees_everything)
    text = f"{reading.name} is read better from {names} than from the embedding, {own}"
    return text + f"; {seen} saw the held-out samples" * bool(seen)


def _text(value: float | None, reading: Reading) -> str:
    return score_text(value, reading.kind)


def score_text(value: float | None, kind: str) -> str:
    """Return a score as sentences have it: degrees of an angle, R² of a number, per cent of classes."""
    if value is None:
        return "nothing"
    if kind == "angle":
        return f"{value:.1f}" if value < 20 else f"{value:.0f}"
    return f"{value:.1%}" if kind == "discrete" else f"{value:.2f}"


def _recording_numbers(embedding: "Embedding") -> dict[str, Any]:
    """Return the size of the recording and of its parts, and how it was read."""
    whole, parts = embedding.parts.whole, embedding.parts.names
    recording = {
        "source": whole.source,
        "signal": next(iter(whole.signals)),
        "channels": whole.signal().shape[1],
        "samples": len(whole),
        "step": whole.step,
        "labels": {name: whole.label(name).kind for name in embedding.plan.labels},
        "parts": {name: int((parts == name).sum()) for name in ("train", "validation", "held out")},
    }
    return {
        "recording": recording,
        "mode": embedding.mode,
        "time_offsets": np.atleast_1d(embedding.model.time_offsets).tolist(),
        "seeds": [each.seed for each in embedding.fits],
        "shuffles": len(embedding.shuffled),
    } | embedding.asked


def _fit_numbers(embedding: "Embedding") -> dict[str, Any]:
    """Return the goodness of fit of each part, true and shuffled, and the consistency of runs; means over seeds."""
    runs = embedding.consistency["value"]
    return {
        "fit": part_means(embedding.goodness_of_fit),
        "consistency": None if runs.empty else {"mean": runs.mean(), "min": runs.min()},
    }


def part_means(fits: pd.DataFrame) -> dict[str, Any]:
    """Return the mean goodness of fit of each part, true and shuffled, in nats and bits."""
    names: pd.Series = fits["part"].str.replace(" ", "_") + np.where(fits["shuffled"], "_shuffled", "")
    return {str(name): row for name, row in fits.groupby(names)[["nats", "bits"]].mean().to_dict("index").items()}


def fit_text(fits: pd.DataFrame, *, by_time: bool, overlap: bool = False) -> str:
    """Return how far fits are above chance on held-out samples, beside shuffled ones, and how many there are.

    Args:
        fits: `seed`, `shuffled`, `part`, `nats`, `bits`.
        by_time: whether samples were shuffled, for want of labels.
        overlap: whether the windows of a pair share samples, so that they are alike whatever is in them.
    """
    means, seeds = part_means(fits), fits[~fits["shuffled"]]["seed"].nunique()
    bits = means["held_out"]["bits"]
    text = f"{abs(bits):.2f} bits {'above' if bits >= 0 else 'below'} chance on held-out samples"
    if not np.isfinite(bits):
        text = "not known on held-out samples, where a label is always the same"
    elif "held_out_shuffled" in means:
        null = means["held_out_shuffled"]["bits"]
        what = f"shuffled {'samples' if by_time else 'labels'} {0.0 if abs(null) < 0.005 else null:.2f}"
        text += f" ({what}{', whose windows overlap' if overlap else ''})"
    return text + f"; {count(seeds, 'seed')}"


def _fit(embedding: "Embedding") -> str:
    by_time, model = embedding.plan.by == "time", embedding.model
    overlap = by_time and int(np.min(model.time_offsets)) < len(model.offset_)
    text = fit_text(embedding.goodness_of_fit, by_time=by_time, overlap=overlap)
    if len(embedding.consistency):
        text += f", consistency {embedding.consistency['value'].mean():.2f}"
    return text


def _shape(embedding: "Embedding") -> str:
    assert embedding.betti is not None
    shuffled = count(len(embedding.shuffled), "shuffled fit")
    text = f"{SHAPES.get(embedding.betti, 'parts, rings and hollows')} ({', '.join(map(str, embedding.betti))})"
    if embedding.ring_ratio is not None and embedding.betti[1]:
        text += f", {embedding.ring_ratio:.1f} x the longest bar of {shuffled}"
    size, own = embedding.model.output_dimension, {2: "ring", 3: "sphere"}
    if embedding.model.distance == "cosine" and size in own and embedding.betti[size - 1]:
        text += f"; {size} normalised dimensions are a {own[size]} by themselves, so more of them have to show it"
    return text
