"""A log is read on while it is written and rotated, and what is torn, foreign or damaged is said, not suffered."""

import json
import os
from datetime import datetime

import pandas as pd
import pytest
from tests.live.recorded_rows import ABOUT, START, append, rows, step_row, write_log

from haptera.errors import HapteraError
from haptera.live.log import Log
from haptera.live.reader import LogReader, last_time, parse_since

ROWS = rows()


def read(folder, since=None):
    reader = LogReader(folder, since)
    reader.read_on()
    return reader


def test_reading_on_is_reading_all_however_the_log_is_rotated_in_between(tmp_path):
    log = Log(tmp_path, rotate=50)
    log.describe(ABOUT)
    reader = LogReader(tmp_path)
    for place in range(0, len(ROWS), 37):
        for row in ROWS[place : place + 37]:
            log.put(row)
        log.flush()
        reader.read_on()
    log.close()
    assert len(list(tmp_path.glob("part-*.parquet"))) > 3
    write_log(tmp_path / "lines")
    for other in (reader, read(tmp_path)):
        pd.testing.assert_frame_equal(other.history.frame(), read(tmp_path / "lines").history.frame())
        assert other.history.events == read(tmp_path / "lines").history.events


def test_a_torn_line_waits_and_is_read_when_it_is_whole(tmp_path):
    write_log(tmp_path, ROWS[:10])
    line = json.dumps(step_row(10)) + "\n"
    with open(tmp_path / "current.jsonl", "a") as file:
        file.write(line[:50])
    reader = read(tmp_path)
    assert (reader.history.steps, reader.damaged) == (sum(row["kind"] == "step" for row in ROWS[:10]), 0)
    before = reader.history.steps
    with open(tmp_path / "current.jsonl", "a") as file:
        file.write(line[50:])
    assert len(reader.read_on()) == 1
    assert reader.history.steps == before + 1


def test_lines_that_are_no_rows_are_left_out_and_counted(tmp_path):
    write_log(tmp_path, ROWS[:10])
    with open(tmp_path / "current.jsonl", "ab") as file:
        file.write(
            b'{"kind": "step"}\n[1, 2]\n\xff\xfe\nnot json\n{"kind": "other", "time": 1}\n' + b"[" * 100_000 + b"\n"
        )
    append(tmp_path, ROWS[10:12])
    reader = read(tmp_path)
    assert reader.damaged == 6
    assert reader.history.steps == sum(row["kind"] == "step" for row in ROWS[:12])
    assert "6 lines of the log could not be read" in reader.run().notes[0]


def test_a_log_that_was_emptied_is_read_from_its_beginning(tmp_path):
    write_log(tmp_path, ROWS[:100])
    reader = read(tmp_path)
    os.truncate(tmp_path / "current.jsonl", 0)
    append(tmp_path, ROWS[:3])
    reader.read_on()
    assert reader.history.steps == sum(row["kind"] == "step" for row in ROWS[:3])


def test_a_folder_that_is_no_log_is_one_sentence(tmp_path):
    with pytest.raises(HapteraError, match="not the log of a guard"):
        LogReader(tmp_path)
    with pytest.raises(HapteraError, match="not there"):
        LogReader(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(HapteraError, match="is a file"):
        LogReader(tmp_path / "file")


@pytest.mark.parametrize("content", [b"PAR1 and then nonsense", b""])
def test_a_part_that_is_damaged_or_foreign_is_one_sentence(tmp_path, content):
    write_log(tmp_path, ROWS[:3])
    (tmp_path / "part-000001.parquet").write_bytes(content)
    with pytest.raises(HapteraError, match=r"cannot read .*part-000001\.parquet"):
        read(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "part-000001.parquet")
    with pytest.raises(HapteraError, match="not a part of a log"):
        read(tmp_path)


def test_a_description_that_is_not_one_is_one_sentence(tmp_path):
    write_log(tmp_path, ROWS[:3])
    (tmp_path / "live.json").write_text("[1]")
    with pytest.raises(HapteraError, match="a JSON object was expected"):
        read(tmp_path).run()


def test_since_is_a_time_of_the_day_a_span_or_a_date(tmp_path):
    last = last_time(write_log(tmp_path))
    assert last == ROWS[-1]["time"]
    day = datetime.fromtimestamp(last).replace(hour=0, minute=0, second=0, microsecond=0)
    assert parse_since("14:00", last) == day.replace(hour=14).timestamp()
    assert parse_since("23:30:10", last) == day.replace(hour=23, minute=30, second=10).timestamp() - 86_400
    assert parse_since("2h", last) == last - 7200
    assert parse_since("1.5d", last) == last - 1.5 * 86_400
    assert parse_since("2026-11-17T14:00", last) == day.replace(hour=14).timestamp()
    kept = read(tmp_path, parse_since("14:00", last)).history
    assert kept.steps == sum(row["kind"] == "step" and row["time"] >= day.replace(hour=14).timestamp() for row in ROWS)
    assert kept.first >= START
    for wrong in ("25:00", "yesterday", "2 weeks", ""):
        with pytest.raises(HapteraError, match="--since is"):
            parse_since(wrong, last)
