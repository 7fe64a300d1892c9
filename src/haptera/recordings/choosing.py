"""The recording that arrays of a file make: which is the signal, which are labels, trials and times.

A signal is (samples, channels), a MATLAB cell of trials, or spike times: a cell of vectors, or two columns, times and
units, which are counted in bins. What nearly fits is made to fit, with a note: labels a little longer or shorter than
the signal are cut with it to the shortest, samples without a value are left out, and so are channels that miss most.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.recordings.arrays import TIMES, Arrays, split_kind
from haptera.recordings.cells import are_spikes, join_labels, join_trials
from haptera.recordings.clocks import doubt_of_step
from haptera.recordings.recording import Recording
from haptera.recordings.spikes import by_unit, from_spikes

SIGNALS = ("signal", "spikes", "neural", "counts", "tracks", "X")
SPIKE_TIMES = ("spike_times", "spike_time", "spiketimes", "t", "time", "times")
SPIKE_UNITS = ("spike_clusters", "clusters", "cluster", "unit", "units", "unit_id", "index", "neuron", "cell")
MIXED = "the signal is {} columns, {}; --signal takes some of them, by a pattern such as 'unit*'"
FAMILIES = 6
"""Families of columns that a note names; of more, the first."""
NEARLY = 0.01
"""Share of samples by which a label may be longer or shorter than the signal, or two samples."""


def recording_of(
    arrays: Arrays,
    signal: str | None,
    labels: Sequence[str],
    trials: str | None,
    *,
    bin: float | None = None,
    source: str,
) -> Recording:
    """Return the recording that the named arrays make."""
    wanted = dict(map(split_kind, labels))
    clock = next((name for name in TIMES if name in arrays and name not in wanted), None)
    taken = {*wanted, *([trials] if trials else []), *([clock] if clock else [])}
    spikes = _spikes(arrays, signal, {*wanted, *([trials] if trials else [])}, source)
    if spikes is not None:
        return _of_spikes(arrays, spikes, wanted, trials, clock, bin, source)
    if bin is not None:
        raise HapteraError(f"bin is for .nwb files and spike times; {source} has samples")
    found = {name: (_squeeze(_find(arrays, name, "label", source)), kind) for name, kind in wanted.items()}
    trial = None if trials is None else _squeeze(_find(arrays, trials, "array", source))
    name, values, columns = _signal(arrays, signal, taken, source)
    counters = [] if signal is not None else [place for place in range(len(columns)) if _counts_rows(values[:, place])]
    notes = []
    if counters and len(counters) < len(columns):
        notes.append(f"{', '.join(columns[place] for place in counters)} left out, which counts the rows")
        values = np.delete(values, counters, axis=1)
        columns = [column for place, column in enumerate(columns) if place not in counters]
    notes += [MIXED.format(len(columns), listed)] if signal is None and (listed := _families(columns)) else []
    if values.dtype == object and values.ndim == 2 and values.shape[1] == 1:
        values, own, turned = join_trials(values[:, 0], name, source)
        trial = own if trial is None or trial.dtype == object or len(trial) != len(values) else trial
        notes.append(f"{len(np.unique(own))} cells of {name} are trials" + ", turned to (samples, channels)" * turned)
        found = {key: (_of_trials(each, own, key, source), kind) for key, (each, kind) in found.items()}
    _check(name, values, {key: each for key, (each, _) in found.items()}, source)
    times = None
    if clock is not None:
        stamps = _squeeze(arrays[clock]())
        times = stamps.astype(float) if stamps.ndim == 1 and stamps.dtype.kind in "fiu" else None
    lengths = {"signal": len(values)} | {key: len(each) for key, (each, _) in found.items()}
    lengths |= {} if trial is None else {"trials": len(trial)}
    if (length := _nearly(lengths)) is not None:
        listed = ", ".join(f"{key} {count:,}" for key, count in lengths.items())
        notes.append(f"lengths differ a little ({listed}); all are cut at their end to {length:,} samples")
        values, trial = values[:length], None if trial is None else trial[:length]
        found = {key: (each[:length], kind) for key, (each, kind) in found.items()}
        times = None if times is None else times[:length]
    times = times if times is not None and len(times) == len(values) else None
    made = Recording.from_arrays({name: values}, found, trials=trial, times=times, source=source)
    made = made.with_columns(name, columns) if columns else made
    return replace(made, notes=(*notes, *made.notes, *doubt_of_step(made.step, source)))


def _of_trials(values: np.ndarray, trials: np.ndarray, name: str, source: str) -> np.ndarray:
    """Return the label of every sample, from a cell or a value for each trial, or as it is."""
    if values.dtype == object:
        return join_labels(values, trials, name, source)
    one_each = values.ndim == 1 and len(values) == trials.max() + 1 < len(trials)
    return values[trials] if one_each else values


def _counts_rows(values: np.ndarray) -> bool:
    """Say whether a column is the index of a table, whole numbers that rise by one, which is no channel."""
    return values.dtype.kind in "iuf" and len(values) > 1 and bool((np.diff(values) == 1).all())


def _check(name: str, values: np.ndarray, labels: "dict[str, np.ndarray]", source: str) -> None:
    """Refuse a signal or a label of a form that cannot be used."""
    if values.ndim != 2:
        raise HapteraError(f"{source}: signal {name!r} has the shape {values.shape}; (samples, channels) was expected")
    for label, each in labels.items():
        if each.dtype.kind not in "fiubUSO":
            raise HapteraError(f"{source}: label {label!r} holds {each.dtype}; numbers or text were expected")
        if not len(each):
            raise HapteraError(f"{source}: label {label!r} has no samples, signal {name!r} has {len(values):,}")
        if len(each) != len(values) and len(each) == values.shape[1]:
            raise HapteraError(
                f"{source}: signal {name!r} is {values.shape} and label {label!r} has {len(each):,} samples; "
                "it looks transposed, (samples, channels) was expected"
            )


def _nearly(lengths: "dict[str, int]") -> int | None:
    """Return the shortest of lengths that differ a little; None where they are the same, or far from it."""
    least, most = min(lengths.values()), max(lengths.values())
    return least if least < most <= least + max(2, NEARLY * most) else None


def _spikes(arrays: Arrays, signal: str | None, taken: set[str], source: str) -> "dict[str, np.ndarray] | None":
    """Return the spike times of units, where the signal is a list of times; None where it is not."""
    free = [key for key in arrays if key not in taken]
    if signal is None or (signal == "spikes" and signal not in arrays):
        stamps = next((key for key in SPIKE_TIMES if key in free), None)
        units = next((key for key in SPIKE_UNITS if key in free), None)
        others = set(free) - {stamps, units, "start", "end", "type", "keys"}
        if stamps and units and (stamps not in TIMES or not others):
            return by_unit(arrays[stamps](), arrays[units](), source)
    names = [signal] if signal is not None else [key for key in SIGNALS if key in free] or free
    for name in names:
        if name in arrays and (cells := arrays[name]()).dtype == object and cells.ndim == 1 and _of_arrays(cells):
            return {str(place): one for place, one in enumerate(cells)} if are_spikes(cells) else None
    return None


def _of_arrays(cells: np.ndarray) -> bool:
    return len(cells) > 0 and all(isinstance(one, np.ndarray) for one in cells)


def _of_spikes(
    arrays: Arrays,
    spikes: "dict[str, np.ndarray]",
    wanted: "dict[str, str | None]",
    trials: str | None,
    clock: str | None,
    bin: float | None,
    source: str,
) -> Recording:
    """Return counts of spikes, with labels whose times are in the same file."""
    stamps = None if clock is None else _squeeze(arrays[clock]())
    timed = {}
    for name in (*wanted, *([trials] if trials else [])):
        values = _squeeze(_find(arrays, name, "label", source))
        if stamps is None or len(stamps) != len(values):
            raise HapteraError(
                f"{source}: {name!r} has {len(values):,} values and spikes have times; an array `times` with the time "
                "of each value was expected, or a second file (behaviour)"
            )
        timed[name] = (stamps, values)
    of_trials = timed.pop(trials) if trials else None
    return from_spikes(spikes, bin=bin, labels=timed, kinds=wanted, trials=of_trials, source=source)


def _find(arrays: Arrays, name: str, what: str, source: str) -> np.ndarray:
    if name not in arrays:
        raise unknown(f"{what} in {source}", name, arrays)
    return arrays[name]()


def _signal(arrays: Arrays, name: str | None, taken: set[str], source: str) -> tuple[str, np.ndarray, list[str]]:
    """Return the signal's name, its values `(samples, channels)`, and its columns if there are several."""
    if name is not None and name in arrays:
        values = arrays[name]()
        return name, values[:, None] if values.ndim == 1 else values, []
    free = [key for key in arrays if key not in taken]
    if name is not None:
        columns = [key for key in free if fnmatchcase(key, name)]
        if not columns:
            raise unknown(f"signal in {source}", name, arrays)
        return name, _columns(arrays, columns, source), columns
    usual = [key for key in SIGNALS if key in free]
    if len(usual) == 1:
        return _signal(arrays, usual[0], taken, source)
    loaded = {key: arrays[key]() for key in free}
    matrices = [key for key, values in loaded.items() if values.ndim == 2 and values.dtype.kind in "fiub"]
    if len(matrices) == 1:
        return matrices[0], loaded[matrices[0]], []
    cells = [
        key for key, values in loaded.items() if values.dtype == object and values.ndim == 1 and _of_arrays(values)
    ]
    if not matrices and len(cells) == 1:
        return cells[0], loaded[cells[0]][:, None], []
    numbers = [key for key, values in loaded.items() if values.ndim == 1 and values.dtype.kind in "fiub"]
    if not matrices and len(numbers) > 1 and len({len(loaded[key]) for key in numbers}) == 1:
        return "signal", np.column_stack([loaded[key] for key in numbers]), numbers
    listed = ", ".join(f"{key} {values.shape}" for key, values in loaded.items()) or "nothing else"
    raise HapteraError(f"{source} has {listed}; name the signal, (samples, channels)")


def _families(columns: Sequence[str]) -> str:
    """Return columns by families that differ in their numbers alone; nothing where they are one, or all are apart.

    >>> _families(["unit1", "unit2", "unit10", "x"]), _families(["unit1", "unit2"]), _families(["a", "b", "c"])
    ('3 like unit1, x', '', '')
    """
    families: dict[str, list[str]] = {}
    for column in columns:
        families.setdefault(re.sub(r"\d+", "#", column), []).append(column)
    if len(families) == 1 or all(len(some) == 1 for some in families.values()):
        return ""
    some = [one[0] if len(one) == 1 else f"{len(one)} like {one[0]}" for one in families.values()]
    return ", ".join(some[:FAMILIES]) + ", ..." * (len(some) > FAMILIES)


def _columns(arrays: Arrays, names: Sequence[str], source: str) -> np.ndarray:
    columns = [arrays[name]() for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1 or column.dtype.kind not in "fiub" or len(column) != len(columns[0]):
            raise HapteraError(f"{source}: {name!r} is {column.dtype} {column.shape}; a column of numbers was expected")
    return np.column_stack(columns)


def _squeeze(values: np.ndarray) -> np.ndarray:
    """MATLAB has no vectors, only matrices with one row or column; a single value is an array of one."""
    return values.ravel() if values.ndim == 0 or (values.ndim == 2 and 1 in values.shape) else values
