"""The folder of a ledger: a plan, and a journal with a line for each piece that was finished or failed.

The plan has a checksum. Of several lines about a piece the last one counts. Pieces that came one at a time, after the
plan was written, are in a file of additions (`haptera.run.additions`).
Cost: linear in the number of pieces, to read as to write.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import write_text
from haptera.files.fingerprint import fingerprint, of_file, of_folder
from haptera.files.json import parse_json, plain, read_json
from haptera.files.schema import LARGEST, TABLE, TEXT, Kind, check, list_of, whole_number

PLAN, JOURNAL = "plan.json", "journal.jsonl"
SCHEMA = 3
"""Raised when the meaning of a plan or a journal changes; folders of other versions are refused with a sentence."""
READABLE = (2, SCHEMA)
"""Layouts that are read; 2 is a plan without additions."""
OLD_PLANS = {
    "study.json": "study", "manifest.json": "data set", "calibration.json": "calibration",
    "checkpoint.safetensors": "training",
}  # fmt: skip
"""File -> what the folder of version 0.1 that has it holds."""
_is_key = re.compile(r"[\w. -]{1,200}").fullmatch
INSIDE = Kind("a path inside the folder", lambda value: isinstance(value, str) and _is_inside(value))
KEY = Kind("letters and digits", lambda value: isinstance(value, str) and bool(_is_key(value)))
CHECKSUM, GENERATION = "checksum", "generation"
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
    if content["schema"] not in READABLE:
        raise HapteraError(
            f"{folder} was written by a version of haptera with another layout ({content['schema']}, this one "
            f"has {SCHEMA}); use that version, or another folder"
        )
    check(content, HEADER, str(path))
    for place, piece in enumerate(content["pieces"]):
        if not _is_piece(piece):
            check(piece, PIECE, f"{path}: piece {place}")
    check_keys(f"key in {path}", content, [*HEADER, GENERATION, CHECKSUM])
    check(content, {GENERATION: whole_number()}, str(path), missing=(GENERATION,))
    if content.pop(CHECKSUM, None) not in (None, _checksum(content)):  # those written by hand have none
        raise HapteraError(
            f"{path} is not what it was when it was written; restore it, or delete it and run the command that made "
            f"{folder} again"
        )
    return content


def write_plan(folder: Path, content: dict[str, Any]) -> None:
    """Write the plan of a folder, with the checksum of what it says."""
    content = plain({"schema": SCHEMA, **content})
    rest = {key: value for key, value in content.items() if key != "pieces"} | {CHECKSUM: _checksum(content)}
    lines = [f"{json.dumps(key)}: {json.dumps(value, default=str)}" for key, value in rest.items()]
    pieces = ",\n".join([json.dumps(piece, default=str) for piece in content["pieces"]])
    write_text(folder / PLAN, ",\n".join(["{" + lines[0], *lines[1:], f'"pieces": [\n{pieces}\n]}}\n']))


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
            own = json.loads(text)
            if not _is_line(own):
                raise ValueError
        except (ValueError, RecursionError):  # said again, in words
            try:
                own = check(parse_json(text, f"{path}: line {number}"), kinds, f"{path}: line {number}")
            except HapteraError as error:
                problems.append(str(error))
                continue
        entries[own["key"]] = Line(own["size"], own["checksum"], own["failure"])
    return entries, problems


def line_of(key: str, line: Line) -> str:
    """Return a line as the journal holds it."""
    return json.dumps({"key": key, "size": line.size, "checksum": line.checksum, "failure": line.failure}) + "\n"


def size_of(path: Path | str) -> int:
    """Bytes of a file, or of all files in a folder; -1 where there is nothing."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return -1
    if stat.S_ISDIR(found.st_mode):
        return sum(each.stat().st_size for each in Path(path).rglob("*") if each.is_file())
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def checksum_of(path: Path | str) -> str:
    """Return the fingerprint of a file, or of all files in a folder."""
    return of_folder(Path(path)) if os.path.isdir(path) else of_file(path)


def _is_inside(path: str) -> bool:
    return bool(path) and path[0] != "/" and ".." not in path.split("/")


def _is_piece(own: Any) -> bool:
    """Say quickly what `check` says of a piece with reasons."""
    return (
        type(own) is dict
        and all(name in own for name in PIECE)
        and KEY.fits(own["key"])
        and INSIDE.fits(own["path"])
        and type(own["title"]) is str
        and type(own["facts"]) is dict
    )


def _is_line(own: Any) -> bool:
    """Say quickly what `check` says of a line with reasons."""
    if type(own) is not dict:
        return False
    key, size, checksum, failure = own.get("key"), own.get("size"), own.get("checksum"), own.get("failure")
    known = type(size) is int and 0 <= size <= LARGEST and type(checksum) is str and type(failure) is str
    return known and KEY.fits(key)


def check_same(folder: Path, kind: str, before: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder of a kind whose plan says something else than what is asked for now."""
    for key, now in about.items():
        then = before.get(key)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            check_same(folder, kind, then, now)
        elif then != now:
            values = "" if re.fullmatch("[0-9a-f]{32}", str(now)) else f" ({key} was {then!r}, is {now!r})"
            raise HapteraError(f"{folder} holds a {kind} with another {key}; use another folder, or delete it{values}")
