"""The two files of a ledger: a plan, and a journal with a line for each piece that was finished or failed.

Of several lines about a piece the last one counts.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from haptera.errors import HapteraError
from haptera.files.fingerprint import of_file, of_folder
from haptera.files.json import parse_json, read_json
from haptera.files.schema import TABLE, TEXT, Kind, check, list_of, whole_number

INSIDE = Kind(
    "a path inside the folder",
    lambda value: isinstance(value, str) and bool(value) and _is_inside(PurePosixPath(value)),
)
PLAN, JOURNAL = "plan.json", "journal.jsonl"
SCHEMA = 2
"""Raised when the meaning of a plan or a journal changes; folders of other versions are refused with a sentence."""
OLD_PLANS = {
    "study.json": "study", "manifest.json": "data set", "calibration.json": "calibration",
    "checkpoint.safetensors": "training",
}  # fmt: skip
"""File -> what the folder of version 0.1 that has it holds."""
KEY = Kind("letters and digits", lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w. -]{1,200}", value)))


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
    return content


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
