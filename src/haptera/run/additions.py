"""Additions: pieces that join a folder one at a time, each by one line that is appended.

    with open_for_addition(folder, "study", noun="cell", about={...}) as add:     # takes the lock
        outputs.save(folder / piece.path)
        add(piece, ("model", "seed"))       # replaces earlier pieces whose facts have the same model and seed

A plan that is written again for every piece costs the square of their number. `additions.jsonl` begins with a line
about the plan that it adds to; each further line is a piece, with the size and checksum of its file: the entry in the
plan and that in the journal at once, so an addition has happened or not. Each line begins with its own checksum. A last
line that was cut short is what a killed process leaves, and is removed by the next one; any other line that is not what
it was is an error. The next plan takes the additions in and has a higher generation; a file about an older generation,
which a kill at that moment leaves, is not read again.
Cost: the same for every piece, but for a hash of the plan's file.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, Unfinished, WriteError
from haptera.files.atomic import writable_folder, write_text
from haptera.files.fingerprint import of_bytes, of_file
from haptera.files.json import parse_json, plain
from haptera.files.schema import TEXT, check, list_of, whole_number
from haptera.run.folder import (
    GENERATION,
    PIECE,
    PLAN,
    SCHEMA,
    read_plan,
    write_plan,
)
from haptera.run.journal import Line, checksum_of, size_of
from haptera.run.locks import release_lock, take_lock
from haptera.run.piece import Piece

ADDITIONS = "additions.jsonl"
HEADER = {"kind": TEXT, "plan": TEXT, GENERATION: whole_number()}
ENTRY = PIECE | {"size": whole_number(), "checksum": TEXT, "within": list_of(TEXT)}
DIGITS = 32
"""Of the checksum before each line."""

Add = Callable[[Piece, Sequence[str]], None]


@dataclass(frozen=True)
class Addition:
    """A piece that joined the folder, and which earlier ones it replaces: those that agree in the facts `within`."""

    piece: Piece
    line: Line
    within: tuple[str, ...]


def read_additions(folder: Path, generation: int) -> list[Addition]:
    """Return what was added to the plan of a generation, in order."""
    path = folder / ADDITIONS
    if not path.is_file():
        return []
    lines = _whole_lines(path)
    if not lines or check(lines[0], HEADER, f"{path}: line 1")[GENERATION] != generation:
        return []
    entries = [check(own, ENTRY, f"{path}: line {number}") for number, own in enumerate(lines[1:], 2)]
    return [
        Addition(Piece(*(own[name] for name in PIECE)), Line(own["size"], own["checksum"]), tuple(own["within"]))
        for own in entries
    ]


def add_all(pieces: Mapping[str, Piece], additions: Sequence[Addition]) -> dict[str, Piece]:
    """Return pieces with additions after them, and without those that these replace."""
    result = dict(pieces)
    places: dict[tuple[str, ...], dict[tuple[Any, ...], list[str]]] = {}
    for within in dict.fromkeys(each.within for each in additions):
        places[within] = {}
        for key, piece in (*pieces.items(), *((each.piece.key, each.piece) for each in additions)):
            places[within].setdefault(_place(piece, within), []).append(key)
    for each in additions:
        for key in places[each.within][_place(each.piece, each.within)]:
            result.pop(key, None)
        result[each.piece.key] = each.piece
    return result


def _place(piece: Piece, within: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(repr(piece.facts.get(name)) for name in within) if within else (piece.key,)


@contextmanager
def open_for_addition(
    folder: Path, kind: str, *, noun: str, about: Mapping[str, Any], wait: float | None
) -> Iterator[Add]:
    """Take the lock of a folder and yield what adds a piece, whose file is in its place, to the plan.

    Args:
        folder: made where it is not there, with an empty plan.
        kind: what the folder must hold.
        noun: what messages call a piece of a new folder.
        about: what a new plan says.
        wait: seconds to wait for another writer; None waits until it is done.
    """
    _generation(folder, kind)  # before anything is written, and before others are waited for
    writable_folder(folder)
    lock = take_lock(folder, wait)
    try:

        def add(piece: Piece, within: Sequence[str] = ()) -> None:
            if not (folder / PLAN).is_file():
                write_plan(folder, {"kind": kind, "noun": noun, "about": about, "pieces": []})
            path = folder / piece.path
            line = {"size": size_of(path), "checksum": checksum_of(path), "within": list(within)}
            _append(folder, kind, plain(piece.entry() | line))

        yield add
    except WriteError as error:
        raise Unfinished(f"{error}; what was added before is intact, the same command goes on") from error
    finally:
        release_lock(lock, folder)


def _generation(folder: Path, kind: str) -> int | None:
    """Return the generation of a plan after checking that it can be added to; None where there is none.

    The whole plan is read unless it is the one that the last addition found in order.
    """
    path = folder / PLAN
    header = _header(folder / ADDITIONS)
    if header and header["kind"] == kind and path.is_file() and of_file(path) == header["plan"]:
        return int(header[GENERATION])
    content = read_plan(folder)
    if content is None:
        return None
    if content["kind"] != kind:
        raise HapteraError(f"{folder} holds a {content['kind']}; a {kind} was expected")
    return int(content.get(GENERATION, 0))


def _append(folder: Path, kind: str, entry: dict[str, Any]) -> None:
    generation = _generation(folder, kind)
    assert generation is not None
    path, header = folder / ADDITIONS, _header(folder / ADDITIONS)
    if header is None or header[GENERATION] != generation:
        content = read_plan(folder)
        assert content is not None
        if content["schema"] != SCHEMA:  # versions that do not know additions must not read a plan without them
            write_plan(folder, {name: content[name] for name in ("kind", "noun", "about", "pieces")})
        start = {"kind": kind, "plan": of_file(folder / PLAN), GENERATION: generation}
        write_text(path, _line(start) + _line(entry))
        return
    try:
        with open(path, "r+b") as file:
            file.truncate(_end(path))
            file.seek(0, os.SEEK_END)
            file.write(_line(entry).encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def _end(path: Path) -> int:
    """Return where the whole lines of a file end."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        block = 4096
        while True:
            file.seek(max(size - block, 0))
            tail = file.read()
            at = tail.rfind(b"\n")
            if at >= 0:
                if _is_line(tail[at + 1 : -1]):
                    _content(tail[at + 1 :], path, tail.count(b"\n") + 1)
                return size - len(tail) + at + 1
            if block >= size:
                return 0
            block *= 8


def _header(path: Path) -> dict[str, Any] | None:
    """Return the first line of a file of additions, if there is one."""
    if not path.is_file():
        return None
    with open(path, "rb") as file:
        first = file.readline()
    return check(_content(first.rstrip(b"\n"), path, 1), HEADER, f"{path}: line 1") if first.endswith(b"\n") else None


def _line(content: dict[str, Any]) -> str:
    text = json.dumps(content, default=str)
    return f"{of_bytes(text.encode())} {text}\n"


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    *lines, rest = path.read_bytes().split(b"\n")
    if _is_line(rest[:-1]):  # not cut short: its end is not what it was
        lines.append(rest)
    return [_content(line, path, number) for number, line in enumerate(lines, 1)]


def _is_line(line: bytes) -> bool:
    return of_bytes(line[DIGITS + 1 :]).encode() + b" " == line[: DIGITS + 1]


def _content(line: bytes, path: Path, number: int) -> dict[str, Any]:
    if not _is_line(line):
        raise HapteraError(
            f"{path}: line {number} is not what it was when it was written; restore the file, or delete it and import "
            "again what it lists"
        )
    content: dict[str, Any] = parse_json(line[DIGITS + 1 :], f"{path}: line {number}")
    return content
