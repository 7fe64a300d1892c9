"""Faults of a study's folder: what is damaged is named and made again, and nothing that was said to be done is lost."""

import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.run.cells import cells_of, open_study, study_ledger
from haptera.run.importing import import_predictions
from haptera.run.results import measure, report, table_of

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

RUN = ["run", "--model", "net.py:build", "--data", "data.npz", "--out", "out", "--quiet"]
STREAMS = ["--stream", "clean", "--stream", "corruptions:shifts=contrast,severities=1"]


@pytest.fixture
def study(folder, haptera):
    """A finished study of two cells."""
    assert haptera(*RUN, *STREAMS).returncode == 0
    return folder / "out"


def flip(path, place=None):
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    path.write_bytes(bytes(content))


def bring(folder, model, right=10):
    labels = np.where(np.arange(10) < right, np.arange(10), 11)
    np.savez(folder / f"{model}.npz", labels=labels, targets=np.arange(10))
    return import_predictions(folder / f"{model}.npz", folder / "study", model=model, stream="v2")


def models(folder):
    return set(pd.read_parquet(folder / "table.parquet")["model"]) - {""}


def paths(study):
    ledger = open_study(study)
    return [ledger.path(piece) for piece in ledger.pieces.values()]


def test_a_flipped_bit_is_named_and_that_cell_is_run_again(study, haptera):
    before, [damaged, other] = pd.read_parquet(study / "table.parquet"), paths(study)
    stamp = other.stat().st_mtime_ns
    flip(damaged)
    reported = haptera("report", "out")
    assert reported.returncode == 1
    assert f"is left out: out/cells/{damaged.name} is not what it was" in reported.stderr
    assert "1 of 2 cells left out because their files are damaged" in (study / "report.html").read_text()
    assert len(pd.read_parquet(study / "table.parquet")) < len(before)
    again = haptera(*RUN[:-1], *STREAMS, "--json")
    assert f"out/cells/{damaged.name} is not what it was when it was finished; it is made again" in again.stderr
    assert {key: json.loads(again.stdout)[key] for key in ("ran", "kept", "failed")} == {
        "ran": 1,
        "kept": 1,
        "failed": 0,
    }
    assert other.stat().st_mtime_ns == stamp
    assert len(pd.read_parquet(study / "table.parquet")) == len(before)
    assert haptera("report", "out").returncode == 0
    assert haptera("verify", "out").returncode == 0


def test_cells_that_changed_places_are_noticed(study, haptera):
    one, two = paths(study)
    shutil.copy(one, one.with_name("aside"))
    shutil.move(two, one)
    shutil.move(one.with_name("aside"), two)
    assert haptera("measure", "out").returncode == 1
    again = haptera(*RUN, *STREAMS, "--json")
    assert json.loads(again.stdout)["ran"] == 2
    assert haptera("measure", "out").returncode == 0


def test_a_journal_with_a_damaged_line_costs_one_cell(study, haptera):
    journal = study / "journal.jsonl"
    flip(journal, journal.read_bytes().index(b'"key"'))
    verified = haptera("verify", "out")
    assert verified.returncode == 1
    assert "journal.jsonl: line 1" in verified.stdout
    assert json.loads(haptera(*RUN, *STREAMS, "--json").stdout)["failed"] == 0
    assert haptera("verify", "out").returncode == 0


@pytest.mark.parametrize("schema", [1, 4])
def test_a_folder_of_another_schema_is_refused_and_left_as_it_is(tmp_path, schema):
    bring(tmp_path, "one")
    plan = tmp_path / "study" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"schema": schema}))
    before = plan.read_bytes()
    for command in (
        lambda: bring(tmp_path, "two"),
        lambda: measure(tmp_path / "study"),
        lambda: report(tmp_path / "study"),
    ):
        with pytest.raises(HapteraError, match=f"another layout \\({schema}, this one has 3\\)"):
            command()
    assert plan.read_bytes() == before


def test_a_study_of_the_first_version_is_refused_and_left_as_it_is(tmp_path, haptera):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text('{"schema": 1, "cells": []}')
    with pytest.raises(HapteraError, match=r"holds a study of version 0\.1"):
        bring(tmp_path, "two")
    assert [path.name for path in (tmp_path / "study").iterdir()] == ["study.json"]
    assert haptera("verify", "study").returncode == 2


def test_imports_at_once_lose_no_model(folder, haptera):
    np.savez(folder / "preds.npz", labels=np.arange(10), targets=np.arange(10))
    names = [f"net{number}" for number in range(4)]
    processes = [
        haptera.start("import", "preds.npz", "--model", name, "--stream", "v2", "--out", "out") for name in names
    ]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said
    assert {cell.model for cell in cells_of(open_study(folder / "out"))} == set(names)
    assert models(folder / "out") == set(names)


def test_a_table_is_stale_by_content_whatever_the_clocks_say(tmp_path):
    bring(tmp_path, "one")
    folder = tmp_path / "study"
    measure(folder)
    table = (folder / "table.parquet").read_bytes()
    bring(tmp_path, "two")
    measure(folder)
    (folder / "table.parquet").write_bytes(table)  # newer than every cell, and it lacks one
    assert set(table_of(folder)["model"]) >= {"one", "two"}
    stamp = (folder / "table.parquet").stat().st_mtime_ns
    for path in (folder / "cells").iterdir():
        os.utime(path, (time.time() + 100, time.time() + 100))
    table_of(folder)
    assert (folder / "table.parquet").stat().st_mtime_ns == stamp


def test_a_damaged_table_is_made_again(tmp_path, caplog):
    bring(tmp_path, "one")
    folder = tmp_path / "study"
    whole = measure(folder)
    for place in (100, 400, None):
        flip(folder / "table.parquet", place)
        pd.testing.assert_frame_equal(table_of(folder), whole)
    assert "cannot read the table" in caplog.text


HOLD = """
import sys
from haptera.run.cells import study_ledger

with study_ledger(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_report_during_a_run_shows_what_is_finished_and_leaves_the_table(tmp_path, caplog):
    bring(tmp_path, "one")
    folder = tmp_path / "study"
    measure(folder)
    bring(tmp_path, "two")
    table = (folder / "table.parquet").read_bytes()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        caplog.set_level("INFO")
        report(folder)
        assert "two" in (folder / "report.html").read_text()
        assert "another run is writing" in caplog.text
        assert set(measure(folder)["model"]) >= {"one", "two"}
        assert (folder / "table.parquet").read_bytes() == table
    finally:
        holder.communicate()
    report(folder)
    assert models(folder) == {"one", "two"}


def test_leftovers_of_a_killed_run_are_named_and_swept(study, haptera):
    (study / "cells" / ".abc.part").write_bytes(b"half")
    verified = haptera("verify", "out")
    assert "cells/.abc.part was left by a run that was stopped" in verified.stdout
    with study_ledger(study):
        assert "left by" not in haptera.apart("verify", "out").stdout  # swept, and a run is under way
    assert haptera("verify", "out").returncode == 0
    assert not list((study / "cells").glob(".*"))


def test_verify_checks_every_folder_inside_and_says_so_in_json(study, haptera):
    bring(study, "mine")  # a study within the folder of another
    told = json.loads(haptera("verify", "out", "--json").stdout)
    assert told["problems"] == 0
    assert [(each["folder"], each["kind"], each["pieces"], each["finished"]) for each in told["folders"]] == [
        ("out", "study", 2, 2),
        ("out/samples", "set of sample images", 1, 1),
        ("out/study", "study", 1, 1),
    ]
    paths(study / "study")[0].unlink()
    paths(study)[0].write_bytes(b"")
    done = haptera("verify", "out", "--json")
    assert done.returncode == 1
    first, _, second = (each["problems"] for each in json.loads(done.stdout)["folders"])
    assert "has 0 bytes, and had" in first[0]
    assert second[0].endswith("is missing")


def test_verify_refuses_what_is_not_such_a_folder(folder, haptera):
    (folder / "empty").mkdir()
    for name, why in (("empty", "has no plan.json"), ("nowhere", "there is no folder nowhere")):
        done = haptera("verify", name)
        assert done.returncode == 2
        assert why in done.stderr
