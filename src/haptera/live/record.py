"""Records: what a guard knows about one step, as plain values, and what several of them say together.

A row is a record as JSON holds it: numbers with six significant digits, times with six decimals, None for what is not
known. `haptera.live.log` writes rows, `haptera.live.page` and the meters read them.
"""

import os
import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite, nan
from typing import Any

EVENTS = (
    "alarm",
    "cleared",
    "fallback",
    "return",
    "reset",
    "skipped",
    "snapshot",
    "restored",
    "label",
    "start",
    "stop",
    "fault",
)
"""What can happen."""
ADAPTED, UNADAPTED = "adapted", "unadapted"
TIMES = ("time", "monotonic", "since_time")
Row = dict[str, Any]


@dataclass(frozen=True)
class StepRecord:
    """One batch.

    Attributes:
        step: its number, from 1.
        time: when it was answered, unix seconds of the wall clock, which may jump.
        monotonic: seconds of a clock that never goes back; differences are durations, also where `time` jumped.
        images: in the batch.
        shift_size: of the recent images, corrected for their number; NaN where there is nothing to compare with.
        where: the layer at which the shift is largest.
        nearest: the known corruption that it is most like.
        accuracy: predicted, of the recent images; NaN where nothing can be told.
        low: lower end of its interval.
        high: upper end of it.
        entropy: of the batch's mean prediction, in nats.
        largest: the largest share of one class in the mean prediction.
        kept: share of the images that the adapter learnt from, where it says so.
        change: norm of the adapter's change, where it says so.
        resets: of the adapter so far, its own and the guard's.
        skipped: 1 where the batch was predicted and not learnt from, else 0.
        fallback: 1 where the unadapted model answered because the adapter is in quarantine or on probation, else 0.
        latency: seconds from the call to the answer, time spent waiting for other threads included.
        memory: of the process, in MB.
        served: `adapted` or `unadapted`.
        changed: share of the compared images that adapted and unadapted model name differently; NaN if none were.
        events: what happened, names out of `EVENTS`.
    """

    step: int
    time: float
    monotonic: float
    images: int
    shift_size: float = nan
    where: str = ""
    nearest: str = ""
    accuracy: float = nan
    low: float = nan
    high: float = nan
    entropy: float = nan
    largest: float = nan
    kept: float = nan
    change: float = nan
    resets: int = 0
    skipped: int = 0
    fallback: int = 0
    latency: float = nan
    memory: float = nan
    served: str = UNADAPTED
    changed: float = nan
    events: tuple[str, ...] = ()

    def row(self) -> Row:
        """Return the record as a row of the log."""
        return {"kind": "step"} | {name: _plain(name, getattr(self, name)) for name in NAMES}


NAMES = tuple(each.name for each in fields(StepRecord))
MEANS = ("shift_size", "accuracy", "low", "high", "entropy", "largest", "kept", "change", "latency", "changed")
"""What a window has the mean of."""


def event_row(step: int, time: float, event: str, sentence: str, numbers: Mapping[str, Any] | None = None) -> Row:
    """Return an event as a row of the log."""
    plain = {name: _plain(name, value) for name, value in (numbers or {}).items()}
    return {
        "kind": "event",
        "step": step,
        "time": _plain("time", time),
        "event": event,
        "sentence": sentence,
        "numbers": plain,
    }


def window_of(records: Iterable[StepRecord]) -> Row:
    """Return what some records say together: means over images of what is known, sums, and the last of the rest.

    >>> one, two = StepRecord(1, 0.0, 0.0, 2, largest=0.1, skipped=1), StepRecord(2, 1.0, 1.0, 6, largest=0.5)
    >>> window = window_of([one, two])
    >>> window["steps"], window["images"], window["largest"], window["skipped"], window["kept"]
    (2, 8, 0.4, 1, None)
    """
    rows = list(records)
    if not rows:
        return {"steps": 0, "images": 0}
    window: Row = {
        "steps": len(rows),
        "images": sum(row.images for row in rows),
        "first": rows[0].step,
        "last": rows[-1].step,
        "seconds": _plain("", rows[-1].monotonic - rows[0].monotonic),
    }
    for name in MEANS:
        known = [(getattr(row, name), row.images) for row in rows if isfinite(getattr(row, name)) and row.images]
        total = sum(images for _, images in known)
        window[name] = _plain(name, sum(value * images for value, images in known) / total) if total else None
    last = rows[-1]
    window |= {"skipped": sum(row.skipped for row in rows), "fallback": sum(row.fallback for row in rows)}
    return window | {"resets": last.resets, "where": last.where, "nearest": last.nearest, "served": last.served}


def memory_in_use() -> float:
    """Return the memory of this process in MB; its peak where the system does not tell the present."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _plain(name: str, value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    return round(value, 6) if name in TIMES else float(f"{value:.6g}")
