"""Reading a log on: what is there, and later only what is new, also while a guard writes and rotates it.

A full `current.jsonl` becomes the next part, so the first rows of a new part are those that were read before. Every
part is read once. What a log says is data: a line that is not a row is left out and counted, a folder that is no log is
one sentence, and names in it are words to print.
"""

import json
import os
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from haptera.errors import HapteraError
from haptera.files.json import read_json
from haptera.live.history import History, number
from haptera.live.run import LiveRun
from haptera.words import count

ABOUT, CURRENT, THUMBNAILS = "live.json", "current.jsonl", "thumbnails"
LARGEST_ABOUT = 2**22
ATTEMPTS = 10
DEEP = 20
"""How many of the last bytes, as a power of two, hold the last row."""
SPANS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class LogReader:
    """A log, read from its beginning and then on and on.

    Args:
        folder: of the log.
        since: Unix seconds; rows of before are left out.

    Attributes:
        history: what was read.
        damaged: lines that are not rows.
    """

    def __init__(self, folder: str | os.PathLike[str], since: float | None = None) -> None:
        self.folder = check_log(folder)
        self.history, self.damaged = History(since), 0
        self._part = 0  # the number of the last part that was read
        self._offset = self._rows = 0  # of the newest file: bytes and rows that were read

    def read_on(self) -> list[dict[str, Any]]:
        """Read what is new; returns the rows that came from the newest file, for who counts them one by one."""
        for _ in range(ATTEMPTS):
            before = parts_of(self.folder)
            try:
                for place in sorted(number for number in before if number > self._part):
                    self._read_part(before[place], place)
            except FileNotFoundError:  # lines that have become parquet in between
                continue
            content = self._tail()
            if content is None:  # somebody has emptied the log
                self._begin_again()
                continue
            if parts_of(self.folder).keys() == before.keys():  # else the newest file has become a part in between
                break
        else:
            raise HapteraError(f"cannot read {self.folder}: its parts change faster than they can be read")
        end = content.rfind(b"\n") + 1  # a line that is being written, or was torn, waits
        rows = self._parse(content[:end].splitlines())
        self._offset += end
        self._rows += len(rows)
        if rows:
            self.history.add(pd.DataFrame(rows))
        return rows

    def _begin_again(self) -> None:
        self.history = History(self.history.since)
        self._part = self._offset = self._rows = self.damaged = 0

    def run(self) -> LiveRun:
        """Return the analysis of what was read."""
        lines = count(self.damaged, "line")
        notes = [f"{lines} of the log could not be read and {'is' if self.damaged == 1 else 'are'} left out"]
        thumbnails = self.folder / THUMBNAILS
        return LiveRun(
            self.history,
            self._about(),
            thumbnails if thumbnails.is_dir() else None,
            notes if self.damaged else [],
        )

    def _about(self) -> dict[str, Any]:
        path = self.folder / ABOUT
        content = read_json(path, LARGEST_ABOUT) if path.is_file() else {}
        if not isinstance(content, dict):
            raise HapteraError(f"{path} is not what a guard writes: a JSON object was expected")
        return content

    def _tail(self) -> bytes | None:
        """Return what is new in the newest file; None where it is shorter than it was."""
        try:
            with open(self.folder / CURRENT, "rb") as file:
                if os.fstat(file.fileno()).st_size < self._offset and self._part == max(
                    parts_of(self.folder), default=0
                ):
                    return None
                file.seek(self._offset)
                return file.read()
        except FileNotFoundError:  # it has just become a part
            return b""
        except OSError as error:
            raise HapteraError(f"cannot read {self.folder / CURRENT}: {error.strerror or error}") from error

    def _read_part(self, path: Path, place: int) -> None:
        """Read a part, but for the rows that were read while it was the newest file."""
        if path.suffix == ".parquet":
            frame = read_part(path)
        else:
            frame = pd.DataFrame(self._parse(path.read_bytes().splitlines()))
        self.history.add(frame.iloc[self._rows :])
        self._part, self._offset, self._rows = place, 0, 0

    def _parse(self, lines: Iterable[bytes]) -> list[dict[str, Any]]:
        rows = []
        for line in lines:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if is_row(row):
                rows.append(row)
            else:
                self.damaged += 1
        return rows


def is_row(row: Any) -> bool:
    """Say whether something is a row of a log."""
    known = isinstance(row, dict) and row.get("kind") in ("step", "event")
    return known and isinstance(row.get("time"), int | float)


def check_log(folder: str | os.PathLike[str]) -> Path:
    """Refuse a folder that is not the log of a guard."""
    path = Path(folder)
    if not path.is_dir():
        raise HapteraError(f"{path} is {'a file' if path.exists() else 'not there'}; the folder of a log was expected")
    if not any((path / name).is_file() for name in (ABOUT, CURRENT)) and not parts_of(path):
        raise HapteraError(f"{path} is not the log of a guard: it has neither {ABOUT} nor {CURRENT} nor a part")
    return path


def parts_of(folder: Path) -> dict[int, Path]:
    """Number -> file of every part; the finished one where there are two."""
    found: dict[int, Path] = {}
    for ending in ("jsonl", "parquet"):
        for path in folder.glob(f"part-*.{ending}"):
            digits = path.stem.removeprefix("part-")
            if digits.isdecimal():
                found[int(digits)] = path
    return found


def read_part(path: Path) -> pd.DataFrame:
    """Return the rows of a finished part; the numbers of events as mappings."""
    from pyarrow import ArrowException, parquet

    try:
        frame = parquet.read_table(path).to_pandas()
    except (ArrowException, OSError) as error:
        raise HapteraError(f"cannot read {path}: {error}; it is damaged, or not a part of a log") from error
    if "kind" not in frame or "time" not in frame:
        raise HapteraError(f"{path} is not a part of a log: the columns kind and time were expected")
    if "numbers" in frame:
        texts = frame["numbers"].astype(object)
        frame["numbers"] = [_mapping(text) for text in texts]
    return frame


def _mapping(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def last_time(folder: Path) -> float:
    """Return the time of the last row of a log, or now where there is none."""
    for path in [folder / CURRENT, *(path for _, path in sorted(parts_of(folder).items(), reverse=True))]:
        if path.suffix == ".parquet":
            return float(read_part(path)["time"].max())
        if path.is_file():
            with open(path, "rb") as file:
                file.seek(max(path.stat().st_size - 2**DEEP, 0))
                lines = file.read().splitlines()
            for line in reversed(lines):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if is_row(row):
                    return number(row["time"])
    return datetime.now().timestamp()


def parse_since(text: str, last: float) -> float:
    """Return Unix seconds of `14:00` (the last one before the end of the log), `2h`, `3d`, or an ISO date and time.

    Args:
        text: what a person wrote, in the time zone where this runs.
        last: Unix seconds of the last row.

    >>> parse_since("90s", 1000.0)
    910.0
    """
    text = text.strip()
    if span := _SPAN.fullmatch(text):
        return last - float(span[1]) * SPANS[span[2]]
    try:
        if time := _CLOCK.fullmatch(text):
            end = datetime.fromtimestamp(last)
            moment = end.replace(hour=int(time[1]), minute=int(time[2]), second=int(time[3] or 0), microsecond=0)
            return (moment if moment <= end else moment - timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        expected = "14:00, 2h, 3d or 2026-11-17T14:00 was expected"
        raise HapteraError(f"--since is {text!r}; {expected}") from error
