"""The folder of a ledger: its plan, which has a checksum; what is finished is in its journal (`haptera.run.journal`).

Pieces that came one at a time, after the plan was written, are in a file of additions (`haptera.run.additions`).
Cost: linear in the number of pieces, to read as to write.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import write_text
from haptera.files.fingerprint import fingerprint
from haptera.files.json import plain, read_json
from haptera.files.schema import TABLE, TEXT, Kind, check, list_of, whole_number

PLAN = "plan.json"
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


def check_same(folder: Path, kind: str, before: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder of a kind whose plan says something else than what is asked for now."""
    for key, now in about.items():
        then = before.get(key)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            check_same(folder, kind, then, now)
        elif then != now:
            values = "" if re.fullmatch("[0-9a-f]{32}", str(now)) else f" ({key} was {then!r}, is {now!r})"
            raise HapteraError(f"{folder} holds a {kind} with another {key}; use another folder, or delete it{values}")
