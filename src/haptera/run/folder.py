"""The folder of a ledger: a plan, a journal with a line for each piece that was finished or failed, and a lock.

The plan has a checksum. Of several lines about a piece the last one counts. The lock lets one writer in at a time, on
network drives and on Windows too: on drives that have no other kind, a lock is a file that is there or not and names
its process. What a killed process of this machine left of it is taken over.
"""

import json
import logging
import re
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from haptera.errors import Busy, HapteraError, WriteError, check_keys
from haptera.files.atomic import write_text
from haptera.files.fingerprint import fingerprint, of_file, of_folder
from haptera.files.json import parse_json, plain, read_json
from haptera.files.schema import TABLE, TEXT, Kind, check, list_of, whole_number

log = logging.getLogger("haptera")

INSIDE = Kind(
    "a path inside the folder",
    lambda value: isinstance(value, str) and bool(value) and _is_inside(PurePosixPath(value)),
)
PLAN, JOURNAL, LOCK = "plan.json", "journal.jsonl", ".lock"
FOREVER = -1.0
PATIENCE = 2.0
"""Seconds that a second run waits for the first before it says so."""
SCHEMA = 2
"""Raised when the meaning of a plan or a journal changes; folders of other versions are refused with a sentence."""
OLD_PLANS = {
    "study.json": "study", "manifest.json": "data set", "calibration.json": "calibration",
    "checkpoint.safetensors": "training",
}  # fmt: skip
"""File -> what the folder of version 0.1 that has it holds."""
KEY = Kind("letters and digits", lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w. -]{1,200}", value)))
CHECKSUM = "checksum"
HEADER = {"schema": whole_number(), "kind": TEXT, "noun": TEXT, "about": TABLE, "pieces": list_of(TABLE)}
PIECE = {"key": KEY, "path": INSIDE, "title": TEXT, "facts": TABLE}


@dataclass(frozen=True)
class Line:
    """The last that the journal says about a piece."""

    size: int = 0
    checksum: str = ""
    failure: str = ""


def read_plan(folder: Path) -> dict[str, Any] | None:
    """Return what the plan of a folder says; None where there is none, an error for one of another version."""
    path = folder / PLAN
    if not path.is_file():
        for name, what in OLD_PLANS.items():
            if (folder / name).is_file():
                raise HapteraError(
                    f"{folder} holds a {what} of version 0.1 (holdfast), which this one does not read; "
                    "use another folder"
                )
        return None
    content = check(read_json(path), {"schema": whole_number()}, str(path))
    if content["schema"] != SCHEMA:
        raise HapteraError(
            f"{folder} was written by a version of haptera with another layout ({content['schema']}, this one "
            f"has {SCHEMA}); use that version, or another folder"
        )
    check(content, HEADER, str(path))
    for place, piece in enumerate(content["pieces"]):
        check(piece, PIECE, f"{path}: piece {place}")
    check_keys(f"key in {path}", content, [*HEADER, CHECKSUM])
    if content.pop(CHECKSUM, None) not in (None, _checksum(content)):  # those written by hand have none
        raise HapteraError(
            f"{path} is not what it was when it was written; restore it, or delete it and run the command that made "
            f"{folder} again"
        )
    return content


def write_plan(folder: Path, content: dict[str, Any]) -> None:
    """Write the plan of a folder, with the checksum of what it says."""
    content = plain({"schema": SCHEMA, **content})
    write_text(folder / PLAN, json.dumps(content | {CHECKSUM: _checksum(content)}, indent=1, default=str))


def _checksum(content: dict[str, Any]) -> str:
    return fingerprint(json.dumps(content, sort_keys=True, default=str))


def read_journal(path: Path) -> tuple[dict[str, Line], list[str]]:
    """Return the last line about each piece, and what is wrong with lines that cannot be read.

    A line that cannot be read is as if it had not been written: its piece is made again. A last line that was cut short
    is what a killed run leaves, and nothing is wrong with that.
    """
    if not path.is_file():
        return {}, []
    entries: dict[str, Line] = {}
    problems: list[str] = []
    kinds = {"key": KEY, "size": whole_number(), "checksum": TEXT, "failure": TEXT}
    for number, text in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            own = check(parse_json(text, f"{path}: line {number}"), kinds, f"{path}: line {number}")
        except HapteraError as error:
            problems.append(str(error))
            continue
        entries[own["key"]] = Line(own["size"], own["checksum"], own["failure"])
    return entries, problems


def line_of(key: str, line: Line) -> str:
    """Return a line as the journal holds it."""
    return json.dumps({"key": key, **asdict(line)}) + "\n"


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; -1 where there is nothing."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size if path.is_file() else -1


def checksum_of(path: Path) -> str:
    """Return the fingerprint of a file, or of all files in a folder."""
    return of_folder(path) if path.is_dir() else of_file(path)


def _is_inside(path: PurePosixPath) -> bool:
    return not path.is_absolute() and ".." not in path.parts


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
