"""Calls: an adapter answers one at a time, and each thread reads the record of its own last call.

Locks and thread-local values do not copy or pickle; these two do, so that an adapter does. A copy begins unlocked.
"""

import threading
from collections.abc import Callable
from types import TracebackType

Record = dict[str, float]


class Lock:
    """A lock that the thread which holds it may take again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        return Lock, ()


class Records:
    """The record of each thread's last call; a thread that made none reads the newest finished one."""

    def __init__(self, newest: Record | None = None) -> None:
        self._own = threading.local()
        self._newest = {} if newest is None else newest

    def read(self) -> Record:
        """The calling thread's, the same object until it is written again."""
        return getattr(self._own, "record", self._newest)

    def write(self, record: Record) -> None:
        """Begin the calling thread's record anew."""
        self._own.record = record

    def finish(self) -> None:
        """Show the calling thread's record to threads that have none."""
        self._newest = self.read()

    def __reduce__(self) -> tuple[Callable[..., "Records"], tuple[Record]]:
        return Records, (dict(self.read()),)
