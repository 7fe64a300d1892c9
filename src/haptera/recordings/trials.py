"""Trials as spans of time: the samples inside of one have its number, the others are left out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from haptera.errors import HapteraError
from haptera.recordings.recording import Recording

Spans = Sequence[tuple[float, float]]


def with_trials(recording: Recording, spans: Spans, source: str) -> Recording:
    """Return the samples of a recording inside of spans of seconds, each with the number of its span.

    >>> recording = Recording({"x": np.zeros((5, 1))}, times=np.arange(5.0))
    >>> with_trials(recording, [(0.0, 2.0), (3.0, 4.0)], "x").trials.tolist()
    [0, 0, 1]
    """
    if recording.times is None or not len(spans):
        raise HapteraError(f"{source}: trials are spans of time, and there are {len(spans)}, or samples without times")
    starts, ends = (np.array(one, float) for one in zip(*sorted(spans), strict=True))
    trial = np.searchsorted(starts, recording.times + 1e-9, side="right") - 1
    inside = (trial >= 0) & (recording.times < ends[np.maximum(trial, 0)] - 1e-9)
    if not inside.any():
        raise HapteraError(f"{source}: no sample is inside of a trial")
    kept = recording[np.flatnonzero(inside)]
    note = f"{int((~inside).sum()):,} of {len(inside):,} samples left out: outside of trials"
    return replace(kept, trials=trial[inside], notes=(*kept.notes, *([] if inside.all() else [note])))
