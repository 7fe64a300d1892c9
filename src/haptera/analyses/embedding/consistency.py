"""Consistency: how well one embedding is a linear map of another.

Source: thesis chapter 7, "Consistency of embeddings across runs, subjects, sessions, recording modalities, and areas":
R² of a linear regression with an intercept, for every ordered pair. Runs share their samples. Subjects and sessions do
not: there the embeddings are averaged in bins of the label, 100 for a continuous one and each class by itself,
normalised if they lie on a sphere, and an empty bin takes the samples of its neighbours.
Here labels may have any dimensions (the bins of each are then fewer, so that there are about as many in all), angles
are binned on the circle, and a bin that is empty in all embeddings is left out.
Cost: a least squares for each pair.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.recordings.label import Label, r2

BINS = 100


def linear_r2(source: np.ndarray, target: np.ndarray) -> float:
    """R² of the best affine map from one embedding to another of the same samples, `(samples, dimensions)`."""
    if len(source) != len(target):
        raise HapteraError(
            f"embeddings have {len(source):,} and {len(target):,} samples; the same ones were expected, or labels to "
            "bring them together"
        )
    if len(source) <= source.shape[1] + 1:
        raise HapteraError(
            f"{len(source)} samples or bins of {source.shape[1]} dimensions; an affine map fits them all"
        )
    inputs = np.column_stack([source, np.ones(len(source))]).astype(float)
    coefficients = np.linalg.lstsq(inputs, np.asarray(target, float), rcond=None)[0]
    return r2(target, inputs @ coefficients)


def consistency(
    embeddings: Mapping[str, np.ndarray],
    labels: Mapping[str, Sequence[Label]] | None = None,
    *,
    bins: int = BINS,
) -> pd.DataFrame:
    """Every ordered pair of embeddings: `source`, `target`, `value`, and `n`, the samples or bins compared.

    Args:
        embeddings: name -> `(samples, dimensions)`. Without labels, samples are the same everywhere.
        labels: name -> the labels of its samples, one or several, the same ones for every embedding.
        bins: how many in all along the continuous labels.
    """
    if len(embeddings) < 2:
        raise HapteraError(f"{len(embeddings)} embeddings were given; consistency needs two or more")
    placed = dict(embeddings) if labels is None else bin_means(embeddings, labels, bins=bins)
    pairs = list(permutations(placed, 2))
    rows = [(*pair, linear_r2(*(placed[name] for name in pair)), len(placed[pair[0]])) for pair in pairs]
    return pd.DataFrame(rows, columns=["source", "target", "value", "n"])


def bin_means(
    embeddings: Mapping[str, np.ndarray], labels: Mapping[str, Sequence[Label]], *, bins: int = BINS
) -> dict[str, np.ndarray]:
    """Means of each embedding in the same bins of its labels, `(bins, dimensions)`."""
    for name, embedding in embeddings.items():
        if name not in labels:
            raise HapteraError(f"embedding {name!r} has no labels; labels are given for {', '.join(labels)}")
        for label in labels[name]:
            if len(label) != len(embedding):
                raise HapteraError(f"embedding {name!r} has {len(embedding):,} samples, its label {len(label):,}")
    grid = _Grid([labels[name] for name in embeddings], bins)
    cells = {name: grid.cells(labels[name]) for name in embeddings}
    used = np.unique(np.concatenate(list(cells.values())))
    return {name: _means(embedding, cells[name], used, grid) for name, embedding in embeddings.items()}


class _Grid:
    """Cells of equal width in every continuous dimension, and one for each class."""

    def __init__(self, labels: Sequence[Sequence[Label]], bins: int) -> None:
        kinds = {tuple((label.kind, label.values.shape[1:]) for label in each) for each in labels}
        if len(kinds) > 1:
            raise HapteraError(f"embeddings have labels of different kinds: {' and '.join(map(str, kinds))}")
        values = np.concatenate([_columns(each) for each in labels])
        columns = np.concatenate([[label.kind] * _columns([label]).shape[1] for label in labels[0]])
        self.discrete, self.round = columns == "discrete", columns == "angle"
        numbers = int((~self.discrete).sum())
        each = max(round(bins ** (1 / numbers)), 2) if numbers else 1
        self.low = np.where(self.discrete | self.round, 0.0, values.min(0))
        high = np.where(self.round, 2 * np.pi, values.max(0))
        self.shape = np.where(self.discrete, high + 1, each).astype(np.int64)
        self.step = np.where(self.discrete, 1.0, np.maximum((high - self.low) / each, 1e-300))

    def cells(self, labels: Sequence[Label]) -> np.ndarray:
        """Return the number of the cell of each sample."""
        places = np.floor((_columns(labels) - self.low) / self.step).astype(np.int64).clip(0, self.shape - 1)
        return np.ravel_multi_index(tuple(places.T), tuple(self.shape))

    def distance(self, cell: int, others: np.ndarray) -> np.ndarray:
        """Return the steps on the grid from a cell to others; a class is never near another."""
        here, there = (np.column_stack(np.unravel_index(each, tuple(self.shape))) for each in ([cell], others))
        off = np.abs(there - here).astype(float)
        off = np.where(self.round, np.minimum(off, self.shape - off), off)
        return np.where(self.discrete & (off > 0), np.inf, off).sum(1)


def _columns(labels: Sequence[Label]) -> np.ndarray:
    return np.hstack([label.values.reshape(len(label), -1).astype(float) for label in labels])


def _means(embedding: np.ndarray, cells: np.ndarray, used: np.ndarray, grid: _Grid) -> np.ndarray:
    """Means in the used cells; an empty one takes the samples of the nearest that are not empty, two on a line."""
    place = np.searchsorted(used, cells)
    count = np.bincount(place, minlength=len(used))
    sums = np.stack([np.bincount(place, column, minlength=len(used)) for column in embedding.T.astype(float)], axis=1)
    full = np.flatnonzero(count)
    for empty in np.flatnonzero(count == 0):
        away = grid.distance(int(used[empty]), used[full])
        if not np.isfinite(away).any():
            raise HapteraError("a class of the label is missing in one of the embeddings; compare those with all")
        near = full[away == away.min()]
        sums[empty], count[empty] = sums[near].sum(0), count[near].sum()
    means = sums / count[:, None]
    lengths = np.linalg.norm(embedding, axis=1)
    if np.allclose(lengths, 1, atol=1e-3):  # on the sphere, and so are the means
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means


def group_consistency(
    signal: np.ndarray,
    groups: Sequence[object],
    embed: Callable[[np.ndarray, int], np.ndarray],
    *,
    neurons: int,
    repeats: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Consistency within and between groups of neurons, such as areas, each embedding from neurons of its own.

    Args:
        signal: `(samples, neurons)` of all groups.
        groups: of each neuron.
        embed: from a signal and a seed to an embedding.
        neurons: in each set. Two disjoint sets are drawn from every group, so it must have twice as many.
        repeats: how often all sets are drawn.
        seed: of the draws; `embed` is given a different one for each set.

    Returns:
        `repeat`, `source`, `target` (groups), `where` (`within` or `between`) and `value`.
    """
    of_neuron = np.array([str(group) for group in groups])
    if len(of_neuron) != signal.shape[1]:
        raise HapteraError(f"{len(groups)} groups were given for {signal.shape[1]} neurons; one for each was expected")
    names, counts = np.unique(of_neuron, return_counts=True)
    for name, count in zip(names, counts, strict=True):
        if count < 2 * neurons:
            raise HapteraError(f"group {name!s} has {count} neurons; two disjoint sets of {neurons} were asked for")
    rows = []
    for repeat in range(repeats):
        generator = np.random.default_rng([seed, repeat])
        made: dict[tuple[str, int], np.ndarray] = {}
        for name in names:
            drawn = generator.permutation(np.flatnonzero(of_neuron == name))
            for half in range(2):
                chosen = np.sort(drawn[half * neurons : (half + 1) * neurons])
                made[name, half] = embed(signal[:, chosen], int(generator.integers(2**31)))
        for source, target in permutations(made, 2):
            where = "within" if source[0] == target[0] else "between"
            rows.append((repeat, source[0], target[0], where, linear_r2(made[source], made[target])))
    return pd.DataFrame(rows, columns=["repeat", "source", "target", "where", "value"])
