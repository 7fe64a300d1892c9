"""Every analysis ends with the one command people run next, and tables fit a terminal."""

from pathlib import Path

import pandas as pd
import pytest

from haptera import catalog
from haptera.cli import COMMANDS
from haptera.cli.next_step import NEXT, next_step
from haptera.cli.say import WIDTH, fold, overview

OUTSIDE = {"study", "new-classes", "cut", "live", "pose", "pose audit"}
"""Kinds of analyses that are not commands of the catalog."""


def test_every_analysis_of_the_catalog_names_a_command_that_exists() -> None:
    commands = {*COMMANDS, *catalog.entries("analyses")}
    assert set(catalog.entries("analyses")) | OUTSIDE == set(NEXT)
    assert {text.split()[1] for text in NEXT.values()} <= commands


def test_a_command_on_a_folder_is_not_offered_where_nothing_was_written() -> None:
    assert next_step("embed", Path("hd")) == "haptera attribute hd"
    assert next_step("embed", None) == ""
    assert next_step("of a plugin", None) == ""


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame([
        {"model": "net", "adapter": adapter, "stream": f"a-stream-called-{at}", "measure": "accuracy", "value": value}
        for adapter, value in (("tent", 0.5), ("none", 0.25), ("eta", 0.125))
        for at in range(12)
    ])  # fmt: skip


def test_adapters_are_rows_the_unadapted_model_first(table: pd.DataFrame) -> None:
    lines = overview(table[table["stream"] == "a-stream-called-0"]).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["model", "adapter", "a-stream-called-0"],
        ["net", "none", "0.25"],
        ["net", "eta", "0.125"],
        ["net", "tent", "0.5"],
    ]


def test_streams_that_do_not_fit_go_on_below(table: pd.DataFrame) -> None:
    lines = overview(table).splitlines()
    assert max(map(len, lines)) <= WIDTH
    headings = [name for line in lines if line.startswith("model") for name in line.split()[2:]]
    assert headings == sorted(f"a-stream-called-{place}" for place in range(12))


def test_sentences_fit_a_terminal_below_where_they_begin_and_tables_stay() -> None:
    found = "holds       net holds best of two models, 0.82 on average over three shifts"
    lines = fold(found, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert all(line.startswith(" " * 12) for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(found.split())
    row = "net    batchnorm   0.871        0.486        0.871        0.486"
    assert fold(row, 40) == row


def test_labelled_numbers_fit_a_terminal_one_below_the_other() -> None:
    scores = "out · fog 5 · none      error 0.968 (0.126 to 7.466)   PCK@0.3 0.284 (0.025 to 0.858)"
    lines = fold(scores, 60).splitlines()
    assert lines == [
        "out · fog 5 · none      error 0.968 (0.126 to 7.466)",
        "                        PCK@0.3 0.284 (0.025 to 0.858)",
    ]
    further = "    pixels 9.683   RMSE 9.681   RMSE of the likely (≥ 0.6) 3.877   OKS 0.687"
    assert fold(further, 40).splitlines() == [
        "    pixels 9.683   RMSE 9.681",
        "    RMSE of the likely (≥ 0.6) 3.877",
        "    OKS 0.687",
    ]
    assert fold(further, 100) == further
