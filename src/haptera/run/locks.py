"""The lock of a folder lets one writer in at a time, on network drives and on Windows too.

On drives that have no other kind, a lock is a file that is there or not and names its process. What a killed process of
this machine left of it is taken over.
"""

import logging
import warnings
from contextlib import suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from haptera.errors import Busy, WriteError

log = logging.getLogger("haptera")

LOCK = ".lock"
FOREVER = -1.0
PATIENCE = 2.0
"""Seconds that a second run waits for the first before it says so."""


def take_lock(folder: Path, wait: float | None) -> BaseFileLock:
    """Take the lock of a folder.

    Args:
        folder: which must be there.
        wait: seconds; None waits until the other run is done.
    """
    path = folder / LOCK
    lock = FileLock(path, is_singleton=True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "flock not supported")  # such a drive has a SoftFileLock
            try:
                _acquire(lock, folder, PATIENCE if wait is None else wait)
            except Timeout:
                other = f"another run{_owner(path)} is writing into {folder}"
                if isinstance(lock, SoftFileLock) and path.is_file() and not path.stat().st_size:
                    path.unlink()  # nobody's: copied from a drive where the lock is not the file itself
                elif wait is not None:
                    raise Busy(f"{other}; wait for it, or use another --out{_way_out(lock, path)}") from None
                else:
                    log.info("waiting: %s%s", other, _way_out(lock, path))
                _acquire(lock, folder, FOREVER if wait is None else wait)
    except Timeout as error:
        raise Busy(f"another run is writing into {folder}; wait for it, or use another --out") from error
    except OSError as error:
        raise WriteError(f"cannot lock {path}: {error.strerror or error}") from error
    return lock


def _acquire(lock: BaseFileLock, folder: Path, seconds: float) -> None:
    while True:
        try:
            lock.acquire(timeout=seconds)
        except FileNotFoundError:  # a run that came to nothing has taken its empty folder away
            folder.mkdir(parents=True, exist_ok=True)
        else:
            return


def _owner(path: Path) -> str:
    """Return whose lock it is, as ` (process 12 on host)`; nothing where the drive does not need to know."""
    try:
        process, host = path.read_text("utf-8").splitlines()[:2]
    except (OSError, ValueError):
        return ""
    return f" (process {process} on {host.partition('?')[0]})"


def _way_out(lock: BaseFileLock, path: Path) -> str:
    return f"; if it is gone, delete {path}" if isinstance(lock, SoftFileLock) else ""


def is_locked(folder: Path) -> bool:
    """Say whether a run is writing into a folder, in which nothing is left behind."""
    if not (folder / LOCK).exists():
        return False
    try:
        take_lock(folder, wait=0).release()
    except Busy:
        return True
    except WriteError:  # a folder that nobody can write into
        return False
    return False


def release_lock(lock: BaseFileLock, folder: Path) -> None:
    """Give a lock back; a folder that holds nothing else goes with it."""
    if [path.name for path in folder.iterdir()] == [LOCK]:  # nothing came of it
        (folder / LOCK).unlink()
        with suppress(OSError):  # the next run has come in
            folder.rmdir()
    lock.release()
