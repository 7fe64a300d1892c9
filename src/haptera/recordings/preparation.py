"""Preparation: bins, smoothing and scaling of signals, none of which lets one part of a recording see another.

- Spikes are counted in bins; behaviour that was sampled at other times is averaged in each bin by its kind (a mean, a
  circular mean, the most frequent class), and interpolated over bins that no sample falls into.
- Smoothing stays inside a block, so a part that was cut off is smoothed by itself; `causal` looks back only.
- `Scaling` is fitted on the training part and applied to any.

Cost: one pass over the spikes, one over the samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import convolve1d

from haptera.checks import check_number
from haptera.errors import HapteraError
from haptera.recordings.label import Kind

REACH = 4.0
"""A Gaussian kernel ends so many standard deviations from its middle."""


def bin_edges(start: float, stop: float, width: float) -> np.ndarray:
    """Edges of all bins of that width, in seconds, that fit between two times.

    >>> bin_edges(0.0, 1.05, 0.25).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    check_number("the width of a bin", width, above=0, what="a time in seconds")
    count = int(np.floor((stop - start) / width + 1e-9))
    if count < 1:
        raise HapteraError(f"no bin of {width:g} s fits between {start:g} and {stop:g} s")
    return start + width * np.arange(count + 1)


def bin_spikes(spikes: Sequence[np.ndarray], edges: np.ndarray) -> np.ndarray:
    """Counts `(bins, units)` as float32; a spike at an edge belongs to the bin that begins there.

    Args:
        spikes: for each unit, its times in seconds, in any order.
        edges: of equal width.
    """
    bins = len(edges) - 1
    counts = np.empty((bins, len(spikes)), np.float32)
    for unit, times in enumerate(spikes):
        place, inside = _place(np.asarray(times, float), edges)
        counts[:, unit] = np.bincount(place[inside], minlength=bins)
    return counts


def _place(times: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bin of each time, and whether there is one."""
    # 1e-9: an edge that is a rounding error above a time must not push it into the bin before.
    place = np.floor((times - edges[0]) / (edges[1] - edges[0]) + 1e-9).astype(np.int64)
    return place, (place >= 0) & (place < len(edges) - 1)


def resample(
    times: np.ndarray,
    values: np.ndarray,
    edges: np.ndarray,
    kind: Kind = "continuous",
    turn: float | None = None,
) -> np.ndarray:
    """Values that were sampled at `times`, one for each bin; not a number where a gap is wider than a bin.

    Args:
        times: rising, in seconds.
        values: `(samples,)` or, if continuous, `(samples, dimensions)`; samples that are not a number do not count.
        edges: of the bins, of equal width.
        kind: how they are averaged. Classes have to be numbers here, and gaps keep the class before them.
        turn: of numbers that wrap; their means go around it, where the mean of both ends would be in the middle.
    """
    if len(times) != len(values):
        raise HapteraError(f"there are {len(values):,} values and {len(times):,} times; one for each was expected")
    values = np.asarray(values, float)
    usable = np.isfinite(values.reshape(len(values), -1)).all(1) & np.isfinite(times)
    times, values = np.asarray(times, float)[usable], values[usable]
    if not len(times):
        raise HapteraError("not one sample of the label is a number")
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    if kind == "angle":
        waves = _mean_in_bins(times, np.column_stack([np.cos(values), np.sin(values)]), edges)
        return np.mod(np.arctan2(waves[:, 1], waves[:, 0]), 2 * np.pi)
    if kind == "discrete":
        return _mode_in_bins(times, values, edges)
    means = _mean_in_bins(times, values.reshape(len(values), -1), edges)
    if turn is not None and values.ndim == 1:
        around = _mean_in_bins(times, np.unwrap(values, period=turn)[:, None], edges)
        off = np.mod(around - means, turn)
        across = np.minimum(off, turn - off) > 1e-6 * turn  # all others keep every digit
        means = np.where(across, values.min() + np.mod(around - values.min(), turn), means)
    return means[:, 0] if values.ndim == 1 else means


def _mean_in_bins(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Means `(bins, dimensions)`, interpolated where a bin is empty and samples are near."""
    bins = len(edges) - 1
    place, inside = _place(times, edges)
    count = np.bincount(place[inside], minlength=bins)
    columns = [np.bincount(place[inside], column[inside], minlength=bins) for column in values.T]
    with np.errstate(invalid="ignore"):
        means = np.stack(columns, axis=1) / count[:, None]
    empty, middle = count == 0, (edges[:-1] + edges[1:]) / 2
    if empty.any():
        between = np.stack([np.interp(middle[empty], times, column) for column in values.T], axis=1)
        between[_far(middle[empty], times, edges)] = np.nan
        means[empty] = between
    return means


def _mode_in_bins(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    bins = len(edges) - 1
    classes, codes = np.unique(values, return_inverse=True)
    place, inside = _place(times, edges)
    count = np.bincount(place[inside] * len(classes) + codes[inside], minlength=bins * len(classes))
    count = count.reshape(bins, len(classes))
    result, empty = classes[count.argmax(1)].astype(float), count.sum(1) == 0
    middle = (edges[:-1] + edges[1:]) / 2
    before = np.searchsorted(times, middle[empty], side="right") - 1
    result[empty] = np.where(before >= 0, values[np.maximum(before, 0)], np.nan)
    return result


def _far(middle: np.ndarray, times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Bins outside the times, or in a gap of samples wider than a bin and three usual steps."""
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    most = max(edges[1] - edges[0], 3 * usual)
    after = np.searchsorted(times, middle).clip(1, max(len(times) - 1, 1))
    gap = times[after.clip(max=len(times) - 1)] - times[after - 1]
    return (middle < times[0]) | (middle > times[-1]) | (gap > most * (1 + 1e-9))


def smooth(
    signal: np.ndarray, width: float, blocks: np.ndarray | None = None, *, shape: str = "gaussian", causal: bool = False
) -> np.ndarray:
    """A moving average that stays inside a block; at its ends the kernel is cut and made to sum to 1 again.

    Args:
        signal: `(samples, channels)`.
        width: samples: the standard deviation of a `gaussian` kernel, the length of a `box`
            (an even one that is not causal is longer by one, to have a middle).
        blocks: `(samples,)`, as `Recording.blocks`; None for one block.
        shape: `gaussian` or `box`.
        causal: only samples up to the present count.
    """
    check_number("the width of smoothing", width, above=0, what="a number of samples")
    if shape not in ("gaussian", "box"):
        raise HapteraError(f"shape is {shape!r}; 'gaussian' or 'box' was expected")
    reach = (
        int(np.ceil(REACH * width)) if shape == "gaussian" else int(width) - (1 if causal else (int(width) + 1) // 2)
    )
    lags = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (lags / width) ** 2) if shape == "gaussian" else np.ones(len(lags))
    if causal:
        kernel[lags < 0] = 0  # convolution: positive lags are the past
    kernel /= kernel.sum()
    result = np.empty(signal.shape, np.float32)
    ends = [0, len(signal)] if blocks is None else [0, *(np.flatnonzero(np.diff(blocks)) + 1), len(signal)]
    for first, last in pairwise(ends):
        part = signal[first:last].astype(float)
        weight = convolve1d(np.ones(len(part)), kernel, mode="constant")
        result[first:last] = convolve1d(part, kernel, axis=0, mode="constant") / weight[:, None]
    return result


def varies(signal: np.ndarray) -> np.ndarray:
    """Say of every channel whether it has more than one value.

    >>> varies(np.array([[0, 1], [0, 2]])).tolist()
    [False, True]
    """
    return np.asarray(signal.min(0) != signal.max(0))


@dataclass(frozen=True, eq=False)
class Scaling:
    """Means and deviations of the channels of a training part, by which any part is scaled.

    Attributes:
        mean: `(channels,)`.
        deviation: `(channels,)`; 1 for a channel that never changed.
    """

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, signal: np.ndarray) -> "Scaling":
        """Learn from the training part, `(samples, channels)`."""
        deviation = signal.std(0, dtype=float)
        return cls(signal.mean(0, dtype=float), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, signal: np.ndarray) -> np.ndarray:
        """Any part in units of the training part's deviations."""
        return ((signal - self.mean) / self.deviation).astype(np.float32)
