"""The page of an embedding: the cloud to turn, loss against its bounds, decoding, consistency, topology, methods."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.analyses.embedding.baselines import evenly_spaced
from haptera.analyses.embedding.comparison import MAIN, summarise
from haptera.analyses.embedding.plots import consistency_chart
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.words import count

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

POINTS, NULLS = 3000, 10
"""Samples that are drawn at most, and shuffled fits."""


def sections(embedding: "Embedding") -> list[Section]:
    """Return every section for which something is known."""
    makers = (cloud_section, fit_section, decoding_section, consistency_section, topology_section, methods_section)
    return [section for make in makers if (section := make(embedding)) is not None]


def cloud_section(embedding: "Embedding") -> Section:
    """Show the embedding, and the baselines, coloured by each label."""
    figures = tuple(_cloud(embedding, label) for label in embedding.plan.labels or ("time",))
    text = "Drag to turn it, or use the arrow keys; scroll to come nearer. Each point is a sample of the recording."
    return Section("Embedding", text, figures)


def _cloud(embedding: "Embedding", label: str) -> Figure:
    recording, size = embedding.parts.whole, embedding.embedding.shape[1]
    known, kind, unit = recording.labels.get(label), "continuous", ""
    if known is not None:
        kind, values = known.kind, known.readable
    else:
        values = np.arange(len(recording)) if recording.times is None else recording.times
        unit = "" if recording.times is None else " (s)"
    rows = evenly_spaced(len(recording), POINTS)
    text = f"Seed {embedding.fits[0].seed}; the other methods are scaled to the same size."
    text += f" {len(rows):,} of {len(recording):,} samples are drawn." * (len(rows) < len(recording))
    text += f" The first three of {size} dimensions." * (size > 3)
    text += f" Of {label}, the first column." * (known is not None and known.values.ndim > 1)
    style = cloud_style(label, kind, unit) | {"select": ("embedding",) if embedding.baselines else ()}
    frames = [cloud_points("contrastive", embedding.embedding[rows, :3])]
    places = [rows]
    for name, points in embedding.baselines.items():
        places.append(drawn := rows[np.isfinite(points[rows]).all(1)])
        frames.append(cloud_points(name, _unit(points[drawn, :3])))
    named = zip(frames, places, strict=True)
    frames = [frame.assign(**{label: values[some], "part": embedding.parts.names[some]}) for frame, some in named]
    return Figure(f"Embedding by {label}", text, pd.concat(frames, ignore_index=True), kind="cloud", **style)


def cloud_style(label: str, kind: str, unit: str = "") -> dict[str, Any]:
    """Return how a cloud is coloured by a label of a kind."""
    style: dict[str, Any] = {"x": "dimension 1", "y": "dimension 2", "depth": "dimension 3"}
    style |= {"color": (label,)} if kind == "discrete" else {"value": (label,)}
    style |= {"cyclic": True, "limits": (0.0, 360.0)} if kind == "angle" else {}
    return style | {"labels": {label: f"{label}{' (degrees)' if kind == 'angle' else unit}"}}


def cloud_points(name: str, places: np.ndarray, column: str = "embedding") -> pd.DataFrame:
    """Return the first three dimensions of points, filled up with zeros, and a column with a name."""
    places = np.pad(places, ((0, 0), (0, 3 - places.shape[1])))
    columns = {f"dimension {place + 1}": values for place, values in enumerate(places.T)}
    return pd.DataFrame({column: name} | columns)


def _unit(places: np.ndarray) -> np.ndarray:
    centred = places - places.mean(0)
    return centred / max(float(np.sqrt((centred**2).sum(1).mean())), 1e-12)


def fit_section(embedding: "Embedding") -> Section:
    """Show the goodness of fit over training, between chance and what the best fit reached."""
    batch = embedding.model.batch_size or len(embedding.parts.train)
    history = embedding.history
    few = history[~history["shuffled"] | (history["seed"] < embedding.plan.seed + NULLS)]
    figure = loss_figure(few, batch, by_time=embedding.plan.by == "time")
    text = "With 4,096 negatives, so that parts and fits can be compared."
    listing = Listing("Goodness of fit", text, embedding.goodness_of_fit)
    text = "Whether there is anything to learn, and whether it holds on new samples."
    return Section("Fit", text, (figure,), (listing,))


def loss_figure(history: pd.DataFrame, batch: int, *, by_time: bool) -> Figure:
    """Return the goodness of fit over training, between chance and what `batch` negatives can show."""
    true, ends = "true order" if by_time else "true labels", [1, int(history["step"].max())]
    fits = np.where(history["shuffled"], "shuffled", true)
    lines = history[["step", "nats"]].assign(fit=fits, seed="seed " + history["seed"].astype(str))
    bounds = {"a constant embedding": 0.0, "minus log n": -float(np.log(batch))}
    frames = [pd.DataFrame({"step": ends, "nats": nats, "fit": name, "seed": "bound"}) for name, nats in bounds.items()]
    frame = pd.concat([lines, *frames], ignore_index=True)
    text = (
        f"Means of ten steps with n = {batch:,} negatives. A constant embedding has 0. As n grows it cannot go "
        "below minus the divergence between pairs and independent samples, which nobody knows; with n negatives it can "
        "hardly show more than log n."
    )
    style: dict[str, Any] = {"x": "step", "y": "nats", "color": ("fit",), "dash": "seed", "choose": "fit"}
    style |= {"start": {"fit": list(frame["fit"].unique()[:-1])}}  # but for what log n allows
    style |= {"labels": {"nats": "goodness of fit (nats, lower is better)"}}
    return Figure("Goodness of fit over training", text, frame, kind="line", **style)


def decoding_section(embedding: "Embedding") -> Section | None:
    """Show every decoder beside every control."""
    if embedding.decoding.empty:
        return None
    table = summarise(embedding.decoding)
    figures = tuple(_decoders(embedding, table, label) for label in embedding.plan.labels)
    listings = [Listing("All scores", "Low and high are the range over seeds.", table)]
    if len(embedding.folds):
        text = "Each fold holds out whole trials and has an encoder of its own."
        listings.append(Listing("Folds of whole trials", text, embedding.folds))
    text = "What can be read from the embedding, from the signal, and by chance."
    return Section("Decoding", text, figures, tuple(listings))


def _decoders(embedding: "Embedding", table: pd.DataFrame, label: str) -> Figure:
    text = (
        f"On the last {embedding.plan.held:.0%} of the recording. Settings of decoders were chosen on a block "
        f"before it that no encoder saw. Means over {len(embedding.fits)} seeds; low and high are their range."
    )
    return decoders_figure(table, label, embedding.parts.whole.label(label).kind, text)


def decoders_figure(table: pd.DataFrame, label: str, kind: str, text: str) -> Figure:
    """Return the scores of all decoders of a label, from a table that `summarise` made."""
    unit = {"angle": "median error (degrees, lower is better)", "continuous": "R²", "discrete": "accuracy"}[kind]
    rows = table[(table["label"] == label) & (table["measure"] == MAIN[kind])]
    names = rows["what"] + np.where(rows["what"] == rows["decoder"], "", ", " + rows["decoder"])
    frame = rows[["value", "low", "high", "seeds"]].assign(score=unit, **{"decoded from": names})
    limits = (0.0, float(rows["value"].max())) if kind == "angle" else None
    style: dict[str, Any] = {"x": "score", "y": "decoded from", "value": ("value",), "low": "low", "high": "high"}
    style |= {"labels": {"value": unit}, "limits": limits}
    return Figure(f"Decoding of {label}", text, frame, kind="heatmap", **style)


def consistency_section(embedding: "Embedding") -> Section | None:
    """Show how well one run predicts another."""
    if embedding.consistency.empty:
        return None
    text = "R² of the best affine map from one seed (rows) to another (columns), on held-out samples; to itself, 1."
    figure = consistency_chart("Consistency of runs", text, embedding.consistency)
    return Section("Consistency", "Whether another seed finds the same.", (figure,))


def topology_section(embedding: "Embedding") -> Section | None:
    """Show births and deaths of classes, true and shuffled."""
    if embedding.persistence is None:
        return None
    bars = {"embedding": embedding.persistence.bars}
    longest = sorted(embedding.null, key=lambda each: -max(each.longest(1), each.longest(2)))[: 3 * NULLS]
    bars |= {f"shuffled {place}": each.bars for place, each in enumerate(longest)}
    frame = pd.concat(bars, names=["embedding"]).reset_index("embedding").query("death < inf")
    frame["class"] = frame["dimension"].map({0: "part", 1: "ring", 2: "hollow"})
    frame["shuffled"] = np.where(frame["embedding"] == "embedding", "true", "shuffled")
    frame = frame[["class", "shuffled", "birth", "death", "lifespan", "embedding"]].reset_index(drop=True)
    text = (
        "Each point is a part, ring or hollow that appears and is filled as points are joined over longer and longer "
        "distances, in units of the embedding's spread. What lives long is far above the others."
    )
    every = len(embedding.null)
    text += f" Of {every} shuffled ones, those with the longest bars." * (len(longest) < every)
    axes: dict[str, Any] = {"x": "birth", "y": "death", "color": ("class",), "dash": "shuffled"}
    figure = Figure("Births and deaths", text, frame, kind="scatter", **axes)
    return Section("Topology", "What shape the embedding has.", (figure,))


def methods_section(embedding: "Embedding") -> Section:
    """Write a paragraph for a methods section, with every setting."""
    return Section("Methods", methods(embedding), (), (Listing("All numbers", "One row each.", embedding.table()),))


def methods(embedding: "Embedding") -> str:
    """Return what was done, in words that can stand in a paper."""
    plan, parts, model = embedding.plan, embedding.parts, embedding.model
    whole, what = parts.whole, "samples" if plan.by == "time" else "labels"
    step = f" in bins of {1000 * whole.step:g} ms" if whole.step else ""
    looks_back = " that looks back only" * plan.causal
    prepared = f", smoothed by a Gaussian of {plan.smoothing:g} samples{looks_back}" * bool(plan.smoothing)
    prepared += ", scaled by means and deviations of the training part" * plan.zscore
    shuffles = count(len(embedding.shuffled), "fit")
    controls = f" and {shuffles} of as many steps with {what} in a random order" * bool(embedding.shuffled)
    number = embedding.folds["fold"].nunique()
    folds = f"Labels were decoded again in {number} folds of whole trials, each with an encoder of its own. "
    others = f"Baselines were {', '.join(embedding.baselines)} of the same windows. "
    shape = (
        f"Persistent cohomology up to dimension 2 was computed with ripser on 150 points of the embedding; classes "
        f"count if they live longer than any of {len(embedding.shuffled)} shuffled fits. "
    )
    more = folds * bool(len(embedding.folds)) + others * bool(embedding.baselines)
    more += shape * (embedding.betti is not None)
    return (
        f"{whole.signal().shape[1]} {whole.channel_noun()} of {Path(whole.source).name} ({len(whole):,} samples{step}"
        f"{prepared}) were embedded with haptera {__version__} (ContrastiveEmbedding, {model.model_architecture}, "
        f"{model.output_dimension} dimensions, {model.num_hidden_units} hidden units, {model.distance} similarity, "
        f"temperature {model.temperature:g}, Adam with a learning rate of {model.learning_rate:g}, "
        f"{model.n_iter_:,} steps of {model.batch_size} pairs; {embedding.mode}). Encoders learnt from the first "
        f"{len(parts.train):,} samples. Decoders (k nearest neighbours, k from 1, 4, 9, 16, 25, and ridge regression) "
        f"were chosen on the next {len(parts.validation):,}, fitted on both, scored on the last {len(parts.test):,}. "
        f"Results are of {count(len(embedding.fits), 'seed')}{controls}. {more}"
        "The method is that of Schneider, Lee and Mathis (2023), which is patented (US 12,499,131 B2)."
    )
