"""The frames behind the page of an embedding: clouds of points, goodness of fit over training, births and deaths."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.embedding.topology import Persistence

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

POINTS = 3000
"""Samples that are drawn at most."""


def cloud(embedding: "Embedding", label: str, embeddings: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return points of embeddings in three dimensions, with a label; all but the first are scaled to the same size."""
    rows = np.unique(np.linspace(0, len(embedding.parts.whole) - 1, POINTS).astype(int))
    more = {label: label_values(embedding, label)[rows], "part": embedding.parts.names[rows]}
    frames = []
    for number, (name, points) in enumerate(embeddings.items()):
        places = _unit(points[rows, :3]) if number else points[rows, :3]
        places = np.pad(places, ((0, 0), (0, 3 - places.shape[1])))
        columns = {f"dimension {place + 1}": places[:, place] for place in range(3)}
        frames.append(pd.DataFrame({"embedding": name} | columns | more))
    return pd.concat(frames, ignore_index=True)


def label_kind(embedding: "Embedding", label: str) -> str:
    """Return the kind of a label; `time`, which is not one, is continuous."""
    labels = embedding.parts.whole.labels
    return labels[label].kind if label in labels else "continuous"


def label_values(embedding: "Embedding", label: str) -> np.ndarray:
    """Return a number or a name for each sample: degrees, classes, the first column, or the time."""
    recording = embedding.parts.whole
    if label not in recording.labels:
        return np.arange(len(recording)) if recording.times is None else recording.times
    own = recording.label(label)
    if own.kind == "angle":
        return np.rad2deg(own.values)
    if own.kind == "discrete":
        return np.array(own.classes)[own.values]
    return own.values if own.values.ndim == 1 else own.values[:, 0]


def losses(embedding: "Embedding", batch: int) -> pd.DataFrame:
    """Return the goodness of fit of each fit over training, then chance, then what a batch of that size allows."""
    history, true = embedding.history, "true order" if embedding.plan.by == "time" else "true labels"
    seeds = [f"seed {seed}" for seed in history["seed"]]
    lines = history[["step", "nats"]].assign(fit=np.where(history["shuffled"], "shuffled", true), seed=seeds)
    bounds = {"a constant embedding": 0.0, "minus log n": -float(np.log(batch))}
    step = [1, int(history["step"].max())]
    frames = [pd.DataFrame({"step": step, "nats": nats, "fit": name, "seed": "bound"}) for name, nats in bounds.items()]
    return pd.concat([lines, *frames], ignore_index=True)


def births_and_deaths(shape: Persistence, null: Sequence[Persistence]) -> pd.DataFrame:
    """Return the classes of an embedding that die, and those of shuffled ones."""
    diagrams = [("embedding", "true", shape.bars)]
    diagrams += [(f"shuffled {place}", "shuffled", each.bars) for place, each in enumerate(null)]
    frames = [bars[np.isfinite(bars["death"])].assign(embedding=name, shuffled=how) for name, how, bars in diagrams]
    frame = pd.concat(frames, ignore_index=True)
    frame["class"] = frame["dimension"].map({0: "part", 1: "ring", 2: "hollow"})
    return frame[["class", "shuffled", "birth", "death", "lifespan", "embedding"]]


def _unit(places: np.ndarray) -> np.ndarray:
    centred = places - places.mean(0)
    return centred / max(float(np.sqrt((centred**2).sum(1).mean())), 1e-12)
