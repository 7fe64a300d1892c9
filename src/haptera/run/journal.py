"""The journal of a ledger: a line for each piece that was finished or failed, the last of which counts."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from haptera.files.fingerprint import of_file, of_folder
from haptera.files.json import parse_json
from haptera.files.schema import TEXT, Kind, check, whole_number

INSIDE = Kind(
    "a path inside the folder",
    lambda value: isinstance(value, str) and bool(value) and _is_inside(PurePosixPath(value)),
)
KEY = Kind("letters and digits", lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w. -]{1,200}", value)))


@dataclass(frozen=True)
class Line:
    """The last that the journal says about a piece."""

    size: int = 0
    checksum: str = ""
    failure: str = ""


def read_journal(path: Path) -> dict[str, Line]:
    """Return the last line about each piece; a last line that was cut short is as if it had not been written."""
    if not path.is_file():
        return {}
    found: dict[str, Line] = {}
    lines = path.read_bytes().split(b"\n")
    for number, text in enumerate(lines[:-1], 1):
        own = parse_json(text, f"{path}: line {number}")
        kinds = {"key": KEY, "size": whole_number(), "checksum": TEXT, "failure": TEXT}
        own = check(own, kinds, f"{path}: line {number}")
        found[own["key"]] = Line(own["size"], own["checksum"], own["failure"])
    return found


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
