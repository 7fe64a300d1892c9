"""Trials as spans of time: the samples inside of one have its number, the others are left out.

Spans may lie inside of one another, as a cue lies in a trial: a sample is of the one that began last.
"""

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
    trial = innermost(starts, ends, recording.times + 1e-9)
    inside = trial >= 0
    if not inside.any():
        raise HapteraError(f"{source}: no sample is inside of a trial")
    kept = recording[np.flatnonzero(inside)]
    notes = note_of_overlaps(starts, ends)
    outside = int((~inside).sum())
    notes += [f"{outside:,} of {len(inside):,} samples left out: outside of trials"] if outside else []
    return replace(kept, trials=trial[inside], notes=(*kept.notes, *notes))


def innermost(starts: np.ndarray, ends: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the span that each time lies in, or -1: of several the one that began last, and of these the shortest.

    A span holds its start and not its end. Cost: a sort, and a slice for each span.

    >>> innermost(np.array([0.0, 2.0]), np.array([6.0, 4.0]), np.array([1.0, 3.0, 5.0, 6.0])).tolist()
    [0, 1, 0, -1]
    """
    usable = np.flatnonzero(ends > starts)
    cuts = np.unique(np.concatenate([starts[usable], ends[usable]]))
    spans = np.full(len(cuts) + 1, -1)  # the first is of times before every cut
    first, last = np.searchsorted(cuts, starts) + 1, np.searchsorted(cuts, ends) + 1
    for span in usable[np.lexsort((-ends[usable], starts[usable]))]:
        spans[first[span] : last[span]] = span
    return np.asarray(spans[np.searchsorted(cuts, times, side="right")])


def note_of_overlaps(starts: np.ndarray, ends: np.ndarray) -> list[str]:
    """Return a note where spans overlap.

    >>> note_of_overlaps(np.array([0.0, 2.0, 6.0]), np.array([6.0, 4.0, 8.0]))
    ['1 of 3 trials begins before another has ended; where they overlap, a sample is of the one that began last']
    """
    usable = ends > starts
    order = np.argsort(starts[usable], kind="stable")
    before = np.maximum.accumulate(ends[usable][order])[:-1]
    count = int((starts[usable][order][1:] < before - 1e-9).sum())
    if not count:
        return []
    begin = "begins" if count == 1 else "begin"
    return [
        f"{count:,} of {len(starts):,} trials {begin} before another has ended; where they overlap, a sample is of the "
        "one that began last"
    ]
