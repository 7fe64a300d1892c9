"""History: what a log says about a run, thinned while it is read, so that a month takes no more memory than an hour.

Rows are kept as they are until there are too many; then neighbours are averaged in pairs, weighted by their images, as
often as it takes. The slowest of a pair stays the slowest. Counts and the distribution of latencies are of all rows;
but the first batch after each start warms up, and its latency is left out of the distribution.
A clock that was set back does not fold the run: from there on, its times are moved on by as much, and a note says so.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

MOST_ROWS, MOST_EVENTS = 8_192, 5_000
MEANS = (
    "shift_size", "accuracy", "low", "high", "entropy", "largest", "kept", "change", "latency", "memory",
)  # fmt: skip
TEXTS = ("where", "nearest", "served")
COLUMNS = ["position", "step", "time", "n", *MEANS, "slowest", *TEXTS]
ORDINARY = ("snapshot", "skipped", "reset")
"""Events of which there may be as many as steps; the first ones are listed, all are counted."""
SHORT, LONG = 1200.0, 43_200.0
"""Seconds of a run whose times need seconds, and of one whose times need the day."""
LABELS, PLACE = ("known", "right", "compared", "gained"), ("position", "time")
JITTER = 1.0
"""Seconds by which rows of several threads may be out of order; more is a clock that was set back."""
EDGES = np.geomspace(1e-5, 1e3, 641)
"""Classes of latency in seconds, each 3 % wider than the one before it."""


@dataclass(frozen=True)
class Event:
    """A decision of the guard, and after how many steps of the log it stands."""

    position: int
    step: int
    time: float
    event: str
    sentence: str
    numbers: Mapping[str, Any]


@dataclass
class History:
    """The steps and events of a log.

    Attributes:
        since: Unix seconds; what was before is left out.
        steps: how many steps there were.
        images: how many images.
        first: time of the first row; NaN before there is one.
        last: time of the last row.
        events: those that are listed, in order.
        counts: event -> how often.
        served: what answered -> how many batches.
        set_back: seconds by which the clock was set back in all.
    """

    since: float | None = None
    steps: int = 0
    images: int = 0
    first: float = float("nan")
    last: float = float("nan")
    set_back: float = 0.0
    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    _clock: float = float("nan")
    _kept: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    _labels: list[dict[str, float]] = field(default_factory=list)
    _starts: set[int] = field(default_factory=set)
    _latencies: np.ndarray = field(default_factory=lambda: np.zeros(len(EDGES) + 1, dtype=np.int64))

    def add(self, rows: pd.DataFrame) -> None:
        """Read on.

        Args:
            rows: of the log, in its order: `kind`, `time`, and what steps and events have; what is missing is NaN.
        """
        raw = numbers(rows, "time")
        kind = rows["kind"].to_numpy(object) if "kind" in rows else np.full(len(rows), "")
        known = np.isfinite(raw) & np.isin(kind, ["step", "event"])
        if self.since is not None:
            early = known & (raw < self.since)
            self._look_back(rows[early & (kind == "event")])
            known &= ~early
        rows, raw, kind = rows[known], raw[known], kind[known]
        if not len(rows):
            return
        back = -np.diff(raw, prepend=raw[0] if np.isnan(self._clock) else self._clock)
        moved = self.set_back + np.cumsum(np.where(back > JITTER, back, 0.0))
        time = np.maximum.accumulate(raw + moved)
        self._clock, self.set_back = float(raw[-1]), float(moved[-1])
        self.first = float(time[0]) if np.isnan(self.first) else self.first
        self.last = max(float(time[-1]), self.last) if np.isfinite(self.last) else float(time[-1])
        step = kind == "step"
        position = self.steps + np.cumsum(step) - step
        for place in np.flatnonzero(~step):
            self._add_event(rows.iloc[place], int(position[place]), float(time[place]))
        if step.any():
            self._add_steps(rows[step], position[step], time[step])

    def _look_back(self, rows: pd.DataFrame) -> None:
        """Keep an alarm of before the beginning for as long as nothing has cleared it."""
        for _, row in rows[rows["event"].isin(["alarm", "cleared"])].iterrows():
            self.events = [event for event in self.events if event.position >= 0]
            if row["event"] == "alarm":
                self.events.insert(0, _event(row, -1, float(row["time"])))

    def _add_event(self, row: pd.Series, position: int, time: float) -> None:
        event = str(row.get("event"))
        self.counts[event] += 1
        if event == "start":
            self._starts.add(position)
        if event == "label":
            self._add_labels(row.get("numbers"), position, time)
        elif event in ORDINARY and len(self.events) >= MOST_EVENTS:
            return
        else:
            self.events.append(_event(row, position, time))

    def _add_labels(self, told: Any, position: int, time: float) -> None:
        """Keep how many of the labels that arrived together were answered rightly; neighbours are added up."""
        told = told if isinstance(told, Mapping) else {}
        row = {name: max(number(told.get(name), 0.0), 0.0) for name in ("known", "right", "compared")}
        row |= {"gained": number(told.get("gained"), 0.0), "position": float(position), "time": time}
        if row["known"] and "right" in told:
            self._labels.append(row)
        if len(self._labels) > MOST_ROWS:
            pairs = zip(self._labels[::2], self._labels[1::2], strict=False)
            added = [two | {key: one[key] + two[key] for key in LABELS} for one, two in pairs]
            self._labels = added + self._labels[2 * len(added) :]

    def _add_steps(self, rows: pd.DataFrame, position: np.ndarray, time: np.ndarray) -> None:
        images = np.maximum(np.nan_to_num(numbers(rows, "images"), nan=1), 0).astype(int)
        latency = numbers(rows, "latency")
        kept: dict[str, Any] = {"position": position, "step": np.nan_to_num(numbers(rows, "step")).astype(int)}
        kept |= {"time": time, "n": images} | {name: numbers(rows, name) for name in MEANS} | {"slowest": latency}
        kept |= {name: texts(rows, name) for name in TEXTS}
        frame = pd.DataFrame(kept)
        self.steps += len(frame)
        self.images += int(images.sum())
        self.served.update(Counter(frame["served"]))
        finite = latency[np.isfinite(latency) & ~np.isin(position, list(self._starts))]
        self._starts = {place for place in self._starts if place >= self.steps}
        self._latencies += np.bincount(np.searchsorted(EDGES, finite, side="right"), minlength=len(EDGES) + 1)
        self._kept = pd.concat([self._kept, frame], ignore_index=True) if len(self._kept) else frame
        while len(self._kept) > MOST_ROWS:
            self._kept = average_pairs(self._kept)

    def frame(self) -> pd.DataFrame:
        """Return the rows as they are kept: one for each step, or for several that follow one another."""
        return self._kept

    def labels(self) -> pd.DataFrame:
        """Return a row for labels that arrived together: `known`, `right`, `compared`, `gained`, `position`, `time`."""
        return pd.DataFrame(self._labels, columns=[*LABELS, *PLACE])

    def latency(self, share: float) -> float:
        """Return the latency that a share of all batches but the first kept to, within 3 %; NaN where none is known."""
        total = int(self._latencies.sum())
        if not total:
            return float("nan")
        place = int(np.searchsorted(np.cumsum(self._latencies), share * total))
        return float(EDGES[min(place, len(EDGES) - 1)])

    def begin_of(self, alarm: Event) -> tuple[int, float]:
        """Return where in the log, and when, a shift began; where and when it was noticed if the alarm does not say."""
        step, time = number(alarm.numbers.get("since")), number(alarm.numbers.get("since_time"))
        before = self._kept[(self._kept["position"] <= alarm.position) & (self._kept["step"] <= step)]
        if alarm.position < 0 or before.empty or not np.isfinite(step):
            when = time if np.isfinite(time) else alarm.time
            return max(alarm.position, 0) if np.isnan(step) else 0, when
        last = before.iloc[-1]
        return int(last["position"]), float(last["time"])


def _event(row: pd.Series, position: int, time: float) -> Event:
    told, sentence = row.get("numbers"), row.get("sentence")
    words, known = sentence if isinstance(sentence, str) else "", dict(told) if isinstance(told, Mapping) else {}
    return Event(position, int(number(row.get("step"), 0)), time, str(row.get("event")), words, known)


def average_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Average rows two by two, weighted by their images; of texts, places and times the later one stays.

    >>> rows = pd.DataFrame({"n": [1, 3], "latency": [0.1, 0.5], "slowest": [0.1, 0.9], "time": [1.0, 2.0]})
    >>> average_pairs(rows).to_dict("records")
    [{'n': 4, 'latency': 0.4, 'slowest': 0.9, 'time': 2.0}]
    """
    group = np.arange(len(rows)) // 2
    merged = rows.groupby(group).last()
    weight = rows["n"].to_numpy(float)
    for name in (name for name in MEANS if name in rows):
        values = rows[name].to_numpy(float)
        here = np.where(np.isfinite(values), np.maximum(weight, 1e-9), 0.0)
        total = np.bincount(group, here)
        with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is known is NaN, as it should be
            merged[name] = np.bincount(group, np.nan_to_num(values) * here) / total
    merged["n"] = np.bincount(group, weight).astype(int)
    merged["slowest"] = rows["slowest"].groupby(group).max()
    return merged


def number(value: Any, default: float = float("nan")) -> float:
    """Return a finite number, or the default for anything else."""
    known = isinstance(value, int | float | np.number) and isfinite(value)
    return float(value) if known else default


def numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column as floats; NaN for what is not a number."""
    if name not in rows:
        return np.full(len(rows), np.nan)
    values = pd.to_numeric(rows[name], errors="coerce").to_numpy(float, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def texts(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column as texts; empty ones for what is missing."""
    if name not in rows:
        return np.full(len(rows), "", dtype=object)
    return rows[name].where(rows[name].notna(), "").astype(str).to_numpy(object)


def clock(time: float, span: float = 0.0) -> str:
    """Return a time where this runs, as a run of some length needs it: with seconds, without, or with the day.

    >>> [len(clock(0.0, span)) for span in (60, 3600, 90_000)]
    [8, 5, 16]
    """
    form = "%H:%M:%S" if span < SHORT else "%H:%M" if span < LONG else "%Y-%m-%d %H:%M"
    return datetime.fromtimestamp(time).strftime(form)
