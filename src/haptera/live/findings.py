"""What a run of a guard has shown, in sentences with their numbers: what shifted when, what it cost, what was done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.live.history import Event, History, clock
from haptera.report.section import Finding, answer, lead
from haptera.statistics.intervals import wilson
from haptera.words import count, join_names

if TYPE_CHECKING:
    from haptera.live.run import LiveRun

DEFINITIONS = {
    "shift": "images that are unlike those of the reference, by sequential tests that may be looked at after every "
    "batch: the chance, or the rate, of false alarms in the settings holds for the whole life of the guard",
    "since": "the step at which the change began, as far as the evidence tells; the alarm comes later",
    "size": "how far statistics of activations are from those of the reference, corrected for the number of images",
    "predicted accuracy": "what outputs without labels say about accuracy, with its interval; labels that were fed in "
    "correct it",
    "fall-back": "the unadapted model answers, because the adapted one showed signs of collapse or did worse on labels "
    "or on anchor images",
    "latency": "time from a batch to its answer, within the guard; the median, and what 99 % are within, leave out the "
    "first batch after each start, which warms up",
}
MOST_FAULTS = 3
RECENT = 500
"""Labels that say how accurate the model is now."""


@dataclass(frozen=True)
class Episode:
    """A shift, from where it began to where the stream was back.

    Attributes:
        alarm: the event that told of it.
        begin: position in the log at which it began.
        since: the time of that.
        cleared: the event that told of its end, or None.
    """

    alarm: Event
    begin: int
    since: float
    cleared: Event | None

    def holds(self, frame: pd.DataFrame) -> pd.Series:
        """Say which rows lie within."""
        end = np.inf if self.cleared is None else self.cleared.position
        return (frame["position"] >= self.begin) & (frame["position"] < end)

    def words(self, span: float) -> str:
        """Return when it was, in a run of some length."""
        begin = clock(self.since, span)
        return f"since {begin}" if self.cleared is None else f"from {begin} to {clock(self.cleared.time, span)}"


def episodes(history: History) -> list[Episode]:
    """Return the shifts of a run, in order."""
    made: list[Episode] = []
    for event in history.events:
        if event.event == "alarm":
            begin, since = history.begin_of(event)
            made.append(Episode(event, begin, since, None))
        elif event.event == "cleared" and made and made[-1].cleared is None:
            made[-1] = Episode(made[-1].alarm, made[-1].begin, made[-1].since, event)
    return made


def findings(run: "LiveRun") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    if not run.history.steps:
        return answer("steps", "What has it seen?", "nothing yet: the log has no step", steps=0)
    parts = [*_shift(run), *_cost(run), *_adapter(run)]
    told = [_now(run, parts), *parts, *_service(run), *_trouble(run)]
    return lead(told, _leads({name: value for each in told for name, value in each.numbers.items()}))


def _leads(numbers: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the number of each answer and where the page shows it."""
    size = f"size {numbers['size']:.2f}" if numbers.get("active") and np.isfinite(numbers["size"]) else ""
    accuracy, half = (numbers.get(name, np.nan) for name in ("accuracy", "latency_ms"))
    leads = {"now": ("", "Size of the shift"), "shift": (size, "Size of the shift")}
    leads["accuracy"] = (f"{accuracy:.0%} predicted" if np.isfinite(accuracy) else "", "Accuracy")
    leads["service"] = (f"{_milliseconds(half)} a batch" if np.isfinite(half) else "", "Latency")
    return leads | {"adapter": ("", "What the adapter did")}


def _now(run: "LiveRun", parts: list[Finding]) -> Finding:
    """What an operator reads first: all of it in one sentence."""
    numbers = {name: value for part in parts for name, value in part.numbers.items()}
    shift = next(part.sentence for part in parts if part.word == "shift").partition(", noticed")[0]
    told = [shift]
    if np.isfinite(numbers.get("accuracy", np.nan)):
        was = numbers["accuracy_before"]
        told.append(_predicted(numbers) + (f", was {was:.0%}" if run.episodes and np.isfinite(was) else ""))
    if run.adapter:
        recovered = numbers.get("recovered", np.nan)
        told += [f"{run.adapter} {_gain(run, recovered)} of it"] if np.isfinite(recovered) else []
        told.append(f"fell back {_times(numbers['fallbacks'])}" if numbers["fallbacks"] else "no collapse")
    return Finding("now", "What happened?", "; ".join(told), {"steps": run.history.steps})


def _shift(run: "LiveRun") -> list[Finding]:
    """What shifted, when, and what it is like."""
    history, shifts = run.history, run.episodes
    numbers: dict[str, Any] = {"alarms": len(shifts), "images": history.images}
    if not shifts:
        sentence = f"no shift: 0 alarms in {count(history.images, 'image')}"
        return answer("shift", "What shifted, and when?", sentence, **numbers)
    last = shifts[-1]
    frame = history.frame()
    within = frame[last.holds(frame)]
    size = _last(within["shift_size"]) if last.cleared is None else _peak(within["shift_size"])
    numbers |= {"alarm_step": last.alarm.step, "size": size, "since": last.since, "active": last.cleared is None}
    likeness, where = _usual(within, "nearest"), _usual(within, "where")
    parts = [f"shift {last.words(run.span)}", f"{likeness}-like" if likeness else ""]
    parts += [f"strongest in {where}" if where else "", f"size {size:.2f}" if np.isfinite(size) else ""]
    parts += [f"noticed at step {last.alarm.step:,}", "" if last.cleared is None else "no shift now"]
    before = f"{count(len(shifts), 'shift')} in all; the first {shifts[0].words(run.span)}" if len(shifts) > 1 else ""
    return answer("shift", "What shifted, and when?", ", ".join(filter(None, parts)), before, **numbers)


def _cost(run: "LiveRun") -> list[Finding]:
    """What accuracy is predicted, and what it was before."""
    frame, shifts = run.history.frame(), run.episodes
    known = frame[np.isfinite(frame["accuracy"])]
    if known.empty:
        why = "; ".join(run.remarks) or "the guard has no reference with labels"
        return answer("accuracy", "What did it cost?", f"nobody can tell: {why}")
    now = known.iloc[-1]
    numbers: dict[str, Any] = {"accuracy": now["accuracy"], "accuracy_interval": [now["low"], now["high"]]}
    parts = [_predicted(numbers).removeprefix("accuracy ")]
    before = known[known["position"] < shifts[-1].begin] if shifts else known[:0]
    numbers["accuracy_before"] = was = _mean(before, "accuracy") if len(before) else run.reference_accuracy
    if shifts and shifts[-1].cleared is not None:
        numbers["accuracy_during"] = during = _mean(known[shifts[-1].holds(known)], "accuracy")
        parts += [f"{during:.0%} during the shift"] if np.isfinite(during) else []
    if np.isfinite(was):
        parts.append(f"{was:.0%} {'before it' if shifts else 'on the reference'}")
    labels = run.history.labels()
    if len(labels):
        recent = labels[labels["known"][::-1].cumsum()[::-1] <= max(RECENT, labels["known"].iloc[-1])]
        numbers["labels"], right = int(recent["known"].sum()), int(recent["right"].sum())
        numbers |= {"labelled_accuracy": right / numbers["labels"]}
        numbers["labelled_accuracy_interval"] = low, high = wilson(right, numbers["labels"])
        share = f"{numbers['labelled_accuracy']:.0%} ({100 * low:.0f} to {100 * high:.0f})"
        parts.append(f"{share} of the last {count(numbers['labels'], 'label')} right")
    return answer("accuracy", "What did it cost?", ", ".join(parts), **numbers)


def _adapter(run: "LiveRun") -> list[Finding]:
    """What the adapter did, and whether the guard had to step in."""
    history, counts = run.history, run.history.counts
    share = history.served["adapted"] / history.steps
    numbers: dict[str, Any] = {"adapted_share": share, "fallbacks": counts["fallback"], "resets": counts["reset"]}
    question = "What did the adapter do?"
    if not run.adapter and not share:
        return answer("adapter", question, "nothing: the model is served as it is", **numbers)
    parts = [f"{run.adapter or 'the adapter'} answered {share:.0%} of the batches"]
    recovered = run.recovered
    if np.isfinite(recovered):
        numbers["recovered"] = recovered
        parts.append(_gain(run, recovered))
    parts.append(f"{count(counts['reset'], 'reset')}")
    falls = [event for event in history.events if event.event == "fallback"]
    numbers["last_fallback"] = dict(falls[-1].numbers) if falls else {}
    last = f"fell back {_times(len(falls))}, last at {clock(falls[-1].time, run.span)}" if falls else "no collapse"
    told = f"the guard said then: {falls[-1].sentence}" if falls and falls[-1].sentence else ""
    return answer("adapter", question, ", ".join([*parts, last]), told, **numbers)


def _service(run: "LiveRun") -> list[Finding]:
    """What it cost in time and memory."""
    half, most = 1000 * run.history.latency(0.5), 1000 * run.history.latency(0.99)
    memory = _last(run.history.frame()["memory"])
    numbers = {"latency_ms": half, "latency_99_ms": most, "memory_mb": memory}
    parts = [f"median {_milliseconds(half)} a batch, 99% within {_milliseconds(most)}"] if np.isfinite(half) else []
    parts += [f"{memory:,.0f} MB of memory"] if np.isfinite(memory) else []
    return answer("service", "What did it cost in time and memory?", "; ".join(parts), **numbers)


def _milliseconds(value: float) -> str:
    """Return three digits, or all that stand before the point.

    >>> _milliseconds(4.731), _milliseconds(1580.4)
    ('4.73 ms', '1,580 ms')
    """
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _trouble(run: "LiveRun") -> list[Finding]:
    """What went wrong, if anything did."""
    counts = run.history.counts
    skipped = f"{count(counts['skipped'], 'batch').replace('batchs', 'batches')} predicted and not learnt from"
    parts = [skipped] if counts["skipped"] else []
    parts += [count(counts["fault"], "fault")] if counts["fault"] else []
    parts += [f"started again {_times(counts['restored'])}"] if counts["restored"] else []
    numbers: dict[str, Any] = {name: counts[name] for name in ("skipped", "fault", "restored")}
    faults = {event.sentence: event.numbers for event in run.history.events if event.event == "fault"}
    last = list(faults)[-MOST_FAULTS:]
    numbers["last_faults"] = [dict(faults[sentence]) for sentence in last]
    return answer("trouble", "Did anything go wrong?", join_names(parts) or "no", *last, **numbers)


def _last(values: pd.Series) -> float:
    known = values[np.isfinite(values)]
    return float(known.iloc[-1]) if len(known) else float("nan")


def _peak(values: pd.Series) -> float:
    return float(values.max()) if np.isfinite(values).any() else float("nan")


def _mean(rows: pd.DataFrame, name: str) -> float:
    rows = rows[np.isfinite(rows[name]) & (rows["n"] > 0)]
    return float(np.average(rows[name], weights=rows["n"])) if len(rows) else float("nan")


def _usual(rows: pd.DataFrame, name: str) -> str:
    """Return the text that most images have; an empty one where nothing is known."""
    known = rows[rows[name] != ""]
    return str(known.groupby(name)["n"].sum().idxmax()) if len(known) else ""


def _predicted(numbers: Mapping[str, Any]) -> str:
    low, high = numbers["accuracy_interval"]
    if low <= 0 and high >= 1:  # a guard that knows no interval writes this one
        return f"accuracy {numbers['accuracy']:.0%} by confidence alone, which may be far off"
    ends = f" ({100 * low:.0f} to {100 * high:.0f})" if np.isfinite([low, high]).all() else ""
    return f"accuracy predicted {numbers['accuracy']:.0%}{ends}"


def _gain(run: "LiveRun", recovered: float) -> str:
    """Return what adaptation brings; what it would, while another model answers."""
    points = f"{abs(100 * recovered):.0f} points"
    if run.history.frame()["served"].iloc[-1] == "adapted":
        return f"recovers {points}" if recovered >= 0 else f"loses {points}"
    return f"would recover {points}" if recovered >= 0 else f"would lose {points}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
