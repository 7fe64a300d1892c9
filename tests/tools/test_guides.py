"""Somebody follows each guide by copy and paste, in order, and ends where the guide says."""

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import guides  # noqa: E402

PAGES = sorted(path for path in guides.QUESTIONS.glob("*.md") if path.stem != "index")
PRINTED = sorted(set(guides.pages()) - set(PAGES))
FOLLOWED = [page for page in PRINTED if {step.words[0] for step in guides.page_steps(page)} != {"python"}]
"""Pages that run nothing but examples are left to the tests of those."""
SOMETIMES = {"baselines", "note"}
"""Words that a small difference of a number may bring or take away."""
LABEL = re.compile(r"^(\w[\w -]{0,15}?)  +\S")


def result(folder: Path, name: str) -> dict:
    return json.loads((folder / name / "result.json").read_text("utf-8"))


def new_camera(folder: Path) -> None:
    said = json.dumps(result(folder, "diagnosis"))
    assert "clear" in said
    assert "contrast" in said
    table = pd.read_parquet(folder / "hall-adapted" / "table.parquet")
    mean = table[(table["measure"] == "accuracy") & (table["stream"] != "clean")].groupby("adapter")["value"].mean()
    assert mean.drop("none").max() > mean["none"]


def which_adapter(folder: Path) -> None:
    assert (folder / "tuned" / "chosen.toml").is_file()
    assert (folder / "compared" / "report.html").is_file()
    table = pd.read_parquet(folder / "lasting" / "table.parquet")
    assert table["adapter"].nunique() == 4


def production(folder: Path) -> None:
    assert (folder / "page" / "report.html").is_file()
    assert result(folder, "page")["alarms"] >= 1


def fail_the_build(folder: Path) -> None:
    assert (folder / "gate" / "report.html").is_file()


def really_more_robust(folder: Path) -> None:
    assert "on the line" in json.dumps(result(folder, "trends"))
    assert "above the line" in json.dumps(result(folder, "trends-tree"))


def population(folder: Path) -> None:
    for name in ("heading", "time", "cells-that-matter"):
        assert (folder / name / "report.html").is_file()


def keypoints(folder: Path) -> None:
    assert (folder / "scores" / "report.html").is_file()
    assert (folder / "predictions.csv").is_file()


ENDS = {check.__name__.replace("_", "-"): check for check in (
    new_camera, which_adapter, production, fail_the_build, really_more_robust, population, keypoints
)}  # fmt: skip


def code(output: str) -> int:
    ended = re.search(r"^\[exit code (\d+)\]$", output, re.MULTILINE)
    return int(ended[1]) if ended else 0


def labels(output: str) -> set[str]:
    """Return the words that findings begin with."""
    return {match[1] for line in output.splitlines() if (match := LABEL.match(line))}


def test_there_is_a_guide_for_each_question():
    assert [path.stem for path in PAGES] == sorted(ENDS)
    index = (guides.QUESTIONS / "index.md").read_text("utf-8")
    assert not [path.name for path in PAGES if f"({path.name})" not in index]


@pytest.mark.parametrize("page", [*PAGES, *PRINTED], ids=lambda path: path.stem)
def test_every_command_shows_what_it_printed(page):
    silent = [step.command for step in guides.page_steps(page) if not step.output.strip()]
    assert not [command for command in silent if "--quiet" not in command]


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_who_follows_the_guide_ends_where_it_says(page, tmp_path):
    guides.clone(tmp_path)
    for step in guides.page_steps(page):
        printed = guides.run(step, tmp_path)
        assert code(printed) == code(step.output), f"{step.command}\n{printed}"
        stale = f"{step.command}\n{printed}\nthe page shows other words: `make guides`"
        assert labels(step.output) <= labels(printed), stale
        assert labels(printed) - SOMETIMES <= labels(step.output), stale
    ENDS[page.stem](tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda path: path.stem)
def test_commands_of_other_pages_print_what_they_show(page, tmp_path):
    guides.clone(tmp_path)
    for step in guides.page_steps(page):
        if "--help" not in step.words:
            printed = guides.run(step, tmp_path)
            assert code(printed) == code(step.output), f"{step.command}\n{printed}"
            assert labels(step.output) <= labels(printed), f"{step.command}\n{printed}\n`make guides`"


@pytest.mark.long
def test_help_is_shown_as_it_is(tmp_path):
    shown = guides.page_steps(ROOT / "docs" / "reference" / "commands.md")
    stale = [step.command for step in shown if guides.run(step, tmp_path) != step.output]
    assert not stale, "`python tools/guides.py reference/commands`"
