"""A Bayesian decoder: tuning curves from training data, Poisson counts, independent units, a flat prior.

It is what an embedding has to be compared with: log P(label | counts) = Σ_units n log λ(label) − λ(label) + const.
Counts summed over a window of bins are Poisson with the summed rate, so a window is a moving sum here.
Cost: bins x units x places, one product.
"""

from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter1d, uniform_filter1d

from holdfast.embed.decoding import Decoding
from holdfast.embed.label import Label
from holdfast.embed.scores import label_scores
from holdfast.errors import HoldfastError

FLOOR = 1e-3
"""Counts per bin that no tuning curve falls below: a unit silent in training must not rule a place out for ever."""


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
        raise HoldfastError(f"a Bayesian decoder takes a label of one dimension; this has {label.values.shape[1]}")
    if (train < 0).any() or (test < 0).any():
        raise HoldfastError("a Bayesian decoder takes counts, of spikes for instance; the signal has negative values")
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
        raise HoldfastError("the label is constant; there is nothing to decode")
    codes = np.floor((label.values - low) / width).astype(np.int64).clip(0, places - 1)
    return codes, low + width * (np.arange(places) + 0.5)
