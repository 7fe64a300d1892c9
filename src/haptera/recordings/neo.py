"""Neo: its blocks and segments, and every file that Neo reads, where it is installed.

    recording = from_neo(block, ["heading"], bin=0.05)
    recording = Source("rat.plx", labels=["heading"], bin=0.05).read()          # through neo.io

Spike trains are units, counted in bins; an AnalogSignal or IrregularlySampledSignal is a signal or a label, by its
name; the epochs of an Epoch, by its name, or else segments where there are several, are trials. Segments whose times
overlap are put one after the other. Objects are known by what they have, not by their class. Neo's own pickles are
refused, since they may run code.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.extras import import_extra
from haptera.recordings.arrays import split_kind
from haptera.recordings.recording import Recording
from haptera.recordings.spikes import Timed, from_series, from_spikes
from haptera.recordings.trials import with_trials

if TYPE_CHECKING:
    from haptera.recordings.reading import Source

SPIKES = "spikes"
ANGLES = {"rad": "angle", "deg": "degrees"}
"""Units of quantities, and the kind of a label that is in them."""


def read_neo(asked: "Source") -> Recording:
    """Return the recording of a file that Neo reads, as `Source.read` does."""
    path = Path(asked.path)
    neo_io = import_extra("neo.io", "", f"reading {path.name}")
    if asked.epoch is not None:
        raise HapteraError(f"epoch is for .nwb files; {path.name} is read by Neo, whose epochs are trials")
    try:
        reader = neo_io.get_io(str(path))
        if "pickle" in type(reader).__name__.lower():
            raise HapteraError(f"{path} is a pickle, which may run code, and is not opened; save it in another format")
        blocks = reader.read(lazy=False)
    except HapteraError:
        raise
    except Exception as error:  # Neo has a reader for each of some sixty formats, and each fails in its own way
        raise HapteraError(f"Neo cannot read {path}: {type(error).__name__}: {error}") from error
    segments = [segment for block in blocks for segment in getattr(block, "segments", [block])]
    return from_neo(segments, asked.labels, asked.signal, bin=asked.bin, trials=asked.trials, source=str(path))


def from_neo(
    data: Any,
    labels: Sequence[str] = (),
    signal: str | None = None,
    *,
    bin: float | None = None,
    trials: str | None = None,
    source: str = "Neo objects",
) -> Recording:
    """Return a recording of Neo's objects.

    Args:
        data: a Block, a Segment, or a list of segments.
        labels: names of signals that are labels; `name:kind` says of what kind one is.
        signal: `spikes`, or the name of a signal, or a pattern such as `Column*`; where left out, spikes if there are
            some, else the only signal.
        bin: seconds, for spikes; 0.1 if left out.
        trials: the name of the Epoch whose epochs are trials.
        source: where they are from, for messages.
    """
    segments = list(getattr(data, "segments", data if isinstance(data, list | tuple) else [data]))
    if not segments or not all(hasattr(one, "spiketrains") for one in segments):
        raise HapteraError(f"{source} has no segments; a Block or Segment of Neo was expected")
    kinds = dict(map(split_kind, labels))
    kinds = {name: kind or _kind_by_unit(segments[0], name) for name, kind in kinds.items()}
    spans, shifts = _in_a_row(segments)
    series = _series(segments, shifts, source)
    units = _units(segments, shifts, source)
    timed = {name: _named(series, name, "label", source) for name in kinds}
    if signal is None and not units:
        free = [name for name in series if name not in kinds]
        if len(free) != 1:
            raise HapteraError(f"{source} has the signals {', '.join(free) or '(none)'}; name the signal")
        signal = free[0]
    if signal in (None, SPIKES):
        if not units:
            raise HapteraError(f"{source} has no spike trains; it has {', '.join(series) or 'nothing'}")
        made = from_spikes(units, bin=bin, labels=timed, kinds=kinds, epochs=spans, source=source)
    else:
        made = from_series(_named(series, str(signal), "signal", source), timed, bin, kinds, source)
    if trials is not None:
        return with_trials(made, _epochs(segments, shifts, trials, source), source)
    return with_trials(made, spans, source) if len(spans) > 1 else made


def _in_a_row(segments: Sequence[Any]) -> tuple[list[tuple[float, float]], list[float]]:
    """Return where each segment begins and ends, and by how many seconds it is moved to follow the one before."""
    spans: list[tuple[float, float]] = []
    shifts: list[float] = []
    for segment in segments:
        start, stop = _seconds(segment.t_start), _seconds(segment.t_stop)
        # A second apart, so that no window goes across.
        shift = spans[-1][1] + 1.0 - start if spans and start < spans[-1][1] else 0.0
        shifts.append(shift)
        spans.append((start + shift, stop + shift))
    return spans, shifts


def _units(segments: Sequence[Any], shifts: Sequence[float], source: str) -> dict[str, np.ndarray]:
    """Return the spikes of each unit over all segments."""
    counts = [len(segment.spiketrains) for segment in segments]
    if len(set(counts)) > 1:
        raise HapteraError(f"{source}: segments have {counts} spike trains; one for each unit was expected in all")
    named = [[str(train.name or place) for place, train in enumerate(segment.spiketrains)] for segment in segments]
    first, *others = [set(one) for one in named]
    if any(other != first and other & first for other in others):
        strange = sorted(set().union(*others) ^ first)
        raise HapteraError(
            f"{source}: not all segments have the unit {strange[0]}; the same units were expected in every segment"
        )
    by_name = len(first) == counts[0] and all(other == first for other in others)
    names = named[0] if len(first) == counts[0] else [str(place) for place in range(counts[0])]
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for segment, shift, own in zip(segments, shifts, named, strict=True):
        for name, train in zip(own if by_name else names, segment.spiketrains, strict=True):
            found[name].append(_seconds_of(train) + shift)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _kind_by_unit(segment: Any, name: str) -> str | None:
    """Return the kind of a signal of one channel that is in radians or degrees; None of all others."""
    every = [*segment.analogsignals, *getattr(segment, "irregularlysampledsignals", [])]
    for one in every:
        if one.name == name and getattr(one, "shape", ())[1:] == (1,):
            return ANGLES.get(str(getattr(one, "dimensionality", "")))
    return None


def _series(segments: Sequence[Any], shifts: Sequence[float], source: str) -> dict[str, Timed]:
    """Return the signals that all segments have, with their times."""
    found: dict[str, list[Timed]] = {}
    for segment, shift in zip(segments, shifts, strict=True):
        every = [*segment.analogsignals, *getattr(segment, "irregularlysampledsignals", [])]
        for place, one in enumerate(every):
            values = np.asarray(one.magnitude, float)
            values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
            found.setdefault(str(one.name or f"signal {place}"), []).append((_seconds_of(one.times) + shift, values))
    joined = {}
    for name, parts in found.items():
        if len({values.shape[1:] for _, values in parts}) > 1:
            raise HapteraError(f"{source}: signal {name!r} has other channels in other segments")
        if len(parts) == len(segments):
            joined[name] = (np.concatenate([times for times, _ in parts]), np.concatenate([one for _, one in parts]))
    return joined


def _epochs(segments: Sequence[Any], shifts: Sequence[float], name: str, source: str) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    known = set()
    for segment, shift in zip(segments, shifts, strict=True):
        for epoch in segment.epochs:
            known.add(str(epoch.name))
            if epoch.name == name:
                starts = _seconds_of(epoch.times) + shift
                spans += list(zip(starts.tolist(), (starts + _seconds_of(epoch.durations)).tolist(), strict=True))
    if not spans:
        raise unknown(f"epochs in {source}", name, sorted(known))
    return sorted(spans)


def _named(series: Mapping[str, Timed], name: str, what: str, source: str) -> Timed:
    """Return a signal, or those that a pattern such as `Column*` fits, side by side."""
    if name in series:
        return series[name]
    some = [series[each] for each in series if fnmatchcase(each, name)]
    if not some or any(len(times) != len(some[0][0]) for times, _ in some):
        raise unknown(f"{what} in {source}", name, series)
    return some[0][0], np.column_stack([values for _, values in some])


def _seconds(quantity: Any) -> float:
    return float(np.ravel(_seconds_of(quantity))[0])


def _seconds_of(quantity: Any) -> np.ndarray:
    """Return times of Neo, which carry a unit, in seconds."""
    return np.asarray(quantity.rescale("s").magnitude, float)
