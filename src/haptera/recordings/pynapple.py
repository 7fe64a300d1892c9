"""pynapple: its objects, and the .npz files and folders that it saves, read without it and without pickles.

    recording = from_pynapple(units, {"heading": angles}, bin=0.1)      # a TsGroup and a Tsd

A TsGroup is spikes of units, a Tsd or TsdFrame a signal or a label with times; what lies outside of an object's time
support is not counted. Objects are known by what they have (`t`, `values`, `time_support`), not by their class.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.files.npz import member, open_npz
from haptera.recordings.arrays import split_kind
from haptera.recordings.recording import Recording
from haptera.recordings.spikes import Timed, by_unit, from_series, from_spikes
from haptera.recordings.trials import with_trials

if TYPE_CHECKING:
    from haptera.recordings.reading import Source

KNOWN = {"t", "start", "end"}


def from_pynapple(
    signal: Any,
    labels: Mapping[str, Any] | None = None,
    *,
    bin: float | None = None,
    kinds: Mapping[str, str | None] | None = None,
    trials: Any = None,
    source: str = "pynapple objects",
) -> Recording:
    """Return a recording of pynapple's objects.

    Args:
        signal: a TsGroup, whose spikes are counted in bins, or a Tsd or TsdFrame.
        labels: name -> a Tsd or TsdFrame.
        bin: seconds, for a TsGroup; 0.1 if left out.
        kinds: name of a label -> its kind, where it is known.
        trials: an IntervalSet; samples outside of it are left out.
        source: where they are from, for messages.
    """
    timed = {name: _timed(one, f"label {name!r}") for name, one in (labels or {}).items()}
    epochs = _support(signal)
    if hasattr(signal, "keys") and hasattr(signal, "rates"):
        spikes = {str(key): np.asarray(signal[key].t, float) for key in signal.keys()}  # noqa: SIM118, not a dict
        made = from_spikes(spikes, bin=bin, labels=timed, kinds=kinds, epochs=epochs, source=source)
    else:
        made = from_series(_timed(signal, "the signal"), timed, bin, kinds or {}, source)
    return made if trials is None else with_trials(made, _spans(trials.start, trials.end), source)


def is_pynapple(path: Path) -> bool:
    """Say whether a .npz file is one of pynapple's."""
    with open_npz(path) as file:
        return set(file.files) >= KNOWN and bool({"d", "index"} & set(file.files))


def _are_intervals(path: Path) -> bool:
    with open_npz(path) as file:
        return set(file.files) >= {"start", "end", "type"} and "t" not in file.files


def read_pynapple(asked: "Source", files: Mapping[str, Path]) -> Recording:
    """Return the recording of pynapple's files, by their stems: the signal, and labels beside it."""
    if asked.epoch is not None:
        raise HapteraError(f"epoch is for .nwb files; {asked.path} has pynapple's intervals, which are trials")
    made = _read_signal(asked, files)
    if asked.trials is None:
        return made
    path = Path(asked.path)
    intervals = {one.stem: one for one in path.glob("*.npz") if _are_intervals(one)} if path.is_dir() else {}
    if asked.trials not in intervals:
        raise unknown(f"intervals in {path}", asked.trials, intervals)
    found = _read(intervals[asked.trials])
    return with_trials(made, _spans(found["start"], found["end"]), str(path))


def _read_signal(asked: "Source", files: Mapping[str, Path]) -> Recording:
    objects = {name: _read(path) for name, path in files.items()}
    wanted = dict(map(split_kind, asked.labels))
    for name in wanted:
        if name not in objects:
            raise unknown(f"label in {asked.path}", name, objects)
    name = asked.signal or _only(objects, wanted, asked)
    if name not in objects:
        raise unknown(f"signal in {asked.path}", name, objects)
    timed: dict[str, Timed] = {}
    for label in wanted:
        if "index" in objects[label]:
            raise HapteraError(f"{asked.path}: {label!r} is spikes of units; a label has a value at each time")
        timed[label] = (objects[label]["t"], objects[label]["d"])
    own, source = objects[name], str(asked.path)
    if "index" in own:
        epochs = _spans(own["start"], own["end"])
        spikes = by_unit(own["t"], own["index"], source)
        return from_spikes(spikes, bin=asked.bin, labels=timed, kinds=wanted, epochs=epochs, source=source)
    return from_series((own["t"], own["d"]), timed, asked.bin, wanted, source)


def _read(path: Path) -> dict[str, np.ndarray]:
    with open_npz(path) as file:
        return {
            key: np.asarray(member(file, key, path)) for key in ("t", "d", "index", "start", "end") if key in file.files
        }


def _only(objects: Mapping[str, Mapping[str, np.ndarray]], wanted: Mapping[str, Any], asked: "Source") -> str:
    units = [name for name, one in objects.items() if "index" in one]
    others = [name for name, one in objects.items() if name not in wanted and "d" in one and one["d"].ndim == 2]
    choices = units or others
    if len(choices) != 1:
        raise HapteraError(f"{asked.path} has {', '.join(objects)}; name the signal")
    return choices[0]


def _timed(thing: Any, what: str) -> Timed:
    times, values = getattr(thing, "t", None), getattr(thing, "values", None)
    if times is None or values is None or callable(values):
        raise HapteraError(f"{what} is {type(thing).__name__}; a Tsd or TsdFrame of pynapple was expected")
    return np.asarray(times, float), np.asarray(values)


def _support(thing: Any) -> Sequence[tuple[float, float]] | None:
    support = getattr(thing, "time_support", None)
    if support is None:
        return None
    return _spans(support.start, support.end)


def _spans(start: Any, end: Any) -> list[tuple[float, float]]:
    return list(zip(np.ravel(start).tolist(), np.ravel(end).tolist(), strict=True))


def as_label_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return a series of pynapple as a second file has labels: `times`, and the values under the name of the file."""
    found = _read(path)
    if "d" not in found:
        raise HapteraError(f"{path} is spikes of units; a second file has labels")
    return {"times": found["t"], path.stem: found["d"]}
