"""Parts: the files of a log; lines are appended to one, full ones become parquet, and all are read as one table.

A part exists once: `current.jsonl` is renamed to `part-000007.jsonl`, that becomes `part-000007.parquet`, written
beside and renamed, and only then the lines go. Whoever is killed in between finds one of the two, or both, of which the
parquet counts.
"""

import json
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.live.record import StepRecord

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("haptera")

CURRENT = "current.jsonl"
EVENT_COLUMNS = ("step", "time", "event", "sentence", "numbers")
STEP_COLUMNS = tuple(each.name for each in fields(StepRecord))
_WRITE = os.O_WRONLY | os.O_APPEND | os.O_CREAT
Row = dict[str, Any]


class Parts:
    """The files that one log appends to.

    Args:
        folder: of the log.
        rotate: rows of a part.
        keep: parts to keep, the newest; None for all.
    """

    def __init__(self, folder: Path, rotate: int, keep: int | None = None) -> None:
        self.folder, self.rotate, self.keep = folder, rotate, keep
        self._path = folder / CURRENT
        self._handle: int | None = None
        self._size = self._rows = 0
        self._finish()

    def append(self, rows: list[Row]) -> None:
        """Append whole lines or nothing."""
        text = b"".join(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n" for row in rows)
        handle = self._open()
        try:
            written = 0
            while written < len(text):
                written += os.write(handle, text[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, self._size)  # what went in by half
            raise
        self._size += len(text)
        self._rows += len(rows)
        if self._rows >= self.rotate:
            self._rotate()

    def sync(self) -> None:
        """Make sure that the lines outlive a power cut."""
        if self._handle is not None:
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            with suppress(OSError):
                os.fsync(self._handle)
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        """Open the newest file, without a line that was torn when a process was killed."""
        if self._handle is None:
            self._handle = os.open(self._path, _WRITE, 0o666)
            content = self._path.read_bytes()
            self._size, self._rows = content.rfind(b"\n") + 1, content.count(b"\n")
            if self._size < len(content):
                os.ftruncate(self._handle, self._size)
        return self._handle

    def _rotate(self) -> None:
        self.close()
        number = max((_number(path) for path in self.folder.glob("part-*")), default=0) + 1
        os.replace(self._path, self.folder / f"part-{number:06d}.jsonl")
        self._size = self._rows = 0
        self._finish()

    def _finish(self) -> None:
        """Make parquet of all parts that are still lines; on a full disk they stay so, and are read as they are."""
        for lines in sorted(self.folder.glob("part-*.jsonl")):
            try:
                if not lines.with_suffix(".parquet").exists():
                    _write_parquet(lines.with_suffix(".parquet"), _rows(lines.read_bytes(), lines))
                lines.unlink()
            except (OSError, HapteraError) as error:
                log.warning("%s stays as lines: %s", lines, error)
        if self.keep is not None:
            for old in sorted(self.folder.glob("part-*.parquet"))[: -self.keep]:
                old.unlink(missing_ok=True)


def read_log(folder: str | os.PathLike[str], since: float | None = None) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Read a log, also while a guard writes it: a frame of steps, a frame of events.

    Where a guard was restored from a snapshot and made steps anew, the later row of a step counts; all events stay.

    Args:
        folder: of the log.
        since: unix seconds; rows of before are left out.
    """
    import pandas as pd

    folder = Path(folder)
    if not (folder / CURRENT).is_file() and not any(folder.glob("part-*")):
        raise HapteraError(f"{folder} is not the log of a guard: there is neither {CURRENT} nor a part in it")
    for attempt in (1, 2, 3):
        try:
            rows = [row for path in _files(folder) for row in _read(path, since)]
            break
        except FileNotFoundError:  # a part was finished in between
            if attempt == 3:
                raise
    steps = [row for row in rows if row["kind"] == "step"]
    events = [row for row in rows if row["kind"] == "event"]
    frame = pd.DataFrame(steps, columns=list(STEP_COLUMNS)).drop_duplicates("step", keep="last")
    frame = frame.astype({each.name: float for each in fields(StepRecord) if each.type is float})
    return frame.sort_values("step", kind="stable", ignore_index=True), pd.DataFrame(
        events, columns=list(EVENT_COLUMNS)
    )


def _files(folder: Path) -> list[Path]:
    """The files of a log, oldest first, each part once."""
    parts = {_number(path): path for path in sorted(folder.glob("part-*.jsonl"))}
    parts |= {_number(path): path for path in sorted(folder.glob("part-*.parquet"))}
    current = [folder / CURRENT] if (folder / CURRENT).is_file() else []
    return [parts[number] for number in sorted(parts)] + current


def _read(path: Path, since: float | None) -> Iterable[Row]:
    if path.suffix == ".parquet":
        return _read_parquet(path, since)
    return [row for row in _rows(path.read_bytes(), path) if since is None or row["time"] >= since]


def _rows(content: bytes, path: Path) -> list[Row]:
    """The rows of whole lines; a torn one at the end is left out, a damaged one in between is said."""
    rows, damaged = [], 0
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and row.get("kind") in ("step", "event") and isinstance(row.get("time"), int | float):
            rows.append(row)
        else:
            damaged += 1
    if damaged:
        log.warning("%s: %d lines are not rows of a log; they are left out", path, damaged)
    return rows


def _write_parquet(path: Path, rows: list[Row]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds: dict[Any, Any] = {int: pa.int64(), float: pa.float64()}
    schema = {"kind": pa.string()} | {each.name: kinds.get(each.type, pa.string()) for each in fields(StepRecord)}
    schema |= {name: pa.string() for name in ("event", "sentence", "numbers")}
    texts = ("events", "numbers")
    columns = {
        name: pa.array(
            [json.dumps(row[name]) if name in texts and name in row else row.get(name) for row in rows], kind
        )
        for name, kind in schema.items()
    }
    with whole(path) as file:
        parquet.write_table(pa.table(columns), file)


def _read_parquet(path: Path, since: float | None) -> list[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, filters=None if since is None else [("time", ">=", since)])
    except pa.ArrowException as error:
        raise HapteraError(f"cannot read {path}: {error}") from error
    rows = []
    for row in table.to_pylist():
        names = STEP_COLUMNS if row["kind"] == "step" else EVENT_COLUMNS
        own = {"kind": row["kind"]} | {name: row.get(name) for name in names}
        own |= {name: json.loads(own[name]) for name in ("events", "numbers") if own.get(name) is not None}
        rows.append(own)
    return rows


def _number(path: Path) -> int:
    text = path.stem.removeprefix("part-")
    return int(text) if text.isdecimal() else 0
