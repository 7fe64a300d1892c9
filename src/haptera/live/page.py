"""The page of a run: the shift along time with alarms marked, accuracy, the adapter, latency, events and frames."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.live.history import Event
from haptera.live.thumbnails import thumbnails
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.thin import over_steps
from haptera.statistics.intervals import wilson

if TYPE_CHECKING:
    from haptera.live.run import LiveRun

MOST_POINTS = 20_000
LINES = {
    "shift_size": "size of the shift", "accuracy": "predicted", "entropy": "entropy (nats)",
    "largest": "share of the largest class", "kept": "share of images learnt from", "change": "norm of the change",
    "latency": "mean latency (ms)", "slowest": "slowest batch (ms)", "memory": "memory (MB)",
}  # fmt: skip
UNITS = {"latency": 1e3, "slowest": 1e3}
NEAR = 2.0
"""Seconds; points that are nearer have milliseconds in their time."""
MARKED = {"shift": ("alarm", "cleared"), "adapter": ("fallback", "return", "reset", "restored", "fault")}
TIME = {"time": "time", "n": "images"}
THINNED = " A point is the mean of up to {} batches, weighted by their images."
GROUP, MOST_GROUPS = 100, 200
SHIFTED, ADAPTED = "shift", "adapted"


def sections(run: "LiveRun") -> list[Section | None]:
    """Return every section for which the log has something."""
    points, most = thinned(run)
    more = THINNED.format(most) if most > 1 else ""
    return [
        _shift(run, points, more),
        _accuracy(run, points, more),
        _adapter(run, points, more),
        _service(points, more),
        _events(run.history.events),
        _frames(run),
    ]


def thinned(run: "LiveRun") -> tuple[pd.DataFrame, int]:
    """Return the points of all lines with their time and what was so at that time, and how many batches one has."""
    frame = run.history.frame()
    # over_steps knows the columns of a study's table; the position in the log is the step, which never goes back.
    single = run.history.steps == len(frame)  # then the slowest batch of a point is its only one
    known = [name for name in LINES if name in run.known and not (single and name == "slowest")]
    if frame.empty or not known:
        columns = ["line", "position", "value", "low", "high", "n", "time", "where", "nearest", "served", "state"]
        return pd.DataFrame(columns=columns), 1
    rows = frame.melt(["position", "n", "low", "high"], known, "line").rename(columns={"position": "step"})
    rows = rows[np.isfinite(rows["value"].to_numpy(float))]
    rows = rows.assign(
        value=rows["value"].astype(float) * rows["line"].map(UNITS).fillna(1.0), shift="", severity=np.nan
    )
    rows[["low", "high"]] = rows[["low", "high"]].where(rows["line"] == "accuracy")
    points, windows = over_steps(rows, ["line"], MOST_POINTS)
    points = points.rename(columns={"step": "position"}).drop(columns=["shift", "severity"])
    slow = points["line"] == "slowest"
    points.loc[slow, "value"] = UNITS["slowest"] * _slowest(frame, points.loc[slow, "position"].to_numpy())
    beside = frame[["position", "time", "where", "nearest", "served"]].astype({"position": points["position"].dtype})
    points = points.merge(beside, on="position", how="left")
    points["time"] = written(points["time"])
    points["state"] = _states(run, points)
    points["served"] = points["served"].where(points["served"] != ADAPTED)
    batches = -(-run.history.steps // max(len(frame), 1))
    return points, windows * batches


def _states(run: "LiveRun", rows: pd.DataFrame) -> pd.Series:
    """Return `shift` for rows within one, and nothing for others."""
    states = pd.Series(None, rows.index, dtype=object)
    for episode in run.episodes:
        states[episode.holds(rows)] = SHIFTED
    return states


def _slowest(frame: pd.DataFrame, ends: np.ndarray) -> np.ndarray:
    """Return the slowest batch of each point, which a mean would hide."""
    places = np.searchsorted(frame["position"].to_numpy(), ends, side="right")
    values = frame["slowest"].to_numpy(float)
    starts = np.concatenate([[0], places])[: len(places)]
    return np.array([np.nanmax(values[start:end]) for start, end in zip(starts, places, strict=True)])


def written(times: pd.Series) -> pd.Series:
    """Return Unix seconds as texts in the time zone where this runs; with milliseconds where points are near."""
    values = times.to_numpy(float)
    gaps = np.diff(np.unique(values))
    near = len(gaps) > 0 and np.median(gaps) < NEAR
    form = "milliseconds" if near else "seconds"
    texts = {value: datetime.fromtimestamp(value).isoformat(" ", form) for value in np.unique(values).tolist()}
    return times.map(texts).astype(object)


def marked(points: pd.DataFrame, events: list[Event], names: tuple[str, ...]) -> pd.DataFrame:
    """Return the points with a column `event`: what happened at the first point of each line after it."""
    chosen = [event for event in events if event.event in names]
    told: dict[int, list[str]] = {}
    for _, line in points.groupby("line", sort=False):
        places = line["position"].to_numpy()
        for event in chosen:
            at = min(int(np.searchsorted(places, event.position)), len(places) - 1)
            text = f"{event.event}: {event.sentence}" if event.sentence else event.event
            told.setdefault(int(line.index[at]), []).append(text)
    texts = {place: "; ".join(each) for place, each in told.items()}
    return points.assign(event=pd.Series(texts, dtype=object).reindex(points.index))


def _lines(points: pd.DataFrame, names: tuple[str, ...], value: str, column: str = "line") -> pd.DataFrame:
    own = points[points["line"].isin(names)]
    own = own.sort_values("line", key=lambda lines: lines.map(names.index), kind="stable")
    own = own.assign(line=own["line"].map(LINES))
    return own.rename(columns={"value": value, "line": column}).reset_index(drop=True)


def _shift(run: "LiveRun", points: pd.DataFrame, more: str) -> Section | None:
    frame = marked(points[points["line"] == "shift_size"].reset_index(drop=True), run.history.events, MARKED["shift"])
    frame = _lines(frame, ("shift_size",), "size")[["line", "time", "size", "where", "nearest", "n", "state", "event"]]
    if frame.empty:
        return None
    caption = "Crosses are alarms and their ends; shaded is from where a shift began until the stream was back."
    labels = TIME | {"size": "size of the shift", "where": "strongest in", "nearest": "most like"}
    figure = Figure(
        "Size of the shift", caption + more, frame, "line", "time", "size", color=("line",), bands="state",
        flags="event", time_x=True, labels=labels,
    )  # fmt: skip
    return Section("Shift", "What shifted, and when.", (figure,))


def _accuracy(run: "LiveRun", points: pd.DataFrame, more: str) -> Section | None:
    frame = pd.concat([_lines(points, ("accuracy",), "accuracy"), labelled(run)], ignore_index=True)
    if frame.empty:
        return None
    caption = (
        "Predicted without labels, or corrected by them, with its interval; by labels alone where they were fed in, at "
        f"least {GROUP} in a point, with 95 % intervals, placed where the labels arrived."
    ) + more
    frame = frame[["line", "time", "accuracy", "low", "high", "n", "state"]]
    figure = Figure(
        "Accuracy", caption, frame, "line", "time", "accuracy",
        low="low", high="high", color=("line",), bands="state", time_x=True, limits=(0.0, 1.0), labels=TIME,
    )  # fmt: skip
    return Section("Accuracy", "What the shift cost.", (figure,))


def labelled(run: "LiveRun") -> pd.DataFrame:
    """Return accuracy by labels: those that arrived one after the other, some hundred in a point."""
    labels = run.history.labels()
    group = np.floor((labels["known"].cumsum() - 1) / max(GROUP, labels["known"].sum() / MOST_GROUPS))
    rows = labels.groupby(group).agg({"known": "sum", "right": "sum", "time": "last", "position": "last"})
    rows = rows[rows["known"] >= min(GROUP, labels["known"].sum())]
    ends = [wilson(right, int(known)) for known, right in zip(rows["known"], rows["right"], strict=True)]
    return pd.DataFrame(
        {
            "line": "by labels", "time": written(rows["time"]), "accuracy": rows["right"] / rows["known"],
            "low": [low for low, _ in ends], "high": [high for _, high in ends], "n": rows["known"].astype(int),
            "state": _states(run, rows),
        }
    )  # fmt: skip


def _adapter(run: "LiveRun", points: pd.DataFrame, more: str) -> Section | None:
    names = ("largest", "entropy", "kept", "change")
    own = points[points["line"].isin(names)].reset_index(drop=True)
    frame = _lines(marked(own, run.history.events, MARKED["adapter"]), names, "value", "measure")
    if frame.empty:
        return None
    caption = (
        "Shaded where another model than the adapted one answered; crosses are fall-backs, returns, resets, restarts "
        "and faults."
    ) + more
    figure = Figure(
        "What the adapter did", caption, frame[["measure", "time", "value", "n", "served", "event"]], "line", "time",
        "value", color=("measure",), select=("measure",), bands="served", flags="event", time_x=True, labels=TIME,
    )  # fmt: skip
    return Section("Adapter", "What the adapter did, and when the guard stepped in.", (figure,))


def _service(points: pd.DataFrame, more: str) -> Section | None:
    latency = _lines(points, ("latency", "slowest"), "ms")[["line", "time", "ms", "n"]]
    memory = _lines(points, ("memory",), "MB")[["line", "time", "MB", "n"]]
    settings: dict[str, Any] = {"kind": "line", "x": "time", "color": ("line",), "time_x": True, "labels": TIME}
    figures = [
        Figure("Latency", "Time from a batch to its answer." + more, latency, y="ms", **settings),
        Figure("Memory", "Of the process that serves the model." + more, memory, y="MB", **settings),
    ]
    return Section.of("Service", "What it takes in time and memory.", *figures)


def _events(events: list[Event]) -> Section | None:
    columns = ["time", "step", "event", "sentence"]
    frame = pd.DataFrame([{name: getattr(event, name) for name in columns} for event in events[::-1]], columns=columns)
    frame["time"] = written(frame["time"])
    listing = Listing("Events", "As they were logged; labels that arrived are left out.", frame)
    return Section.of("Events", "Every decision, the last one first.", listing)


def _frames(run: "LiveRun") -> Section | None:
    pictures = thumbnails(run.thumbnails, run.history.events) if run.thumbnails is not None else []
    return Section.of("Frames", "Images near alarms and fall-backs, kept because it was asked for.", *pictures)
