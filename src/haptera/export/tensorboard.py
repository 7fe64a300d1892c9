"""TensorBoard: a folder of events for each run.

Numbers about a whole stream stand at step 0, those along it at theirs; settings and notes are texts. Every folder holds
`haptera.json`, which says what it is about: one that says the same is left alone, and another about the same run is
replaced whole. A folder that haptera did not write is refused. Events are tensorboardX's, which imports torch where
that is installed; its `SummaryWriter` writes in a thread and waits for ever when the disk is full, so it is not used.
"""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.export.names import file_name
from haptera.export.record import Outcome, Record, Run, artifacts, record_of
from haptera.extras import import_extra
from haptera.files.atomic import whole_folder, writable_folder
from haptera.files.json import read_json
from haptera.report.paper.formats import escape_markdown

MARK = "haptera.json"


def to_tensorboard(source: Any, out: Path | str, *, measures: Sequence[str] = (), steps: bool = True) -> Outcome:
    """Write a study or an analysis as a folder that `tensorboard --logdir` shows.

    Args:
        source: a study, an analysis, or the folder of one of them.
        out: the folder.
        measures: only these; all by default.
        steps: whether measures along a stream are written, a number for each step.
    """
    _part("summary")  # or say at once that it is missing
    record = record_of(source, measures, steps)
    folder = writable_folder(Path(out))
    outcome = Outcome(str(folder), notes=record.notes)
    for run in record.runs:
        path = folder / file_name(run.name)
        mark = {"key": run.key, "digest": run.digest}
        if path.exists():
            if read_mark(path) == mark:
                outcome.kept.append(run.name)
                continue
            if not (path / MARK).is_file():
                raise HapteraError(f"{path} is there and was not written by haptera; choose another --out")
            outcome.replaced.append(run.name)
        with whole_folder(path, beside=folder) as hidden:
            _write_run(hidden, run, record)
            (hidden / MARK).write_text(json.dumps(mark), encoding="utf-8")
        outcome.written.append(run.name)
    return outcome


def read_mark(folder: Path) -> Any:
    """Return what the mark in a folder says; None where there is none that can be read."""
    try:
        return read_json(folder / MARK)
    except HapteraError:
        return None


def _write_run(folder: Path, run: Run, record: Record) -> None:
    writer = _part("event_file_writer").EventsWriter(str(folder / "events"))
    make, event, now = _part("summary"), _part("proto.event_pb2").Event, time.time()
    try:
        for name, content in (("settings", run.settings), ("about", run.tags)):
            writer.write_event(event(wall_time=now, step=0, summary=make.text(name, _listing(content))))
        for each in run.metrics:
            number = make.scalar(each.name, each.value)
            writer.write_event(event(wall_time=now, step=each.step or 0, summary=number))
    finally:
        writer.close()
    if run.main:
        with artifacts(record) as paths:
            for path in paths:
                shutil.copyfile(path, folder / path.name)


def _part(name: str) -> Any:
    return import_extra(f"tensorboardX.{name}", "export", "export tensorboard")


def _listing(content: Any) -> str:
    rows = [f"| {escape_markdown(str(name))} | {escape_markdown(str(value))} |" for name, value in content.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])
