"""Journal: the rows of a guard on their way to its log and its listeners, its clocks, and its snapshots.

Durations come from the monotonic clock; a wall clock that jumps by more than `JUMP` seconds is an event. Snapshots are
copied in the thread of the call and written in that of the log, after the rows of all steps before them; while two
wait to be written no other is taken.
"""

import logging
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import haptera
from haptera.errors import HapteraError
from haptera.live.log import Log
from haptera.live.record import Row, StepRecord, event_row
from haptera.live.safety import Decision
from haptera.live.settings import GuardSettings
from haptera.live.snapshots import FOLDER, frozen_copy, read_snapshot, snapshots, write_snapshot
from haptera.live.thumbnails import write_thumbnails

log = logging.getLogger("haptera")

JUMP = 5.0
"""Seconds between both clocks."""
FLUSH = 30.0
"""Seconds to wait for a slow disk at the end."""
WAITING = 2
"""Snapshots that may wait to be written."""
THUMBNAILS = "thumbnails"


class Journal:
    """Keeps the record of one guard.

    Args:
        settings: of the guard.
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.settings = settings
        self.log = None if settings.log is None else Log(settings.log, rotate=settings.rotate)
        self.folder = None if settings.log is None else Path(settings.log)
        self._rows: list[Row] = []
        self._names: list[str] = []
        self._clocks = (time.time(), time.monotonic())
        self._waiting: set[int] = set()  # steps whose snapshots are not written yet
        self._listener_faults = 0
        self._images: deque[tuple[int, torch.Tensor]] = deque(maxlen=settings.thumbnails_before + 1)

    def now(self, step: int) -> tuple[float, float]:
        """Return the time of the wall clock and of the monotonic one; a jump of the former is an event."""
        clocks = (time.time(), time.monotonic())
        jump = (clocks[0] - self._clocks[0]) - (clocks[1] - self._clocks[1])
        self._clocks = clocks
        if abs(jump) > JUMP:
            sentence = f"the clock of the system jumped by {jump:+.0f} s; durations are not affected"
            self.event(step, Decision("fault", sentence, {"jump": jump}))
        return clocks

    def event(self, step: int, decision: Decision) -> None:
        """Add an event."""
        level = logging.WARNING if decision.event in ("alarm", "fallback", "fault") else logging.INFO
        log.log(level, "step %d: %s: %s", step, decision.event, decision.sentence)
        self._names.append(decision.event)
        self._put(event_row(step, time.time(), decision.event, decision.sentence, decision.numbers))

    def take_names(self) -> tuple[str, ...]:
        """Return the names of the events since the last step."""
        names, self._names = tuple(self._names), []
        return names

    def step(self, record: StepRecord) -> None:
        """Add a step."""
        if record.step % self.settings.every == 0 or record.events:
            self._put(record.row())

    def tell(self, rows: Iterable[Row], listeners: Iterable[Callable[[Row], None]]) -> None:
        """Hand rows to listeners; one that raises never reaches the caller."""
        for row in rows:
            for listener in listeners:
                try:
                    listener(row)
                except Exception:
                    self._listener_faults += 1
                    if self._listener_faults == 1:
                        log.exception("a listener failed; predictions go on, further failures are counted")

    def take_rows(self) -> list[Row]:
        """Return the rows that listeners were not told yet."""
        rows, self._rows = self._rows, []
        return rows

    def describe(self, about: Mapping[str, Any]) -> None:
        """Write what the log is about."""
        if self.log is not None:
            versions = {"haptera": haptera.__version__, "torch": torch.__version__, "numpy": np.__version__}
            versions["python"] = platform.python_version()
            settings = asdict(self.settings) | {"log": str(self.folder)}
            self.log.describe({**about, "settings": settings, "versions": versions})

    def snapshot(self, step: int, adapter: Mapping[str, Any] | None, guard: Mapping[str, Any]) -> None:
        """Copy the state, and have it written."""
        if self.log is None or len(self._waiting) >= WAITING:
            return
        copy, keep, folder = frozen_copy(guard), self.settings.keep_snapshots, self.log.folder / FOLDER

        def write() -> None:
            assert self.log is not None
            try:
                write_snapshot(folder, step, adapter, copy, keep)
                row = event_row(step, time.time(), "snapshot", f"the state after step {step:,} is kept", {})
            except (OSError, HapteraError) as error:
                row = event_row(step, time.time(), "fault", f"no snapshot of step {step:,}: {error}", {})
                log.warning("%s", row["sentence"])
            finally:
                self._waiting.discard(step)
            self.log.put(row)

        self._waiting.add(step)
        if not self.log.run(write):
            self._waiting.discard(step)

    def newest(self) -> tuple[str, dict[str, Any] | None, dict[str, Any]] | None:
        """Return name, adapter state and guard state of the newest snapshot that is whole; None if there is none."""
        if self.folder is None or not self.settings.restore:
            return None
        for path in snapshots(self.folder / FOLDER):
            try:
                return path.name, *read_snapshot(path)
            except HapteraError as error:
                self.event(0, Decision("fault", f"a snapshot cannot be read, an older one is tried: {error}"))
        return None

    def keep_images(self, step: int, inputs: torch.Tensor, now: bool) -> None:
        """Keep the first images of a batch as pictures, and those of batches before it, if that was asked for.

        Args:
            step: of the batch.
            inputs: `(images, channels, height, width)`; anything else has no pictures.
            now: whether something happened; else they are remembered for `thumbnails_before` steps, no longer.
        """
        asked, before = self.settings.thumbnails, self.settings.thumbnails_before
        if self.log is None or not asked or not (now or before):
            return
        if inputs.ndim != 4 or inputs.shape[1] not in (1, 3):
            return
        self._images.append((step, inputs[:asked].detach().float().cpu().clone()))
        if now:
            kept, folder = list(self._images), self.log.folder / THUMBNAILS
            self._images.clear()
            self.log.run(lambda: write_thumbnails(folder, kept))

    def status(self) -> dict[str, Any]:
        """Return how the log is."""
        if self.log is None:
            return {"folder": None, "lost": 0, "fault": "", "listener_faults": self._listener_faults}
        own = {"folder": str(self.folder), "lost": self.log.lost, "fault": self.log.fault}
        return own | {"listener_faults": self._listener_faults}

    def flush(self) -> None:
        """Wait until everything so far is written, for a while."""
        if self.log is not None:
            self.log.flush(FLUSH)

    def close(self) -> None:
        """Write what waits."""
        if self.log is not None:
            self.log.close()

    def _put(self, row: Row) -> None:
        self._rows.append(row)
        if self.log is not None:
            self.log.put(row)
