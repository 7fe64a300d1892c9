"""NWB files: spikes counted in bins, or a series, with behaviour brought into the same bins.

Bins lie where every label that is asked for was recorded, inside the epochs if some are named, and inside trials if
these are asked for. What lies in a gap of a label is left out, and says so; there a new block begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.checks import check_number
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import EXPANDED, EXPANSION
from haptera.files.hdf5 import open_hdf5, values_of
from haptera.recordings.arrays import split_kind
from haptera.recordings.clocks import doubt_of_rate, doubt_of_steps
from haptera.recordings.kinds import note_of_turn
from haptera.recordings.label import Label, missing_values
from haptera.recordings.preparation import bin_edges, bin_spikes, resample
from haptera.recordings.recording import Recording
from haptera.recordings.series import Series, cell_series, find_series
from haptera.recordings.trials import innermost, note_of_overlaps

if TYPE_CHECKING:
    from haptera.recordings.reading import Source

BIN = 0.1
SPIKES = ("spikes", "units")


def read_nwb(asked: "Source") -> Recording:
    """Return the recording of an NWB file, as `Source.read` does."""
    path = str(asked.path)
    with open_hdf5(Path(path)) as file:
        try:
            return _read(file, asked)
        except HapteraError as error:
            raise HapteraError(str(error) if str(error).startswith(path) else f"{path}: {error}") from error


def _read(file: Any, asked: "Source") -> Recording:
    notes: list[str] = []
    signal, bin = asked.signal or _default_signal(file, notes), asked.bin
    spikes = series = None
    if signal in SPIKES:
        spikes = _spikes(file)
    else:
        series = find_series(file, signal)
        if series.values.ndim == 1:
            series = replace(series, values=series.values[:, None], kind=None)
        notes += series.notes
    table = None if asked.trials is None else _intervals(file, asked.trials)
    wanted = dict(map(split_kind, asked.labels))
    conditions = {} if table is None else {name: table[name] for name in wanted if name in table}
    behaviour = {name: find_series(file, name) for name in wanted if name not in conditions}
    for name, found in behaviour.items():
        notes += found.notes
        if found.path.rpartition("/")[2] != name.rpartition("/")[2]:
            notes.append(f"{name} is {found.path}")

    spans = _spans(file, spikes, series, list(behaviour.values()), asked.epoch)
    if bin is None:
        bin = BIN if series is None else _usual_step(series)
        notes.append(f"bins of {bin:g} s, as nothing else was said")
    _check_bins(spans, bin, spikes, series)
    parts = [bin_edges(start, stop, bin) for start, stop in spans]
    middle = np.concatenate([(edges[1:] + edges[:-1]) / 2 for edges in parts])
    if spikes is not None:
        values = np.concatenate([bin_spikes(spikes, edges) for edges in parts])
        notes += doubt_of_rate(values, bin, str(asked.path))
    elif series is not None:
        rows = [resample(series.times, series.values, edges) for edges in parts]
        values = np.concatenate(rows).astype(np.float32)

    found_labels = _resample(behaviour, wanted, parts, notes)
    notes += doubt_of_steps({name: found.times for name, found in behaviour.items()}, bin, str(asked.path))
    kept = np.isfinite(values).all(1)
    for label in found_labels.values():
        kept &= np.isfinite(label.values.reshape(len(label.values), -1)).all(1)
    trial = None
    if table is not None:
        starts, ends = (table[name].to_numpy(float) for name in ("start_time", "stop_time"))
        trial = innermost(starts, ends, middle)
        notes += note_of_overlaps(starts, ends)
        kept &= trial >= 0
        for name, column in conditions.items():
            found_labels[name], known = _label_of_trials(name, column, wanted[name], trial)
            kept &= known
    if not kept.any():
        raise HapteraError("no bin has the signal and all labels")
    if left := int((~kept).sum()):
        notes.append(f"{left:,} of {len(kept):,} bins left out: no label there, or no trial")
    return Recording(
        {signal: values[kept]},
        {name: replace(label, values=_codes(label)[kept]) for name, label in found_labels.items()},
        None if trial is None else trial[kept],
        middle[kept],
        {signal: _units(file)} if spikes is not None else {},
        str(asked.path),
        tuple(notes),
    )


def _resample(
    behaviour: Mapping[str, Series], wanted: Mapping[str, str | None], parts: Sequence[np.ndarray], notes: list[str]
) -> dict[str, Label]:
    """Return labels that were sampled at other times, in the bins of the signal; NaN where there is none."""
    labels = {}
    for name, found in behaviour.items():
        before = Label.of(found.values, wanted[name] or found.kind, name)
        rows = [resample(found.times, before.values, edges, before.kind, before.turn) for edges in parts]
        notes += [] if before.turn is None else [note_of_turn(name, before.turn)]
        labels[name] = Label(np.concatenate(rows), before.kind, before.classes, before.note)
    return labels


def _label_of_trials(name: str, column: pd.Series, kind: str | None, trial: np.ndarray) -> tuple[Label, np.ndarray]:
    """Return a column of the table of trials as a label of every bin, and `(bins,)`, whether it is known there."""
    values, place = column.to_numpy(), np.maximum(trial, 0)
    known = ~missing_values(values)
    if not known.any():
        raise HapteraError(f"no trial has a value of {name!r}")
    # A bin that is left out anyway stands for the first trial that has the label.
    return Label.of(values[np.where(known[place], place, known.argmax())], kind, name), known[place]


def _codes(label: Label) -> np.ndarray:
    """Codes of classes are integers again, now that no bin without one counts."""
    return np.nan_to_num(label.values).astype(np.int64) if label.kind == "discrete" else label.values


def _usual_step(series: Series) -> float:
    """Return the usual time from a sample to the next one."""
    step = float(np.median(np.diff(series.times))) if len(series.times) > 1 else 0.0
    if not step > 0:
        raise HapteraError(f"{series.path} has no usual time from sample to sample; say how wide bins are (bin)")
    return step


def _check_bins(
    spans: Sequence[tuple[float, float]], bin: float, spikes: Sequence[np.ndarray] | None, series: Series | None
) -> None:
    """Refuse to make far more bins than there is anything to count: one wrong time stamp is enough for that."""
    check_number("the width of a bin", bin, above=0, below=inf, what="a time in seconds")
    channels, stored = (len(spikes), sum(map(len, spikes))) if spikes is not None else (1, 0)
    if series is not None:
        channels, stored = series.values.shape[1], series.values.size
    bins = sum(stop - start for start, stop in spans) / bin
    if not 4 * bins * channels <= max(EXPANDED, EXPANSION * 8 * stored):
        first, last = spans[0][0], spans[-1][1]
        raise HapteraError(
            f"from {first:g} to {last:g} s there are {bins:,.0f} bins of {bin:g} s for {stored:,} values of "
            f"{channels:,} channels; is a time wrong? Else take wider bins (bin), or one epoch"
        )


def _default_signal(file: Any, notes: list[str]) -> str:
    """Return spikes where there are units, else the series of cells of an imaging plane; a note says which."""
    if "units" in file:
        return SPIKES[0]
    known = cell_series(file)
    best = min(known, key=lambda path: (_rank(path), path), default=None)
    if best is None:
        return SPIKES[0]
    others = ", ".join(path for path in known if path != best)
    notes.append(f"the signal is {best}, as there are no units" + f"; others are {others}" * bool(others))
    return best


def _rank(path: str) -> int:
    """Say how likely a series of cells is meant: deconvolved activity first, neuropil last."""
    order = ("deconv", "dff", "df_over_f", "fluor")
    return next(
        (place for place, word in enumerate(order) if word in path.lower()), 9 if "neuropil" in path.lower() else 5
    )


def _spikes(file: Any) -> list[np.ndarray]:
    if "units" not in file or not {"spike_times", "spike_times_index"} <= set(file["units"]):
        raise HapteraError("there are no units with spike times in the file; name a series as the signal")
    times = values_of(file["units/spike_times"], "units/spike_times").astype(float)
    index = values_of(file["units/spike_times_index"], "units/spike_times_index", "iu")
    if times.ndim != 1 or index.ndim != 1 or not len(index):
        raise HapteraError(f"units: spike times are {times.shape} and their index {index.shape}; two lists expected")
    if not np.isfinite(times).all():
        raise HapteraError(f"units/spike_times: {int((~np.isfinite(times)).sum()):,} times are not finite")
    steps = np.diff(index.astype(float), prepend=0.0)
    if (steps < 0).any() or index[-1] > len(times):
        unit = int((steps < 0).argmax()) if (steps < 0).any() else len(index) - 1
        raise HapteraError(
            f"units/spike_times_index is {index[unit]} for unit {unit}; the end of its spikes among "
            f"{len(times):,}, not before that of the unit before it, was expected"
        )
    return np.split(times, index.astype(np.int64))[: len(index)]


def _units(file: Any) -> pd.DataFrame:
    """One row for each unit: its id and every column with one plain value for each."""
    units = file["units"]
    count = len(units["spike_times_index"])
    columns: dict[str, np.ndarray] = {}
    for name, data in units.items():
        single = not name.endswith("_index") and f"{name}_index" not in units
        if getattr(data, "shape", None) == (count,) and single and _is_plain(data):
            columns[name] = values_of(data, f"units/{name}", "iufbOS")
    frame = pd.DataFrame(columns)
    return frame[sorted(frame, key=lambda name: name != "id")]


def _is_plain(data: Any) -> bool:
    """Say whether a column holds numbers or text, and not places in the file, such as those of electrode groups."""
    import h5py

    return data.dtype.kind in "iufbOS" and h5py.check_ref_dtype(data.dtype) is None


def _spans(
    file: Any, spikes: Sequence[np.ndarray] | None, series: Series | None, labels: Sequence[Series], epoch: str | None
) -> list[tuple[float, float]]:
    """Where all that is needed was recorded."""
    if series is not None:
        half = float(np.median(np.diff(series.times))) / 2 if len(series.times) > 1 else 0.0
        start, stop = float(series.times[0]) - half, float(series.times[-1]) + half
    elif labels:  # units are recorded all the time; no spike is a count of zero
        start, stop = -np.inf, np.inf
    else:
        every = np.concatenate(list(spikes or []))
        if not len(every):
            raise HapteraError("not one unit has a spike")
        start, stop = float(every.min()), float(every.max())
    for label in labels:
        start, stop = max(start, float(label.times[0])), min(stop, float(label.times[-1]))
    if stop <= start:
        raise HapteraError("signal and labels were recorded at different times")
    if epoch is None:
        return [(start, stop)]
    table = _intervals(file, "epochs")
    if "tags" not in table:
        raise HapteraError("intervals/epochs has no 'tags'; a name for each epoch was expected")
    tags = table["tags"].astype(str)
    if epoch not in set(tags):
        raise unknown("epoch", epoch, set(tags))
    spans = [
        (max(start, float(row["start_time"])), min(stop, float(row["stop_time"])))
        for _, row in table[tags == epoch].iterrows()
    ]
    spans = [(first, last) for first, last in spans if last > first]
    if not spans:
        raise HapteraError(f"epoch {epoch!r} has no time in which signal and labels were recorded")
    return spans


def _intervals(file: Any, name: str) -> pd.DataFrame:
    """A table of intervals with its plain columns; of a column with several values in a row, the first."""
    path = f"intervals/{name}"
    if path not in file:
        raise unknown("table of intervals", name, file.get("intervals", ()))
    group = file[path]
    columns: dict[str, np.ndarray] = {}
    for key in ("start_time", "stop_time"):
        if key not in group:
            raise HapteraError(f"{path} has no {key!r}; a time for each interval was expected")
        columns[key] = values_of(group[key], f"{path}/{key}").astype(float)
        if columns[key].ndim != 1 or len(columns[key]) != len(columns["start_time"]):
            raise HapteraError(f"{path}/{key} has the shape {columns[key].shape}; one time for each interval expected")
    rows = len(columns["start_time"])
    for key, data in group.items():
        if key.endswith("_index") or key in columns or getattr(data, "ndim", 0) != 1 or not _is_plain(data):
            continue
        values = values_of(data, f"{path}/{key}", "iufbOS")
        if f"{key}_index" in group:
            values = _first_values(
                values, values_of(group[f"{key}_index"], f"{path}/{key}_index", "iu"), f"{path}/{key}"
            )
        if len(values) == rows:
            columns[key] = values
    frame = pd.DataFrame({key: values.tolist() for key, values in columns.items()})
    return frame[np.isfinite(frame["start_time"])].sort_values("start_time", kind="stable", ignore_index=True)


def _first_values(values: np.ndarray, ends: np.ndarray, what: str) -> np.ndarray:
    """Return the first of the values of each row; `ends` says where those of a row end."""
    if (
        ends.ndim != 1
        or (len(ends) and (np.diff(ends.astype(float), prepend=0.0) < 0).any())
        or (len(ends) and ends[-1] > len(values))
    ):
        raise HapteraError(f"{what}_index does not rise from row to row up to {len(values):,}, the number of values")
    first = np.concatenate([[0], ends.astype(np.int64)[:-1]])[: len(ends)]
    return values[np.minimum(first, max(len(values) - 1, 0))] if len(values) else values
