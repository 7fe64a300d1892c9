"""Consistency: how well one embedding is a linear map of another.

Source: thesis chapter 7, "Consistency of embeddings across runs, subjects, sessions, recording modalities, and areas":
R² of a linear regression with an intercept, for every ordered pair. Runs share their samples. Subjects and sessions do
not: there the embeddings are averaged in bins of the label, 100 for a continuous one and each class by itself,
normalised if they lie on a sphere, and an empty bin takes the samples of its neighbours.
Here labels may have any dimensions (the bins of each are then fewer, so that there are about as many in all), angles
are binned on the circle, and a bin that is empty in all embeddings is left out.
Cost: a least squares for each pair.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.scores import r2

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
    placed = dict(embeddings) if labels is None else binned(embeddings, labels, bins=bins)
    rows = [
        {
            "source": source,
            "target": target,
            "value": linear_r2(placed[source], placed[target]),
            "n": len(placed[source]),
        }
        for source, target in permutations(placed, 2)
    ]
    return pd.DataFrame(rows)


def binned(
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
        together = [
            np.concatenate([each[place].values for each in labels]).reshape(-1, self._width(label))
            for place, label in enumerate(labels[0])
        ]
        numbers = sum(self._width(label) for label in labels[0] if label.kind != "discrete")
        each = max(round(bins ** (1 / numbers)), 2) if numbers else 1
        self.kinds = [label.kind for label in labels[0] for _ in range(self._width(label))]
        self.low = [0.0 if kind == "angle" else column.min() for kind, column in self._columns(together)]
        high = [2 * np.pi if kind == "angle" else column.max() for kind, column in self._columns(together)]
        self.shape = [int(h) + 1 if kind == "discrete" else each for kind, h in zip(self.kinds, high, strict=True)]
        self.step = [
            1.0 if kind == "discrete" else max((high_end - low_end) / each, 1e-300)
            for kind, low_end, high_end in zip(self.kinds, self.low, high, strict=True)
        ]
        self.low = [0.0 if kind == "discrete" else low for kind, low in zip(self.kinds, self.low, strict=True)]

    @staticmethod
    def _width(label: Label) -> int:
        return 1 if label.values.ndim == 1 else label.values.shape[1]

    def _columns(self, values: Sequence[np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        return zip(self.kinds, (column for each in values for column in each.T), strict=True)

    def cells(self, labels: Sequence[Label]) -> np.ndarray:
        """The number of the cell of each sample."""
        columns = [label.values.reshape(len(label), -1) for label in labels]
        places = [
            np.floor((column - self.low[at]) / self.step[at]).astype(np.int64).clip(0, self.shape[at] - 1)
            for at, (_, column) in enumerate(self._columns(columns))
        ]
        return np.ravel_multi_index(places, self.shape)

    def distance(self, cell: int, others: np.ndarray) -> np.ndarray:
        """Steps on the grid from a cell to others; a class is never near another."""
        here, there = np.unravel_index(cell, self.shape), np.unravel_index(others, self.shape)
        total = np.zeros(len(others))
        for at, kind in enumerate(self.kinds):
            off = np.abs(there[at] - here[at]).astype(float)
            if kind == "angle":
                off = np.minimum(off, self.shape[at] - off)
            total += np.where(off > 0, np.inf, 0.0) if kind == "discrete" else off
        return total


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
        rows += [
            {
                "repeat": repeat,
                "source": source[0],
                "target": target[0],
                "where": "within" if source[0] == target[0] else "between",
                "value": linear_r2(made[source], made[target]),
            }
            for source, target in permutations(made, 2)
        ]
    return pd.DataFrame(rows)
