"""The lock of a folder: one writer at a time, on network drives and on Windows too."""

import logging
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from haptera.errors import Busy, WriteError

log = logging.getLogger("haptera")

LOCK = ".lock"
FOREVER = -1.0
PATIENCE = 2.0
"""Seconds that a second run waits for the first before it says so."""


def take_lock(folder: Path, wait: float | None) -> BaseFileLock:
    """Take the lock of a folder; on network drives that have no other kind, a lock is a file that is there or not."""
    path, first = folder / LOCK, PATIENCE if wait is None else wait
    for make in (FileLock, SoftFileLock):
        lock = make(path, is_singleton=True)
        try:
            try:
                _acquire(lock, folder, first)
            except Timeout:
                if wait is not None:
                    raise
                log.info("waiting for another run that is writing into %s", folder)
                _acquire(lock, folder, FOREVER)
            return lock
        except Timeout as error:
            raise Busy(f"another run is writing into {folder}; wait for it, or use another --out") from error
        except NotImplementedError:
            continue
        except OSError as error:
            raise WriteError(f"cannot lock {path}: {error.strerror or error}") from error
    raise WriteError(f"cannot lock {path}: the drive has no locks")


def _acquire(lock: BaseFileLock, folder: Path, seconds: float) -> None:
    while True:
        try:
            lock.acquire(timeout=seconds)
        except FileNotFoundError:  # a run that came to nothing has taken its empty folder away
            folder.mkdir(parents=True, exist_ok=True)
        else:
            return


def is_locked(folder: Path) -> bool:
    """Say whether a run is writing into a folder."""
    try:
        take_lock(folder, wait=0).release()
    except Busy:
        return True
    except WriteError:  # a folder that nobody can write into
        return False
    return False
