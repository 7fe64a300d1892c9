"""Spike times counted in bins: lists of times for each unit, from Python, MATLAB cell arrays, pynapple or two columns.

    recording = from_spikes([times_of_unit_0, times_of_unit_1], bin=0.1, labels={"heading": (stamps, angles)})

Bins run from the first to the last spike, or over epochs where they are known; where there are labels, over the time in
which all of them were recorded. A unit that does not fire there counts zero. Labels have times of their own and are
brought into the bins by their kind.
Cost: one pass over the spikes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from haptera.checks import check_number
from haptera.errors import HapteraError
from haptera.recordings.behaviour import join_timed
from haptera.recordings.clocks import doubt_of_rate
from haptera.recordings.preparation import bin_edges, bin_spikes
from haptera.recordings.recording import Recording
from haptera.recordings.series import Series, in_order

BIN = 0.1
"""Seconds, where nobody says how wide bins are."""
MOST_BINS = 20_000_000
"""Bins times units beyond which one of the times must be wrong."""

TRIALS = "trials"

Timed = tuple[np.ndarray, np.ndarray]


def from_spikes(
    spikes: Sequence[np.ndarray] | Mapping[str, np.ndarray],
    *,
    bin: float | None = None,
    labels: Mapping[str, Timed] | None = None,
    kinds: Mapping[str, str | None] | None = None,
    trials: Timed | None = None,
    epochs: Sequence[tuple[float, float]] | None = None,
    source: str = "the recording",
) -> Recording:
    """Count spikes of units in bins.

    Args:
        spikes: times in seconds for each unit, in any order; a mapping names the units.
        bin: the width of bins in seconds; 0.1 if left out.
        labels: name -> times in seconds, and values.
        kinds: name of a label -> its kind, where it is known.
        trials: times in seconds, and the trial of each.
        epochs: beginnings and ends, in seconds, of what is counted; everything if left out.
        source: where they are from, for messages.

    >>> found = from_spikes([[0.0, 0.05, 0.31], [0.12]], bin=0.1)
    >>> found.signal().tolist(), found.times.round(2).tolist()
    ([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.05, 0.15, 0.25])
    """
    units = dict(spikes) if isinstance(spikes, Mapping) else {str(place): one for place, one in enumerate(spikes)}
    times = {name: _times(one, f"{source}: unit {name}") for name, one in units.items()}
    notes = [] if bin is not None else [f"bins of {BIN:g} s, as nothing else was said"]
    series = {name: timed_series(name, timed, source) for name, timed in (labels or {}).items()}
    if trials is not None:
        series[TRIALS] = timed_series(TRIALS, trials, source)
    start, stop = _span(times, list(series.values()), epochs, source)
    width = BIN if bin is None else bin
    check_number("the width of a bin", width, above=0, what="a time in seconds")
    if (stop - start) / width * len(units) > MOST_BINS:
        raise HapteraError(
            f"{source}: from {start:g} to {stop:g} s there are {(stop - start) / width:,.0f} bins of {width:g} s for "
            f"{len(units)} units; is a time wrong, or in another unit than seconds? Else take wider bins"
        )
    spans = [(max(start, first), min(stop, last)) for first, last in epochs or [(start, stop)]]
    parts = [bin_edges(first, last, width) for first, last in spans if last - first >= width * (1 - 1e-9)]
    if not parts:
        raise HapteraError(f"{source}: no bin of {width:g} s fits into the epochs in which there are spikes and labels")
    values = np.concatenate([bin_spikes(list(times.values()), edges) for edges in parts])
    counts = Recording(
        {"spikes": values},
        times=np.concatenate([(edges[1:] + edges[:-1]) / 2 for edges in parts]),
        channels={"spikes": pd.DataFrame({"id": list(times)})},
        source=source,
        notes=(*notes, *doubt_of_rate(values, width, source)),
    )
    if not series:
        return counts
    joined = join_timed(counts, series, {**(kinds or {}), TRIALS: "discrete"}, source)
    own = dict(joined.labels)
    trial = own.pop(TRIALS, None)
    return replace(joined, labels=own, trials=None if trial is None else np.array(trial.readable))


def from_series(
    signal: Timed, labels: Mapping[str, Timed], bin: float | None, kinds: Mapping[str, str | None], source: str
) -> Recording:
    """Return a signal that has a value at each time, with labels at times of their own; it has no bins."""
    if bin is not None:
        raise HapteraError(f"bin is for spikes of units; the signal of {source} has samples")
    series = timed_series("signal", signal, source)
    values = series.values[:, None] if series.values.ndim == 1 else series.values
    made = Recording.from_arrays({"signal": values}, times=series.times, source=source)
    if not labels:
        return made
    return join_timed(made, {name: timed_series(name, one, source) for name, one in labels.items()}, kinds, source)


def by_unit(times: np.ndarray, units: np.ndarray, source: str) -> dict[str, np.ndarray]:
    """Return the spikes of each unit from one list of times and one of units, numbers in the order of numbers."""
    times, units = np.ravel(times), np.ravel(units)
    if len(times) != len(units) or not len(times):
        raise HapteraError(f"{source}: {len(times):,} spike times and {len(units):,} units; one for each was expected")
    names, codes = np.unique(units, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    cuts = np.cumsum(np.bincount(codes))[:-1]
    return {_plain(name): one for name, one in zip(names, np.split(times[order], cuts), strict=True)}


def _plain(name: object) -> str:
    return str(int(name)) if isinstance(name, float | np.floating) and float(name).is_integer() else str(name)


def _times(values: object, what: str) -> np.ndarray:
    try:
        times = np.asarray(values, float).ravel()
    except (TypeError, ValueError) as error:
        raise HapteraError(
            f"{what} holds {type(values).__name__}; a list of spike times in seconds expected"
        ) from error
    if not np.isfinite(times).all():
        raise HapteraError(f"{what} has {int((~np.isfinite(times)).sum()):,} spike times that are not finite")
    return times


def timed_series(name: str, timed: Timed, source: str) -> Series:
    """Return times and values of a label, checked and in order."""
    times, values = (np.asarray(one) for one in timed)
    if times.ndim != 1 or times.dtype.kind not in "fiu" or len(times) != len(values):
        raise HapteraError(
            f"{source}: label {name!r} has {len(values):,} values and times of shape {times.shape}; a time in seconds "
            "for each was expected"
        )
    return in_order(Series(name, times.astype(float), values, None))


def _span(
    times: Mapping[str, np.ndarray],
    series: Sequence[Series],
    epochs: Sequence[tuple[float, float]] | None,
    source: str,
) -> tuple[float, float]:
    every = np.concatenate([*times.values(), np.zeros(0)])
    if not len(every):
        raise HapteraError(f"{source}: not one of {len(times)} units has a spike")
    start, stop = float(every.min()), float(every.max())
    if epochs:
        start, stop = min(first for first, _ in epochs), max(last for _, last in epochs)
    if series:
        start, stop = (side([float(one.times[end]) for one in series]) for side, end in ((max, 0), (min, -1)))
    if not stop > start:
        raise HapteraError(f"{source}: there is no time in which spikes and all labels were recorded")
    return start, stop
