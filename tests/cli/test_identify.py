"""`haptera identify` as a user runs it: text, JSON, tables from a file, and mistakes."""

import json

import pandas as pd
import pytest
from tests.commands import call

from haptera.analyses.identify import analysis as identify_tables
from haptera.errors import Unfinished

TABLES = """
dimensions = 2
steps = 5
batch_size = 32

[[rows]]
title = "sphere"
process = "sphere/uniform/vmf=10"
model = "sphere/vmf"

[[rows]]
title = "box"
process = "box/uniform/laplace=0.1"
model = "box/laplace"
"""
QUICK = ("--dimensions", 2, "--steps", 30, "--batch-size", 128, "--quiet")


@pytest.mark.long
def test_text_has_scores_with_intervals_and_the_null(capsys):
    assert call("identify", "--supervised", *QUICK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "process", "model", "contrastive", "identity", "supervised", "loss", "rotations",
    ]  # fmt: skip
    assert lines[5].endswith(": not trained to the end")
    assert "R² 0." in lines[2]
    assert ".." in lines[2]


@pytest.mark.long
def test_json_is_one_object(capsys):
    assert call("identify", "--process", "box/uniform/laplace=0.1", "--model", "box/laplace", "--json", *QUICK) == 0
    content = json.loads(capsys.readouterr().out)
    low, high = content["contrastive"]["mcc_interval"]
    assert low <= content["contrastive"]["mcc"] <= high
    assert "supervised" not in content
    assert content["size"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--process", "sphere/uniform"), "space/marginal/conditional"),
        (("--model", "sphere/vfm"), "did you mean 'vmf'"),
        (("--model", "box/gennorm"), "gennorm=3"),
        (("--steps", "0"), "more than 0"),
        (("--device", "gpu"), "device is 'gpu'"),
        (("--seed", "-1"), "none below 0"),
    ],
)
def test_a_mistake_is_named(arguments, message, capsys):
    assert call("identify", *QUICK, *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_one_row_with_a_folder_has_a_table_and_a_page_and_is_not_run_again(tmp_path, capsys, monkeypatch):
    command = ("identify", *QUICK, "--steps", 5, "--out", tmp_path / "one")
    assert call(*command) == 0
    text = capsys.readouterr().out.splitlines()
    names = ("report.html", "table.parquet", "result.json")
    assert text[-1] == "  ".join(str(tmp_path / "one" / name) for name in names)
    table = pd.read_parquet(tmp_path / "one" / "table.parquet").dropna(subset="what")
    assert set(table["what"]) == {"contrastive", "identity"}
    monkeypatch.setattr(identify_tables, "run_row", None)  # calling it would be an error
    assert call(*command, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert f"R² {content['contrastive']['r2']:.3f}" in text[2]
    assert content["files"]["table"] == str(tmp_path / "one" / "table.parquet")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A file with two rows, and the folder in which they were run."""
    folder = tmp_path_factory.mktemp("identify")
    (folder / "tables.toml").write_text(TABLES)
    assert call("identify", folder / "tables.toml", "--out", folder / "out", "--quiet") == 0
    return folder


def test_a_file_is_run_into_a_table_and_a_page(tables):
    table = pd.read_parquet(tables / "out" / "table.parquet").dropna(subset="what")
    assert list(table["title"].unique()) == ["sphere", "box"]
    assert len(list((tables / "out" / "rows").glob("*.json"))) == 2
    page = (tables / "out" / "report.html").read_text("utf-8")
    assert "Identifiability: tables" in page
    assert "of 2 rows have a mean R² above 0.95" in page


@pytest.mark.long
def test_the_same_command_runs_no_row_twice_and_prints_all_of_them(tables, capsys, monkeypatch):
    monkeypatch.setattr(identify_tables, "run_row", None)
    command = ("identify", tables / "tables.toml", "--out", tables / "out")
    assert call(*command) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert [line.removeprefix("rows").split()[0] for line in lines[:2]] == ["sphere:", "box:"]
    assert told.err.splitlines() == ["0 rows run, 2 found finished, 0 failed"]
    assert call(*command, "--json", "--quiet") == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["title"] for row in content["rows"]] == ["sphere", "box"]
    assert content["failures"] == []
    assert f"{content['rows'][1]['contrastive']['mcc']:.3f}" in lines[1]
    assert set(content["files"]) == {"report", "table", "result"}


def half(folder):
    """Run the first of the two rows into a folder."""
    (folder / "half.toml").write_text(TABLES.partition('[[rows]]\ntitle = "box"')[0])
    assert call("identify", folder / "half.toml", "--out", folder, "--quiet") == 0
    return next(iter((folder / "rows").iterdir()))


@pytest.mark.long
def test_an_interrupt_says_how_to_go_on(tables, tmp_path, capsys, monkeypatch):
    stored = half(tmp_path)

    def interrupted(row, seed, progress=False):
        raise KeyboardInterrupt

    monkeypatch.setattr(identify_tables, "run_row", interrupted)
    assert call("identify", tables / "tables.toml", "--out", tmp_path, "--quiet") == 130
    assert "stopped after 1 of 2 rows; the same command goes on from there" in capsys.readouterr().err
    assert (tmp_path / "rows" / stored.name).is_file()


@pytest.mark.long
def test_a_row_that_fails_ends_with_1_and_the_others_are_written(tables, tmp_path, capsys, monkeypatch):
    half(tmp_path)
    capsys.readouterr()

    def failing(row, seed, progress=False):
        raise Unfinished("the loss is nan after 3 steps")

    monkeypatch.setattr(identify_tables, "run_row", failing)
    assert call("identify", tables / "tables.toml", "--out", tmp_path) == 1
    said = capsys.readouterr()
    assert "0 rows run, 1 found finished, 1 failed" in said.err
    assert "seed 0: the loss is nan after 3 steps" in said.err
    assert "Not finished: " in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "out", "--batch-size", "64"), "--batch-size is for one row, and the rows of tables.toml have their"),
        (("--out", "out", "--supervised"), "--supervised is for one row"),
        ((), "tables.toml has rows of tables, which need --out"),
    ],
)
def test_options_that_do_not_go_with_a_file_are_named(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "tables.toml").write_text(TABLES)
    monkeypatch.chdir(tmp_path)
    assert call("identify", "tables.toml", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_and_a_folder_that_is_a_file_are_named(tmp_path, capsys):
    assert call("identify", tmp_path / "no.toml", "--out", tmp_path / "out") == 2
    assert "there is no study file" in capsys.readouterr().err
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "out").write_text("")
    assert call("identify", tmp_path / "tables.toml", "--out", tmp_path / "out") == 2
    assert "it is a file, a folder was expected" in capsys.readouterr().err
