"""What an export says: rows of the table under names of their own, the same for the same study."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.export.conftest import forget_last_cell, run_study

from haptera.analysis import Analysis
from haptera.errors import HapteraError
from haptera.export import record_of
from haptera.export.metrics import metrics_of
from haptera.export.names import LONGEST, Names, file_name
from haptera.report.section import Finding
from haptera.table import tidy


def numbers(run):
    return {(each.name, each.step): each.value for each in run.metrics}


def test_every_cell_and_its_interval_is_there_under_stream_shift_severity_and_measure(study):
    table = pd.read_parquet(study / "table.parquet")
    main, *runs = record_of(study).runs
    assert main.main
    assert [run.name for run in runs] == ["net · batchnorm:prior=4", "net · none"]
    for run in runs:
        found = numbers(run)
        rows = table[(table["adapter"] == run.tags["adapter"]) & (table["measure"] == "accuracy")]
        assert len(rows) == 4  # two shifts of one stream, two severities of the other
        for _, row in rows.iterrows():
            name = f"{row['stream']}/{row['shift']}/{row['severity']:.0f}/accuracy"
            for end in ("value", "low", "high"):
                assert found[name if end == "value" else f"{name}/{end}", None] == row[end]


def test_a_measure_along_a_stream_is_one_series_whatever_shifts_it_goes_through(study):
    table = pd.read_parquet(study / "table.parquet")
    run = record_of(study).runs[-1]
    rows = table[(table["adapter"] == "none") & (table["measure"] == "accuracy_over_steps")]
    own = rows[rows["stream"] == "continual"].sort_values("step")
    assert own["shift"].nunique() == 2
    series = [each for each in run.metrics if each.name == "continual/accuracy_over_steps"]
    assert [each.step for each in series] == [0, 1, 2, 3]
    assert [each.value for each in series] == own["value"].tolist()
    names = {each.name for each in run.metrics if each.name.startswith("corruptions") and "over_steps" in each.name}
    assert "corruptions/contrast_5/accuracy_over_steps" in names  # parts are runs of their own
    assert not any("over_steps" in each.name for each in record_of(study, steps=False).runs[-1].metrics)


def test_rows_for_each_class_or_bin_are_left_to_the_table(study, caplog):
    with caplog.at_level("INFO", "haptera"):
        record = record_of(study)
    assert not [each.name for run in record.runs for each in run.metrics if "reliability" in each.name]
    assert "table.parquet alone" in caplog.text
    assert "reliability" in caplog.text


def test_seeds_are_part_of_a_name_where_there_are_several():
    row = {"model": "net", "stream": "s", "shift": "fog", "severity": 2.5, "measure": "accuracy"}
    rows = tidy([row | {"seed": 0, "value": 0.25}, row | {"seed": 1, "value": 0.5}])
    assert [(each.name, each.value) for each in metrics_of(rows)[0]] == [
        ("s/fog/2.5/accuracy/seed_0", 0.25),
        ("s/fog/2.5/accuracy/seed_1", 0.5),
    ]
    assert [each.name for each in metrics_of(rows[:1])[0]] == ["s/fog/2.5/accuracy"]


def test_a_further_text_column_is_part_of_a_name_where_it_tells_rows_apart():
    row = {"model": "net", "stream": "s", "measure": "accuracy"}
    rows = tidy([row | {"hospital": "a", "value": 0.25}, row | {"hospital": "b", "value": 0.5}])
    assert [each.name for each in metrics_of(rows)[0]] == ["s/accuracy/a", "s/accuracy/b"]


def test_what_is_not_finite_is_not_exported():
    row = {"model": "net", "measure": "loss"}
    rows = tidy([row | {"shift": "a", "value": float("inf")}, row | {"shift": "b", "value": 1.0, "low": float("nan")}])
    assert [each.name for each in metrics_of(rows)[0]] == ["b/loss"]


@pytest.mark.long
@given(st.lists(st.lists(st.text(max_size=300), min_size=1, max_size=4).map(tuple), unique=True, max_size=20))
def test_unlike_things_have_unlike_names_that_mlflow_and_tensorboard_take(things):
    import posixpath
    import re

    names = Names()
    made = [names(thing) for thing in things]
    assert len({*made}) == len({tuple(thing) for thing in things})
    for name in made:
        assert re.fullmatch(r"[/\w.-]+", name)
        assert posixpath.normpath(name) == name
        assert len(name) <= LONGEST + 7


@given(st.lists(st.text(max_size=200), unique=True, max_size=20))
def test_unlike_runs_have_unlike_folders(texts):
    made = [file_name(text) for text in texts]
    assert len({*made}) == len(texts)
    assert all(name == Path(name).name and name not in ("", ".", "..") for name in made)


@pytest.mark.long
def test_the_same_study_says_the_same_and_one_that_went_on_is_about_the_same(own_study):
    whole = {run.name: run for run in record_of(own_study).runs}
    again = {run.name: run for run in record_of(own_study).runs}
    assert {name: run.digest for name, run in whole.items()} == {name: run.digest for name, run in again.items()}
    forget_last_cell(own_study)
    part = {run.name: run for run in record_of(own_study).runs}
    assert {name: run.key for name, run in part.items()} == {name: run.key for name, run in whole.items()}
    assert part["audit"].digest != whole["audit"].digest
    assert part["net · batchnorm:prior=4"].digest != whole["net · batchnorm:prior=4"].digest


@pytest.mark.long
def test_other_weights_under_the_same_name_are_another_run(study, tmp_path):
    other = record_of(run_study(tmp_path / "audit", seed=1))
    assert other.title == record_of(study).title
    assert not {run.key for run in other.runs if not run.main} & {run.key for run in record_of(study).runs}


@pytest.mark.long
def test_a_study_that_was_stopped_says_so(own_study, caplog):
    forget_last_cell(own_study)
    record = record_of(own_study)
    assert record.notes == ["1 of 6 cells have not been run yet"]
    assert record.runs[0].tags["notes"] == "1 of 6 cells have not been run yet"
    assert "have not been run yet" in caplog.text


def test_settings_are_flat_and_name_the_protocol(study):
    run = record_of(study).runs[-1]
    assert run.settings["model"] == "net"
    assert run.settings["stream.continual.batch size"] == 20
    assert run.settings["resets"] == "at the start of each part"
    assert not [value for value in run.settings.values() if isinstance(value, dict | list)]


class Answer(Analysis):
    kind, title, settings = "answer", "An answer", {"model": "net", "images": 10}

    def findings(self):
        return [Finding("fit", "Does it fit?", "It fits.", {"r2": 0.9, "r2_interval": [0.8, 1.0]})]

    def sections(self):
        return []


def test_an_analysis_and_its_folder_say_the_same(tmp_path):
    Answer().save(tmp_path / "answer")
    for source in (Answer(), tmp_path / "answer", str(tmp_path / "answer")):
        (run,) = record_of(source).runs
        assert numbers(run) == {("fit/r2", None): 0.9, ("fit/r2/low", None): 0.8, ("fit/r2/high", None): 1.0}
        assert run.settings == {"model": "net", "images": 10}
        assert run.main


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_an_analysis_without_its_table_is_refused(tmp_path, damage):
    Answer().save(tmp_path / "answer")
    path = tmp_path / "answer" / "table.parquet"
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(HapteraError, match="cannot read the table of An answer"):
        record_of(tmp_path / "answer")


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="neither the folder of a study nor of an analysis"):
        record_of(tmp_path)
    with pytest.raises(HapteraError, match="there is no folder"):
        record_of(tmp_path / "nothing")


def test_a_study_without_a_finished_cell_is_refused(own_study):
    shutil.rmtree(own_study / "cells")
    (own_study / "journal.jsonl").write_text("")
    (own_study / "table.parquet").unlink()
    with pytest.raises(HapteraError, match="no numbers to export; 6 of 6 cells have not been run yet"):
        record_of(own_study)
