"""Behaviour from a second file: labels that another program wrote, brought to the samples of a recording by time.

A table of tracking has a column of times, in the clock of the recording, or a rate of frames and a start. Values are
averaged in the bins of the recording by their kind (`resample`), interpolated where a bin is empty and samples are
near; what lies outside of them, or in a gap, is left out with a note. Where neither side has times and both have as
many samples, they are joined row by row, and a note says so.
Cost: one pass over the second file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np

from haptera.checks import check_number
from haptera.errors import HapteraError, hint, unknown
from haptera.recordings.arrays import TIMES, open_arrays, split_kind
from haptera.recordings.clocks import doubt_of_steps
from haptera.recordings.kinds import note_of_turn
from haptera.recordings.label import Label, missing_values
from haptera.recordings.preparation import resample
from haptera.recordings.recording import Recording
from haptera.recordings.series import Series, in_order

CLOCKS = (*TIMES, "seconds", "time_s", "time (s)", "time_sec", "timestamp")
EVEN = 0.01
"""Share of a step by which samples of a block may be off an even clock."""


class Behaviour:
    """The second file of a recording.

    Args:
        path: a .csv, .npz, .mat or .h5 file, DeepLabCut's among them.
        rate: samples per second, where the file has no times.
        start: seconds, in the clock of the recording, of the first sample, where the file has no times.
    """

    def __init__(self, path: Path | str, rate: float | None = None, start: float = 0.0) -> None:
        self.path = Path(path).expanduser()
        if not self.path.is_file():
            beside = [entry.name for entry in self.path.parent.iterdir()] if self.path.parent.is_dir() else []
            raise HapteraError(f"there is no file {self.path};{hint(self.path.name, beside, cutoff=0.6)}".rstrip(";"))
        if rate is not None:
            check_number("the rate of the behaviour", rate, above=0, what="samples per second")
        with open_arrays(self.path) as arrays:
            if self.path.suffix.lower() == ".npy":  # one array without a name is called like its file
                arrays = {self.path.stem: arrays["signal"]}
            self.names = list(arrays)
            self.clock = next((name for name in arrays if name.lower().strip() in CLOCKS), None)
            self._values = {name: np.asarray(read()) for name, read in arrays.items()}
        if rate is not None and self.clock is not None:
            raise HapteraError(f"{self.path} has times, {self.clock!r}; a rate would contradict them, leave it out")
        self._rate, self._start = rate, start

    def join_to(self, recording: Recording, labels: Sequence[str]) -> Recording:
        """Return the recording with labels of this file, and only the samples that have all of them."""
        wanted = dict(map(split_kind, labels))
        columns = {name: self._column(name) for name in wanted}
        if recording.times is None or (self.clock is None and self._rate is None):
            return self._join_rows(recording, columns, wanted)
        series = {name: Series(name, self._times(len(one)), one, None) for name, one in columns.items()}
        joined = join_timed(recording, series, wanted, self.path.name)
        return replace(joined, notes=(*joined.notes, f"{', '.join(columns)} from {self.path.name}, by time"))

    def _join_rows(
        self, recording: Recording, columns: Mapping[str, np.ndarray], wanted: Mapping[str, str | None]
    ) -> Recording:
        for name, values in columns.items():
            if len(values) != len(recording):
                side = recording.source if recording.times is None else str(self.path)
                advice = (
                    "" if recording.times is None else "; say its rate (behaviour_rate), or give it a column `time`"
                )
                raise HapteraError(
                    f"{name!r} has {len(values):,} samples in {self.path} and {recording.source} has "
                    f"{len(recording):,}, and {side} has no times to join them by{advice}"
                )
        unused = "" if self._rate is None else ", and its rate is not used"
        notes = (
            *recording.notes,
            f"{', '.join(columns)} from {self.path.name}, row by row: there are no times{unused}",
        )
        lost = np.any([missing_values(values) for values in columns.values()], axis=0)
        if lost.all():
            raise HapteraError(f"{self.path}: no row has all of {', '.join(columns)}")
        if lost.any():
            notes = (
                *notes,
                f"{int(lost.sum()):,} of {len(lost):,} samples left out: {self.path.name} has no label there",
            )
            recording = recording[np.flatnonzero(~lost)]
        labels = {name: Label.of(values[~lost], wanted[name], name) for name, values in columns.items()}
        return replace(recording, labels={**recording.labels, **labels}, notes=notes)

    def _column(self, name: str) -> np.ndarray:
        if name not in self._values:
            raise unknown(f"label in {self.path}", name, self.names)
        values = self._values[name]
        values = values.ravel() if values.ndim == 2 and 1 in values.shape else values
        if values.ndim not in (1, 2) or not len(values):
            raise HapteraError(f"{self.path}: {name!r} has the shape {values.shape}; a value or row for each sample")
        return values

    def _times(self, samples: int) -> np.ndarray:
        if self.clock is None:
            assert self._rate is not None
            return self._start + np.arange(samples) / self._rate
        times = self._values[self.clock].ravel()
        if times.dtype.kind not in "fiu" or len(times) != samples:
            raise HapteraError(
                f"{self.path}: {self.clock!r} holds {len(times):,} of {times.dtype}; {samples:,} numbers were expected"
            )
        return times.astype(float)


def join_timed(
    recording: Recording, series: Mapping[str, Series], kinds: Mapping[str, str | None], origin: str
) -> Recording:
    """Return a recording with labels that were sampled at times of their own, and only the samples that have all.

    Args:
        recording: with times.
        series: name -> times and values.
        kinds: name -> kind, where it is known.
        origin: where the labels are from, for messages.
    """
    assert recording.times is not None
    notes: list[str] = []
    found: dict[str, Label] = {}
    kept = np.ones(len(recording), bool)
    for name, unordered in series.items():
        one = in_order(unordered)
        notes += one.notes
        before, times = label_of(one, kinds.get(name))
        values = to_samples(times, before, recording)
        notes += [] if before.turn is None else [note_of_turn(name, before.turn)]
        kept &= np.isfinite(values.reshape(len(values), -1)).all(1)
        found[name] = replace(before, values=values)
    if not kept.any():
        stamps = np.concatenate([one.times for one in series.values()])
        raise HapteraError(
            f"{recording.source} runs from {recording.times[0]:g} to {recording.times[-1]:g} s, {origin} from "
            f"{np.nanmin(stamps):g} to {np.nanmax(stamps):g} s; they have no sample in common. Is it another clock?"
        )
    notes += doubt_of_steps({name: one.times for name, one in series.items()}, recording.step or inf, origin)
    if left := int((~kept).sum()):
        notes.append(f"{left:,} of {len(kept):,} samples left out: {origin} has no label there")
        recording = recording[np.flatnonzero(kept)]
    labels = {name: settle(label, kept) for name, label in found.items()}
    return replace(recording, labels={**recording.labels, **labels}, notes=(*recording.notes, *notes))


def to_samples(times: np.ndarray, label: Label, recording: Recording) -> np.ndarray:
    """Return values of a label at the samples of a recording, each a bin as wide as a step; NaN where there is none."""
    assert recording.times is not None
    step, turn = recording.step or 1.0, label.turn
    ends = np.flatnonzero(np.diff(recording.blocks)) + 1
    parts = []
    for middle in np.split(recording.times, ends):
        edges = middle[0] - step / 2 + step * np.arange(len(middle) + 1)
        if np.abs(edges[:-1] + step / 2 - middle).max() <= EVEN * step:
            parts.append(resample(times, label.values, edges, label.kind, turn))
        else:  # an uneven clock: each sample is a bin of its own
            bins = (np.array([at - step / 2, at + step / 2]) for at in middle)
            parts.append(np.concatenate([resample(times, label.values, bin, label.kind, turn) for bin in bins]))
    values = np.concatenate(parts).astype(float)
    inside = (recording.times >= times[0] - step) & (recording.times <= times[-1] + step)
    values[~inside] = np.nan  # a class is not kept for ever
    return values


def label_of(series: Series, kind: str | None) -> tuple[Label, np.ndarray]:
    """Return the label of the samples that have a value, and their times."""
    known = ~missing_values(series.values)
    if not known.any():
        raise HapteraError(f"not one sample of {series.path!r} has a value")
    return Label.of(series.values[known], kind, series.path), series.times[known]


def settle(label: Label, kept: np.ndarray) -> Label:
    """Return the label of samples that have one; codes of classes are integers again."""
    values = label.values[kept]
    return replace(label, values=values.astype(np.int64) if label.kind == "discrete" else values)
