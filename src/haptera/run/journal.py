"""The journal of a ledger: a line for each piece that was finished or failed, of which the last one counts.

A line has the size and checksum of a finished file, and its stamp: inode, time of change, and time of the last change
of anything about it. A file whose stamp is as it was has not been written to since, moved, or replaced, so its content
need not be read again to know that; whoever uses the content compares the checksum all the same. As in Git, a stamp is
worth nothing where the file is about as new as the journal: something else could have been written within the same tick
of the clock. A copied folder has other stamps, and is read once. A bit that flips on the disk has no stamp; it is found
when the piece is used, and by `haptera verify`.
Cost: a stamp takes microseconds, a checksum a second for each gigabyte.
"""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.files.fingerprint import of_file, of_folder
from haptera.files.json import parse_json
from haptera.files.schema import LARGEST, TEXT, check, whole_number
from haptera.run.folder import KEY

JOURNAL = "journal.jsonl"
SAME_TICK = 3 * 10**9
"""Nanoseconds within which two changes may have the same time; the coarsest file system has ticks of two seconds."""


@dataclass(frozen=True)
class Line:
    """The last that the journal says about a piece; the stamp is empty for a folder, and where nobody noted it."""

    size: int = 0
    checksum: str = ""
    failure: str = ""
    stamp: str = ""


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
            own = json.loads(text)
            if not _is_line(own):
                raise ValueError
        except (ValueError, RecursionError):  # said again, in words
            try:
                own = check(parse_json(text, f"{path}: line {number}"), kinds, f"{path}: line {number}")
            except HapteraError as error:
                problems.append(str(error))
                continue
        stamp = own.get("stamp", "")
        entries[own["key"]] = Line(own["size"], own["checksum"], own["failure"], stamp if type(stamp) is str else "")
    return entries, problems


def ends_whole(path: Path) -> bool:
    """Say whether a journal is there and its last line was not cut short."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    return True


def line_of(key: str, line: Line) -> str:
    """Return a line as the journal holds it."""
    content = {"key": key, "size": line.size, "checksum": line.checksum, "failure": line.failure}
    return json.dumps(content | ({"stamp": line.stamp} if line.stamp else {})) + "\n"


def finished_line(place: Path | str) -> Line:
    """Return what the journal says of a piece that has just been finished."""
    size, stamp, _ = look_at(place)  # before it is read, so that a change in between is noticed
    return Line(size, checksum_of(place), stamp=stamp)


def look_at(place: Path | str) -> tuple[int, str, int]:
    """Return the bytes of a file, or of all files in a folder, its stamp, and when it last changed.

    The size is -1 where there is nothing; a folder has no stamp.
    """
    try:
        found = os.stat(place)
    except (OSError, ValueError):
        return -1, "", 0
    if stat.S_ISDIR(found.st_mode):
        return sum(each.stat().st_size for each in Path(place).rglob("*") if each.is_file()), "", 0
    if not stat.S_ISREG(found.st_mode):
        return -1, "", 0
    stamp = f"{found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"
    return found.st_size, stamp, max(found.st_mtime_ns, found.st_ctime_ns)


def compare(place: str, line: Line, noted: int | None = None) -> tuple[str, str]:
    """Return what is wrong with a piece that was finished, if anything, and its stamp now.

    Args:
        place: where it is.
        line: what the journal says about it.
        noted: when the journal was last written to; with it, content whose stamp is as it was is not read.
    """
    size, stamp, changed = look_at(place)
    if size != line.size:
        has = f"{place} has {size:,} bytes, and had {line.size:,} when it was finished"
        return has if os.path.exists(place) else f"{place} is missing", stamp
    if noted is not None and stamp and stamp == line.stamp and changed < noted - SAME_TICK:
        return "", stamp
    try:
        same = checksum_of(place) == line.checksum
    except OSError as error:
        return f"cannot read {place}: {error.strerror or error}", stamp
    return "" if same else f"{place} is not what it was when it was finished", stamp


def size_of(place: Path | str) -> int:
    """Bytes of a file, or of all files in a folder; -1 where there is nothing."""
    return look_at(place)[0]


def checksum_of(place: Path | str) -> str:
    """Return the fingerprint of a file, or of all files in a folder."""
    return of_folder(Path(place)) if os.path.isdir(place) else of_file(place)


def _is_line(own: Any) -> bool:
    """Say quickly what `check` says of a line with reasons."""
    if type(own) is not dict:
        return False
    key, size, checksum, failure = own.get("key"), own.get("size"), own.get("checksum"), own.get("failure")
    known = type(size) is int and 0 <= size <= LARGEST and type(checksum) is str and type(failure) is str
    return known and KEY.fits(key)
