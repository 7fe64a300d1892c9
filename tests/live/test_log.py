import errno
import json
import os
import threading

import pytest

from haptera.errors import Busy, HapteraError, WriteError
from haptera.live import parts
from haptera.live.log import Log, read_log
from haptera.live.record import StepRecord, event_row, window_of


def step(number, **values):
    return StepRecord(number, 1000.0 + number, float(number), 4, **values).row()


def write(folder, numbers, **settings):
    log = Log(folder, **settings)
    for number in numbers:
        log.put(step(number, largest=0.1 * (number % 7), events=("reset",) if number == 3 else ()))
    log.put(event_row(3, 1003.0, "reset", "the adapter reset itself", {"resets": 1}))
    log.close()


def test_rows_are_read_as_they_were_written_also_out_of_parquet(tmp_path):
    write(tmp_path / "lines", range(1, 26))
    write(tmp_path / "parts", range(1, 26), rotate=10)
    lines, parquet = read_log(tmp_path / "lines"), read_log(tmp_path / "parts")
    assert lines[0].equals(parquet[0])
    assert lines[1].equals(parquet[1])
    assert list(lines[0]["step"]) == list(range(1, 26))
    assert lines[0]["largest"].iloc[8] == pytest.approx(0.2)
    assert lines[0]["events"].iloc[2] == ["reset"]
    assert lines[0]["accuracy"].isna().all()
    assert lines[1]["numbers"].iloc[0] == {"resets": 1}
    assert any((tmp_path / "parts").glob("part-*.parquet"))
    assert not any((tmp_path / "parts").glob("part-*.jsonl"))


def test_rows_since_a_time_come_alone(tmp_path):
    write(tmp_path, range(1, 26), rotate=10)
    assert list(read_log(tmp_path, since=1020.0)[0]["step"]) == list(range(20, 26))


def test_a_torn_line_is_left_out_and_cut_off_at_the_next_start(tmp_path):
    write(tmp_path, range(1, 5))
    with open(tmp_path / "current.jsonl", "ab") as file:
        file.write(b'{"kind": "step", "st')
    assert list(read_log(tmp_path)[0]["step"]) == [1, 2, 3, 4]
    write(tmp_path, [5])
    lines = (tmp_path / "current.jsonl").read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)
    assert list(read_log(tmp_path)[0]["step"]) == [1, 2, 3, 4, 5]


def test_a_part_that_a_kill_left_as_lines_is_read_once_and_finished(tmp_path):
    write(tmp_path, range(1, 5))
    os.replace(tmp_path / "current.jsonl", tmp_path / "part-000001.jsonl")
    assert list(read_log(tmp_path)[0]["step"]) == [1, 2, 3, 4]
    write(tmp_path, range(5, 7))
    assert (tmp_path / "part-000001.parquet").exists()
    assert not (tmp_path / "part-000001.jsonl").exists()
    assert list(read_log(tmp_path)[0]["step"]) == [1, 2, 3, 4, 5, 6]
    assert len(read_log(tmp_path)[1]) == 2


def test_a_step_that_was_made_anew_counts_once(tmp_path):
    write(tmp_path, [1, 2, 3])
    log = Log(tmp_path)
    log.put(step(3, largest=0.9))
    log.close()
    steps, _ = read_log(tmp_path)
    assert list(steps["step"]) == [1, 2, 3]
    assert steps["largest"].iloc[2] == 0.9


def test_old_parts_go_where_that_was_asked_for(tmp_path):
    write(tmp_path, range(1, 41), rotate=5, keep=2)
    assert len(list(tmp_path.glob("part-*.parquet"))) <= 2


def test_a_full_disk_is_said_once_counted_and_left_behind(tmp_path, monkeypatch, caplog):
    log, real, full = Log(tmp_path), os.write, threading.Event()

    def write_half(handle, data):
        if not full.is_set():
            return real(handle, data)
        real(handle, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parts.os, "write", write_half)
    log.put(step(1))
    assert log.flush(30)
    full.set()
    for number in (2, 3):
        log.put(step(number))
        assert log.flush(30)
    assert log.lost == 2
    assert "No space" in log.fault
    full.clear()
    log.put(step(4))
    log.close()
    steps, events = read_log(tmp_path)
    assert list(steps["step"]) == [1, 4]
    assert list(events["event"]) == ["fault"]
    assert events["numbers"].iloc[0] == {"lost": 2}
    assert sum("No space" in each.message for each in caplog.records) == 1
    assert log.fault == ""


def test_rows_that_find_no_place_are_counted_and_events_have_a_reserve(tmp_path):
    log, busy, wait = Log(tmp_path, places=4), threading.Event(), threading.Event()

    def hang():
        busy.set()
        assert wait.wait(60)

    log.run(hang)
    assert busy.wait(60)
    taken = [log.put(step(number)) for number in range(6)]
    assert taken == [True] * 4 + [False] * 2
    assert log.put(event_row(6, 1006.0, "fallback", "it collapsed"))
    wait.set()
    log.close()
    steps, events = read_log(tmp_path)
    assert len(steps) == 4
    assert list(events["event"]) == ["fallback", "fault"]
    assert log.lost == 2


def test_a_second_guard_is_told_that_the_folder_is_taken(tmp_path):
    log = Log(tmp_path)
    with pytest.raises(Busy, match="another guard"):
        Log(tmp_path)
    log.close()
    Log(tmp_path).close()


def test_what_is_not_a_log_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="is not the log of a guard"):
        read_log(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="it is a file"):
        Log(tmp_path / "file")
    with pytest.raises(HapteraError, match="rotate is 0"):
        Log(tmp_path, rotate=0)


def test_numbers_have_six_digits_and_times_six_decimals():
    row = step(1, largest=1 / 3, shift_size=float("nan"))
    assert row["largest"] == 0.333333
    assert row["shift_size"] is None
    late = StepRecord(1, 1794947313.9609612, 5.0, 1).row()
    assert late["time"] == 1794947313.960961


def test_a_window_without_steps_is_empty():
    assert window_of([]) == {"steps": 0, "images": 0}
