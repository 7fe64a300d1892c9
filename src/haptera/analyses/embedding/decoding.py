"""Decoding: how well a label can be read from an embedding, or from counts, on samples that chose nothing.

Source: thesis chapter 7, "Decoding Analysis": k nearest neighbours with equal weights, k from 1, 4, 9, 16, 25 chosen on
a validation part; cosine distance for embeddings on a sphere, Euclidean distance for others; three nested folds by
trial. Beside it a ridge, whose penalty is chosen in the same way. Angles are decoded as points on the circle, classes
by the vote of neighbours, or the ridge with the largest output. With the chosen setting, the decoder is fitted again
on both parts, which the source does not say.
An embedding has to be compared with a Bayesian decoder of the counts: tuning curves from training data, Poisson counts,
independent units, a flat prior, log P(label | counts) = Σ_units n log λ(label) − λ(label) + const. Counts summed over a
window of bins are Poisson with the summed rate, so a window is a moving sum.
Cost: one query for the largest k serves them all (`decoders` has the search); the Bayesian decoder is one product of
bins x units x places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter1d, uniform_filter1d

from haptera.analyses.embedding.decoders import Distance, Ridge, label_outputs, nearest, read_outputs, vote
from haptera.errors import HapteraError
from haptera.recordings.label import Label, label_scores, objective
from haptera.recordings.windows import Offset

NEIGHBOURS = (1, 4, 9, 16, 25)
PENALTIES = tuple(10.0**power for power in range(-3, 7))
FLOOR = 1e-3
"""Counts per bin that no tuning curve falls below: a unit silent in training must not rule a place out for ever."""


@dataclass(frozen=True, eq=False)
class Decoding:
    """What a decoder said about held-out samples.

    Attributes:
        decoder: `knn` or `ridge`.
        setting: k, or the penalty, that was chosen on the validation part.
        predicted: for each held-out sample, in the form of `Label.values`.
        scores: see `label_scores`.
    """

    decoder: str
    setting: float
    predicted: np.ndarray
    scores: dict[str, float]


@dataclass(frozen=True, eq=False)
class Part:
    """Samples of one part of a recording: what a decoder sees and what it should say."""

    embedding: np.ndarray
    label: Label

    def __post_init__(self) -> None:
        if len(self.embedding) != len(self.label):
            raise HapteraError(
                f"an embedding of {len(self.embedding):,} samples has a label of {len(self.label):,}; "
                "the same length was expected"
            )
        if not np.isfinite(self.embedding).all():
            raise HapteraError("an embedding holds values that are not finite")

    def join_with(self, other: "Part") -> "Part":
        """Both parts as one."""
        values = np.concatenate([self.label.values, other.label.values])
        label = Label(values, self.label.kind, self.label.classes)
        return Part(np.concatenate([self.embedding, other.embedding]), label)


def decode_knn(
    train: Part, validation: Part, test: Part, *, neighbours: Sequence[int] = NEIGHBOURS, distance: Distance = "cosine"
) -> Decoding:
    """Decode by nearest neighbours, their number chosen on the validation part."""
    usable = [k for k in neighbours if 1 <= k <= len(train.label)]
    if not usable:
        raise HapteraError(f"neighbours are {tuple(neighbours)}; the training part has {len(train.label)} samples")
    near = nearest(train.embedding, validation.embedding, max(usable), distance)
    chosen = max(usable, key=lambda k: objective(validation.label, vote(train.label, near[:, :k])))
    both = train.join_with(validation)
    predicted = vote(both.label, nearest(both.embedding, test.embedding, chosen, distance))
    return Decoding("knn", chosen, predicted, label_scores(test.label, predicted))


def decode_ridge(train: Part, validation: Part, test: Part, *, penalties: Sequence[float] = PENALTIES) -> Decoding:
    """Decode by least squares with a penalty, chosen on the validation part."""
    ridge = Ridge(train.embedding, label_outputs(train.label))
    choices = {
        penalty: objective(validation.label, read_outputs(ridge.predict(validation.embedding, penalty), train.label))
        for penalty in penalties
    }
    chosen = max(choices, key=lambda penalty: choices[penalty])
    both = train.join_with(validation)
    outputs = Ridge(both.embedding, label_outputs(both.label)).predict(test.embedding, chosen)
    predicted = read_outputs(outputs, both.label)
    return Decoding("ridge", chosen, predicted, label_scores(test.label, predicted))


def decode_constant(train: Part, test: Part) -> Decoding:
    """The best that can be said without looking: the mean direction, the mean, or the most frequent class."""
    every = vote(train.label, np.arange(len(train.label))[None, :])
    predicted = np.repeat(every, len(test.label), axis=0)
    return Decoding("constant", len(train.label), predicted, label_scores(test.label, predicted))


def windows(signal: np.ndarray, offset: Offset) -> np.ndarray:
    """The window of every sample as one row, `(samples, length * channels)`, the ends of the signal repeated."""
    places = offset.positions(np.arange(offset.left, offset.left + len(signal)))
    return offset.pad(signal)[places].reshape(len(signal), -1)


def nested_folds(trials: np.ndarray, folds: int = 3, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows of training, validation and test parts, cut between trials; each trial is in one test part.

    Args:
        trials: `(samples,)`, the trial of each.
        folds: how many test parts. Each is left out in turn, and the next one is the validation part.
        seed: of the order of trials.
    """
    names = np.unique(trials)
    if folds < 3 or len(names) < folds:
        raise HapteraError(f"{folds} folds of {len(names)} trials; at least 3, and a trial for each, were expected")
    order = np.random.default_rng(seed).permutation(len(names))
    parts = [np.isin(trials, names[order[start::folds]]) for start in range(folds)]
    for fold in range(folds):
        test, validation = parts[fold], parts[(fold + 1) % folds]
        yield tuple(np.flatnonzero(rows) for rows in (~(test | validation), validation, test))


def decode_bayesian(
    train: np.ndarray,
    label: Label,
    test: np.ndarray,
    truth: Label,
    *,
    places: int = 120,
    window: int = 5,
    smoothing: float = 1.0,
) -> Decoding:
    """Decode a label from counts.

    Args:
        train: counts `(samples, units)`.
        label: of the training samples; one dimension.
        test: counts of held-out samples, in the order of time.
        truth: their labels.
        places: how many values of the label are told apart; a discrete one has its classes.
        window: bins whose counts are taken together, centred; 1 for each by itself.
        smoothing: of tuning curves, in places; classes are not smoothed.
    """
    if label.values.ndim != 1:
        raise HapteraError(f"a Bayesian decoder takes a label of one dimension; this has {label.values.shape[1]}")
    if (train < 0).any() or (test < 0).any():
        raise HapteraError("a Bayesian decoder takes counts, of spikes for instance; the signal has negative values")
    codes, centres = _places(label, places)
    occupied = np.bincount(codes, minlength=len(centres))
    sums = np.stack([np.bincount(codes, unit, minlength=len(centres)) for unit in train.T.astype(float)], axis=1)
    if label.kind != "discrete" and smoothing > 0:
        mode: Literal["wrap", "nearest"] = "wrap" if label.kind == "angle" else "nearest"
        sums = gaussian_filter1d(sums, smoothing, axis=0, mode=mode)
        occupied = gaussian_filter1d(occupied.astype(float), smoothing, mode=mode)
    rates = np.maximum(sums / np.maximum(occupied, 1e-9)[:, None], FLOOR)
    counts = uniform_filter1d(test.astype(float), window, axis=0, mode="nearest") * window
    evidence = counts @ np.log(rates).T - window * rates.sum(1)
    evidence[:, occupied < 1e-6] = -np.inf  # never seen in training
    predicted = centres[evidence.argmax(1)]
    return Decoding("bayesian", window, predicted, label_scores(truth, predicted))


def _places(label: Label, places: int) -> tuple[np.ndarray, np.ndarray]:
    """The place of each sample, and the value that each place stands for."""
    if label.kind == "discrete":
        return label.values, np.arange(int(label.values.max()) + 1)
    low, high = (0.0, 2 * np.pi) if label.kind == "angle" else (label.values.min(), label.values.max())
    width = (high - low) / places
    if not width > 0:
        raise HapteraError("the label is constant; there is nothing to decode")
    codes = np.floor((label.values - low) / width).astype(np.int64).clip(0, places - 1)
    return codes, low + width * (np.arange(places) + 0.5)
