"""Alignment: bring embeddings of the same thing into one orientation, and average them.

Source: thesis chapter 7, "Neural Latent Benchmark" (Procrustes after Schönemann, 1966, then the mean over models) and
figure 7.9 for trial averages. Two embeddings with different samples are matched by their labels: each sample of one
with the sample of the other whose label is nearest, found with a tree, so that no matrix of all pairs is built.
Cost: a tree for the labels, and a singular value decomposition of dimensions x dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from haptera.errors import HapteraError
from haptera.recordings.label import Label


@dataclass(frozen=True, eq=False)
class Alignment:
    """An orthogonal map, a scale and a translation, found for one pair and applied to anything.

    Attributes:
        rotation: `(dimensions, dimensions)`, orthogonal; may mirror.
        scale: 1 unless asked for.
        centre: of the source, taken away first.
        place: of the target, added last.
    """

    rotation: np.ndarray
    scale: float
    centre: np.ndarray
    place: np.ndarray

    def __call__(self, embedding: np.ndarray) -> np.ndarray:
        """An embedding in the orientation of the target."""
        return self.scale * ((embedding - self.centre) @ self.rotation) + self.place


def procrustes(
    source: np.ndarray,
    target: np.ndarray,
    labels: tuple[Label, Label] | None = None,
    *,
    scaled: bool = False,
    centred: bool = False,
) -> Alignment:
    """The orthogonal map that brings `source` nearest to `target`, in the sense of least squares.

    Args:
        source: `(samples, dimensions)`.
        target: `(samples, dimensions)`, of the same samples unless there are labels.
        labels: of the samples of each; a sample of the target is matched with that of the source nearest in label.
        scaled: also a common scale.
        centred: also a translation; embeddings on a sphere need none.
    """
    if source.shape[1] != target.shape[1]:
        raise HapteraError(
            f"embeddings have {source.shape[1]} and {target.shape[1]} dimensions; the same number was expected"
        )
    if labels is not None:
        source = source[nearest_by_label(labels[0], labels[1])]
    if len(source) != len(target):
        raise HapteraError(f"embeddings have {len(source):,} and {len(target):,} samples; give labels to match them by")
    zero = np.zeros(source.shape[1])
    centre, place = (source.mean(0), target.mean(0)) if centred else (zero, zero)
    left, values, right = np.linalg.svd((source - centre).T @ (target - place))
    scale = float(values.sum() / max(((source - centre) ** 2).sum(), 1e-300)) if scaled else 1.0
    return Alignment(left @ right, scale, centre, place)


def nearest_by_label(among: Label, of: Label) -> np.ndarray:
    """Return for every sample of `of` the row of `among` with the nearest label."""
    if among.kind != of.kind:
        raise HapteraError(f"labels are {among.kind} and {of.kind}; the same kind was expected")
    values = [label.features.reshape(len(label), -1).astype(float) for label in (among, of)]
    if among.kind == "discrete" and (strange := set(of.values.tolist()) - set(among.values.tolist())):
        raise HapteraError(f"classes {sorted(strange)} are in one of the embeddings only")
    return np.asarray(cKDTree(values[0]).query(values[1])[1])


def average(
    embeddings: Sequence[np.ndarray], labels: Sequence[Label] | None = None, *, scaled: bool = False
) -> np.ndarray:
    """The mean of embeddings after each was aligned with the first, on the samples of the first.

    On a sphere, where all have length 1, the mean is brought back to it.
    """
    if not embeddings:
        raise HapteraError("there is no embedding to average")
    first = embeddings[0]
    total = first.astype(float)
    for place, embedding in enumerate(embeddings[1:], 1):
        pair = None if labels is None else (labels[place], labels[0])
        rows = slice(None) if labels is None else nearest_by_label(labels[place], labels[0])
        total = total + procrustes(embedding, first, pair, scaled=scaled)(embedding)[rows]
    mean: np.ndarray = total / len(embeddings)
    if all(np.allclose(np.linalg.norm(each, axis=1), 1, atol=1e-3) for each in embeddings):
        mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    return mean


def trial_averages(embedding: np.ndarray, trials: np.ndarray, conditions: np.ndarray) -> pd.DataFrame:
    """The mean path of trials of each condition: `condition`, `step`, `n` (trials) and a column for each dimension.

    Args:
        embedding: `(samples, dimensions)`.
        trials: `(samples,)`; the steps of a trial are counted from its first sample.
        conditions: `(samples,)`, the same throughout a trial.
    """
    if not len(embedding) == len(trials) == len(conditions):
        raise HapteraError(
            f"embedding, trials and conditions have {len(embedding):,}, {len(trials):,} and {len(conditions):,} "
            "samples; the same length was expected"
        )
    frame = pd.DataFrame({"trial": trials, "condition": conditions})
    mixed = frame.groupby("trial")["condition"].nunique()
    if (mixed > 1).any():
        raise HapteraError(f"trial {mixed.idxmax()} has {int(mixed.max())} conditions; one was expected")
    frame["step"] = frame.groupby("trial").cumcount()
    columns = [f"dimension_{place}" for place in range(embedding.shape[1])]
    frame[columns] = embedding
    groups = frame.groupby(["condition", "step"])
    result = groups[columns].mean()
    result.insert(0, "n", groups.size())
    return result.reset_index()
