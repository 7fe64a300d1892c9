"""Rows as a guard writes them: a lens that is out of focus from 14:02 on and wiped at 16:40, and one fall-back."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

START = datetime(2026, 11, 17, 13, 32).timestamp()
EVERY = 30.0
"""Seconds between batches."""
SHIFT, NOTICED, WIPED, BACK, STEPS = 60, 64, 376, 382, 440
FALL, RETURN = 200, 240
ABOUT = {
    "model": "camera",
    "adapter": "rdumb",
    "fingerprint": "0123456789abcdef",
    "profile": {"images": 2000, "accuracy": 0.91},
    "settings": {"alpha": 0.05, "window": 1000},
    "versions": {"haptera": "0.2.0"},
}
Row = dict[str, Any]


def time_of(step: int) -> float:
    return START + EVERY * step


def step_row(step: int, **more: Any) -> Row:
    random = np.random.default_rng(step)
    shifted = SHIFT <= step < WIPED
    fallen = FALL <= step < RETURN
    accuracy = (0.71 if shifted else 0.91) - 0.1 * fallen
    row = {
        "kind": "step", "step": step, "time": time_of(step), "monotonic": EVERY * step, "images": 64,
        "shift_size": (0.62 if shifted else 0.02) + 0.02 * random.standard_normal(),
        "where": "layer1.0.bn1" if shifted else "", "nearest": "defocus_blur" if shifted else "",
        "accuracy": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.06, "entropy": 1.9 + 0.1 * random.random(),
        "largest": 0.6 if fallen else 0.14, "kept": 0.4, "change": 0.01 * min(step, 50), "resets": 0, "skipped": 0,
        "fallback": int(fallen), "latency": 0.012 + 0.002 * random.random(), "memory": 812.0,
        "served": "unadapted" if fallen else "adapted", "changed": 0.1, "events": [],
    }  # fmt: skip
    return row | more


def event_row(step: int, event: str, sentence: str, **numbers: Any) -> Row:
    return {
        "kind": "event", "step": step, "time": time_of(step), "event": event, "sentence": sentence, "numbers": numbers,
    }  # fmt: skip


def rows(steps: int = STEPS) -> list[Row]:
    """The whole afternoon, or its beginning."""
    events = [
        event_row(0, "start", "camera is watched"),
        event_row(
            NOTICED, "alarm", "sharpness has changed", signal="sharpness", since=SHIFT, since_time=time_of(SHIFT)
        ),
        event_row(FALL, "fallback", "one class has 60 % of the answers", largest=0.6),
        event_row(FALL, "reset", "the adapter starts anew"),
        event_row(RETURN, "return", "the adapted model answers again"),
        event_row(BACK, "cleared", "the stream is back", signal="sharpness"),
    ]
    made: list[Row] = []
    for step in range(steps):
        made.append(step_row(step))
        made += [event for event in events if event["step"] == step]
    return made


def write_log(folder: Path, content: list[Row] | None = None, about: Row | None = None) -> Path:
    """A log of lines alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "live.json").write_text(json.dumps(ABOUT if about is None else about))
    append(folder, rows() if content is None else content)
    return folder


def append(folder: Path, content: list[Row]) -> None:
    with open(folder / "current.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in content)
