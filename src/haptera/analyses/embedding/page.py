"""The page of an embedding: the cloud to turn, loss against its bounds, decoding, consistency, topology, methods."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.analyses.embedding.comparison import summarised
from haptera.analyses.embedding.findings import MAIN
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

POINTS = 3000


def sections(embedding: "Embedding") -> list[Section]:
    """Return every section for which something is known."""
    makers = (cloud_section, fit_section, decoding_section, consistency_section, topology_section, methods_section)
    return [section for make in makers if (section := make(embedding)) is not None]


def cloud_section(embedding: "Embedding") -> Section:
    """Show the embedding, and the baselines, coloured by each label."""
    embeddings = {"contrastive": embedding.embedding} | embedding.baselines
    labels = embedding.plan.labels or ("time",)
    figures = [_cloud(embedding, label, embeddings) for label in labels]
    text = "Drag to turn it, or use the arrow keys; scroll to come nearer. Each point is a sample of the recording."
    return Section("Embedding", text, tuple(figures))


def _cloud(embedding: "Embedding", label: str, embeddings: dict[str, np.ndarray]) -> Figure:
    recording = embedding.parts.whole
    rows = np.unique(np.linspace(0, len(recording) - 1, POINTS).astype(int))
    kind, values = _colours(embedding, label)
    frames = []
    for name, points in embeddings.items():
        places = points[rows, :3] if name == "contrastive" else _unit(points[rows, :3])
        columns = {f"dimension {place + 1}": places[:, place] for place in range(places.shape[1])}
        columns |= {f"dimension {place + 1}": np.zeros(len(rows)) for place in range(places.shape[1], 3)}
        frames.append(
            pd.DataFrame({"embedding": name} | columns | {label: values[rows], "part": embedding.parts.names[rows]})
        )
    frame = pd.concat(frames, ignore_index=True)
    unit = {"angle": " (degrees)"}.get(kind, " (s)" if label == "time" and recording.times is not None else "")
    kept = f" {len(rows):,} of {len(recording):,} samples are drawn." if len(rows) < len(recording) else ""
    more = f" The first three of {embedding.embedding.shape[1]} dimensions." if embedding.embedding.shape[1] > 3 else ""
    flat = (
        f" Of {label}, the first column."
        if label in recording.labels and recording.label(label).values.ndim > 1
        else ""
    )
    return Figure(
        f"Embedding by {label}",
        "Seed " + f"{embedding.fits[0].seed}; the other methods are scaled to the same size.{kept}{more}{flat}",
        frame,
        kind="cloud",
        x="dimension 1",
        y="dimension 2",
        depth="dimension 3",
        value=() if kind == "discrete" else (label,),
        color=(label,) if kind == "discrete" else (),
        select=("embedding",) if len(embeddings) > 1 else (),
        cyclic=kind == "angle",
        limits=(0.0, 360.0) if kind == "angle" else None,
        labels={label: f"{label}{unit}"},
    )


def _colours(embedding: "Embedding", label: str) -> tuple[str, np.ndarray]:
    """Return the kind of a label, and a number or a name for each sample."""
    recording = embedding.parts.whole
    if label not in recording.labels:
        return "continuous", np.arange(len(recording)) if recording.times is None else recording.times
    own = recording.label(label)
    if own.kind == "angle":
        return "angle", np.rad2deg(own.values)
    if own.kind == "discrete":
        return "discrete", np.array(own.classes)[own.values]
    return "continuous", own.values if own.values.ndim == 1 else own.values[:, 0]


def _unit(places: np.ndarray) -> np.ndarray:
    centred = places - places.mean(0)
    return centred / max(float(np.sqrt((centred**2).sum(1).mean())), 1e-12)


def fit_section(embedding: "Embedding") -> Section:
    """Show the goodness of fit over training, between chance and what the best fit reached."""
    history = embedding.history
    names = np.where(history["shuffled"], "shuffled", "true labels" if embedding.plan.by != "time" else "true order")
    lines = pd.DataFrame(
        {"step": history["step"], "nats": history["nats"], "fit": names, "seed": [f"seed {s}" for s in history["seed"]]}
    )
    ends = [1, int(history["step"].max())]
    chance = pd.DataFrame({"step": ends, "nats": 0.0, "fit": "a constant embedding", "seed": "bound"})
    batch = embedding.model.batch_size or len(embedding.parts.train)
    most = pd.DataFrame({"step": ends, "nats": -float(np.log(batch)), "fit": "minus log n", "seed": "bound"})
    figure = Figure(
        "Goodness of fit over training",
        f"Means of ten steps with n = {batch:,} negatives. A constant embedding has 0. As n grows it cannot go "
        "below minus the divergence between pairs and independent samples, which nobody knows; with n negatives it can "
        "hardly show more than log n.",
        pd.concat([lines, chance, most], ignore_index=True),
        kind="line",
        x="step",
        y="nats",
        color=("fit",),
        dash="seed",
        choose="fit",
        start={"fit": [name for name in dict.fromkeys(names) if name] + ["a constant embedding"]},
        labels={"nats": "goodness of fit (nats, lower is better)"},
    )
    listing = Listing(
        "Goodness of fit", "With 4,096 negatives, so that parts and fits can be compared.", embedding.goodness_of_fit
    )
    return Section(
        "Fit", "Whether there is anything to learn, and whether it holds on new samples.", (figure,), (listing,)
    )


def decoding_section(embedding: "Embedding") -> Section | None:
    """Every decoder beside every control."""
    if embedding.decoding.empty:
        return None
    table = summarised(embedding.decoding)
    figures = []
    for label in embedding.plan.labels:
        kind = embedding.parts.whole.label(label).kind
        rows = table[(table["label"] == label) & (table["measure"] == MAIN[kind])].copy()
        rows["decoded from"] = rows["what"] + np.where(rows["what"] == rows["decoder"], "", ", " + rows["decoder"])
        unit = {"angle": "median error (degrees, lower is better)", "continuous": "R²", "discrete": "accuracy"}[kind]
        figures.append(
            Figure(
                f"Decoding of {label}",
                f"On the last {embedding.plan.held:.0%} of the recording. Settings of decoders were chosen on a block "
                f"before it that no encoder saw. Means over {len(embedding.fits)} seeds; low and high are their range.",
                rows[["decoded from", "value", "low", "high", "seeds"]].assign(score=unit),
                kind="heatmap",
                x="score",
                y="decoded from",
                value=("value",),
                low="low",
                high="high",
                labels={"value": unit},
                limits=(0.0, float(rows["value"].max())) if kind == "angle" else None,
            )
        )
    listings = [Listing("All scores", "Low and high are the range over seeds.", table)]
    if len(embedding.folds):
        text = "Each fold holds out whole trials and has an encoder of its own."
        listings.append(Listing("Folds of whole trials", text, embedding.folds))
    text = "What can be read from the embedding, from the signal, and by chance."
    return Section("Decoding", text, tuple(figures), tuple(listings))


def consistency_section(embedding: "Embedding") -> Section | None:
    """Show how well one run predicts another."""
    if embedding.consistency.empty:
        return None
    runs = embedding.consistency["source"].unique()
    same = pd.DataFrame({"source": runs, "target": runs, "value": 1.0, "n": len(embedding.parts.test)})
    figure = Figure(
        "Consistency of runs",
        "R² of the best affine map from one seed (rows) to another (columns), on held-out samples. To itself it is 1.",
        pd.concat([same, embedding.consistency], ignore_index=True),
        kind="heatmap",
        x="target",
        y="source",
        value=("value",),
        limits=(0.0, 1.0),
        labels={"value": "R²"},
    )
    return Section("Consistency", "Whether another seed finds the same.", (figure,))


def topology_section(embedding: "Embedding") -> Section | None:
    """Show births and deaths of classes, true and shuffled."""
    if embedding.persistence is None:
        return None
    null = [(f"shuffled {place}", each) for place, each in enumerate(embedding.null)]
    diagrams = [("embedding", embedding.persistence), *null]
    frames = [
        each.bars[np.isfinite(each.bars["death"])].assign(embedding=name, shuffled="shuffled" if place else "true")
        for place, (name, each) in enumerate(diagrams)
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame["class"] = frame["dimension"].map({0: "part", 1: "ring", 2: "hollow"})
    figure = Figure(
        "Births and deaths",
        "Each point is a part, ring or hollow that appears and is filled as points are joined over longer and longer "
        "distances, in units of the embedding's spread. What lives long is far above the others.",
        frame[["class", "shuffled", "birth", "death", "lifespan", "embedding"]],
        kind="scatter",
        x="birth",
        y="death",
        color=("class",),
        dash="shuffled",
    )
    return Section("Topology", "What shape the embedding has.", (figure,))


def methods_section(embedding: "Embedding") -> Section:
    """Write a paragraph for a methods section, with every setting."""
    return Section("Methods", methods(embedding), (), (Listing("All numbers", "One row each.", embedding.table()),))


def methods(embedding: "Embedding") -> str:
    """Return what was done, in words that can stand in a paper."""
    plan, parts, model = embedding.plan, embedding.parts, embedding.model
    whole_part = parts.whole
    step = f" in bins of {1000 * whole_part.step:g} ms" if whole_part.step else ""
    prepared = f", smoothed by a Gaussian of {plan.smoothing:g} samples{' that looks back only' * plan.causal}" * bool(
        plan.smoothing
    )
    prepared += ", scaled by means and deviations of the training part" * plan.zscore
    controls = f"{plan.shuffles} fits with {'labels' if plan.by != 'time' else 'samples'} in a random order" * bool(
        plan.shuffles
    )
    folds = (
        f"Labels were decoded again in {plan.folds} folds of whole trials, each with an encoder of its own. "
    ) * bool(len(embedding.folds))
    others = f"Baselines were {', '.join(embedding.baselines)} of the same windows. " * bool(embedding.baselines)
    shape = (
        f"Persistent cohomology up to dimension 2 was computed with ripser on 150 points of the embedding; classes "
        f"count if they live longer than any of {len(embedding.shuffled)} shuffled fits. "
    ) * (embedding.betti is not None)
    return (
        f"{whole_part.signal().shape[1]} channels of {Path(whole_part.source).name} ({len(whole_part):,} samples{step}"
        f"{prepared}) were embedded with haptera {__version__} (ContrastiveEmbedding, {model.model_architecture}, "
        f"{model.output_dimension} dimensions, {model.num_hidden_units} hidden units, {model.distance} similarity, "
        f"temperature {model.temperature:g}, Adam with a learning rate of {model.learning_rate:g}, "
        f"{model.n_iter_:,} steps of {model.batch_size} pairs; {embedding.mode}). Encoders learnt from the first "
        f"{len(parts.train):,} samples. Decoders (k nearest neighbours, k from 1, 4, 9, 16, 25, and ridge regression) "
        f"were chosen on the next {len(parts.validation):,}, fitted on both, scored on the last {len(parts.test):,}. "
        f"There were {len(embedding.fits)} seeds{' and ' + controls if controls else ''}. {folds}{others}{shape}"
        "The method is that of Schneider, Lee and Mathis (2023), which is patented (US 12,499,131 B2)."
    )
