"""Log: every step and every event of a guard as a line of JSON, written by a thread of its own, rotated into parquet.

    live.json             settings, model, fingerprint, profile, versions
    current.jsonl         the newest rows, one line each
    part-000001.parquet   older ones; while it is being made, part-000001.jsonl
    snapshots/            see `haptera.live.snapshots`
    thumbnails/           images near alarms, only if asked for

`put` takes a row and returns at once. The thread gathers what came within a tenth of a second and appends whole lines
by one write, so a process that is killed leaves at most one torn line at the end, which readers leave out and the next
start cuts off. The queue is bounded: when the disk is slower than the stream, rows of steps are dropped and counted;
events have a reserve of as many places again. A full disk is counted and said once, lines that went in by half are cut
off, and writing goes on as soon as there is room. Nothing here ever holds up or ends a prediction.
Lines reach the disk itself (fsync) once a second; those of the last second may be lost when the power fails.
Cost: about 0.1 ms per row on the caller's side.
"""

import atexit
import json
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from haptera.checks import check_number, check_whole_number
from haptera.errors import Busy, HapteraError, WriteError
from haptera.files.atomic import HALF_WRITTEN, sweep, writable_folder, write_text
from haptera.files.json import plain
from haptera.live.parts import CURRENT, Parts, read_log
from haptera.live.record import Row, event_row

__all__ = ["Log", "read_log"]
log = logging.getLogger("haptera")

ABOUT = "live.json"
LOCK = ".lock"
GATHER = 0.1
"""Seconds in which rows are gathered before they are written."""
Job = Row | Callable[[], None]


class Log:
    """The folder of one guard; no other guard, in this process or another, writes into it at the same time.

    Args:
        folder: made if it is not there.
        rotate: rows of a parquet part.
        places: rows that may wait to be written.
        keep: parquet parts to keep, the newest; None for all.
        sync: seconds between calls of fsync.

    Attributes:
        lost: rows that were not written: because the queue or the disk was full.
        fault: what went wrong last, empty while all is well.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        rotate: int = 20_000,
        places: int = 10_000,
        keep: int | None = None,
        sync: float = 1.0,
    ) -> None:
        check_whole_number("rotate", rotate, 1, what="a number of rows")
        check_whole_number("places", places, 1, what="a number of rows")
        check_number("sync", sync, least=0, what="a number of seconds")
        if keep is not None:
            check_whole_number("keep", keep, 1, what="a number of parts")
        self.folder = writable_folder(Path(folder))
        self.places, self.sync = places, sync
        self.lost, self.fault = 0, ""
        self._lock = _lock(self.folder)
        sweep(self.folder.glob(HALF_WRITTEN))
        self._parts = Parts(self.folder, rotate, keep)
        self._jobs: deque[Job] = deque()
        self._ready = threading.Condition()
        self._queued = self._done = self._untold = 0
        self._hurry = self._closing = False
        self._synced, self._process = time.monotonic(), os.getpid()
        self._thread = threading.Thread(target=self._work, name="haptera-log", daemon=True)
        self._thread.start()
        self._at_exit = _closer(weakref.ref(self))
        atexit.register(self._at_exit)

    def describe(self, about: dict[str, Any]) -> None:
        """Write `live.json`; a full disk is a fault like any other."""
        try:
            write_text(self.folder / ABOUT, json.dumps(plain(about), indent=1) + "\n")
        except WriteError as error:
            self._say(str(error))

    def put(self, row: Row) -> bool:
        """Take a row; say whether there was a place for it."""
        return self._take(row, self.places * (1 if row["kind"] == "step" else 2))

    def run(self, job: Callable[[], None]) -> bool:
        """Have the thread do something after all rows so far are written; say whether there was a place for it."""
        return self._take(job, 2 * self.places)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything so far is written; say whether it is."""
        with self._ready:
            goal, self._hurry = self._queued, True
            self._ready.notify_all()
            return self._ready.wait_for(lambda: self._done >= goal or not self._thread.is_alive(), timeout)

    def close(self, timeout: float | None = 30.0) -> None:
        """Write what waits, and end the thread."""
        atexit.unregister(self._at_exit)
        if self._process != os.getpid():  # a forked child has neither the thread nor the lock
            return
        with self._ready:
            self._closing = self._hurry = True
            self._ready.notify_all()
        self._thread.join(timeout)
        self._lock.release()

    def _take(self, job: Job, places: int) -> bool:
        if self._process != os.getpid():
            self._lose(1, f"the log {self.folder} belongs to the process that made it; make a guard in every worker")
            return False
        with self._ready:
            ended = self._closing and threading.current_thread() is not self._thread
            if len(self._jobs) < places and not ended:
                self._jobs.append(job)
                self._queued += 1
                if len(self._jobs) == 1:
                    self._ready.notify_all()
                return True
        self._lose(1, f"the log {self.folder} is closed, or slower than the stream: {places:,} rows wait")
        return False

    def _lose(self, rows: int, why: str) -> None:
        self.lost += rows
        self._untold += rows
        self._say(why)

    def _say(self, why: str) -> None:
        if not self.fault:  # once, until a write succeeds again
            log.warning("%s; predictions go on, rows that are lost are counted", why)
        self.fault = why

    def _work(self) -> None:
        """What the thread does."""
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._jobs or self._closing)
                if not self._closing:  # more may come
                    self._ready.wait_for(lambda: self._hurry or self._closing, GATHER)
                jobs = list(self._jobs)
                self._jobs.clear()
                ending = self._closing
            self._do(jobs)
            with self._ready:
                self._done += len(jobs)
                self._hurry = self._closing
                self._ready.notify_all()
                if ending and not self._jobs:
                    break
        self._parts.close()

    def _do(self, jobs: list[Job]) -> None:
        """Write rows, and do what else there is to do, in order."""
        rows: list[Row] = []
        for job in jobs:
            if isinstance(job, dict):
                rows.append(job)
                continue
            self._write(rows)
            rows = []
            try:
                job()
            except (OSError, HapteraError) as error:
                self._say(str(error))
        self._write(rows)

    def _write(self, rows: list[Row]) -> None:
        if not rows:
            return
        if told := self._untold:
            sentence = f"{told:,} rows of the log were lost: {self.fault}"
            rows = [*rows, event_row(rows[-1]["step"], rows[-1]["time"], "fault", sentence, {"lost": told})]
        try:
            self._parts.append(rows)
            if time.monotonic() - self._synced >= self.sync or self._closing:
                self._synced = time.monotonic()
                self._parts.sync()
        except (OSError, HapteraError) as error:
            self._lose(len(rows) - bool(told), f"cannot write {self.folder / CURRENT}: {_reason(error)}")
            return
        self._untold -= told
        self.fault = "" if not self._untold else self.fault


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _lock(folder: Path) -> FileLock:
    """Take the lock of a folder, at once or not at all."""
    lock = FileLock(folder / LOCK, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise Busy(f"another guard is writing into {folder}; give each guard a log folder of its own") from error
    except OSError as error:
        raise WriteError(f"cannot lock {folder / LOCK}: {error.strerror or error}") from error
    return lock


def _closer(found: "weakref.ref[Log]") -> Callable[[], None]:
    """What writes the last rows of a log that nobody closed when the program ends."""

    def close() -> None:
        if (one := found()) is not None:
            one.close()

    return close
