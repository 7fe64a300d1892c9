"""Writing a report: whole, alone, repeatable, and from any table."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.report.conftest import write_report

from haptera.report.page import render
from haptera.report.section import Section
from haptera.report.study import REPORTED, at_rest, complete
from haptera.report.study import sections as made
from haptera.report.study.summary import summarise
from haptera.run.report import StudyReport
from haptera.table import tidy

SETTINGS = {
    "versions": {"torch": "2.13", "nothing": None, "flag": True},
    "seeds": [0, 1],
    "streams": [{"name": "<b>x</b>", "levels": [1, 2]}, {"name": "y", "levels": []}],
    "fingerprints": {f"model-{i}": f"{i:08x}" for i in range(20)},
}


class Outline(HTMLParser):
    """Headings, links inside the page, ids, and everything that would load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.titles: list[str] = []
        self.open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found: Mapping[str, str | None] = dict(attrs)
        self.open = tag
        self.ids += [found["id"] or ""] if "id" in found else []
        if tag == "a":
            self.links.append(found["href"] or "")
        self.loads += [
            value or "" for key, value in attrs if key in ("src", "srcset") or (tag == "link" and key == "href")
        ]

    def handle_data(self, data: str) -> None:
        if self.open in ("h2", "h3") and data.strip():
            self.titles.append(data.strip())


def titles(table: pd.DataFrame) -> list[str]:
    plain = table[~table["measure"].isin(REPORTED)]  # what compares cells is made anew of those that are left
    return [section.title for section in made(complete(plain))]


@pytest.mark.long
def test_page_is_complete_and_loads_nothing(study: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"
    summary = write_report(study, path, title="A & B", settings=SETTINGS, notes=["2 cells failed: <x>"])
    page = path.read_text()
    outline = Outline(page)
    assert outline.loads == ["data:,"]
    assert "default-src 'none'" in page
    assert all(link[1:] in outline.ids for link in outline.links)
    assert len(set(outline.ids)) == len(outline.ids)
    assert "<title>A &amp; B</title>" in page
    assert "2 cells failed: &lt;x&gt;" in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "20 entries" in page
    assert outline.titles[-1] == "Settings and versions"
    assert all(answer.sentence in summary for answer in summarise(study))
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


@pytest.mark.long
def test_same_table_same_bytes(study: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(study.copy(), tmp_path / name, title="t", settings=SETTINGS)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.long
def test_sections_appear_only_with_their_data(study: pd.DataFrame) -> None:
    assert titles(study) == ["Severity", "Shifts", "Methods", "Over time", "Cost", "Results"]
    assert titles(study[study["measure"] == "accuracy"]) == ["Severity", "Shifts", "Methods", "Results"]
    assert titles(study[study["adapter"] == "none"]) == ["Severity", "Shifts", "Over time", "Cost", "Results"]
    assert titles(study[study["measure"] == "accuracy_over_steps"]) == ["Over time"]
    assert titles(study[study["measure"] == "seconds_per_image"]) == ["Cost", "Results"]
    assert titles(study[study["shift"] == "clean"]) == ["Results"]
    assert titles(study[study["severity"] == 5]) == ["Shifts", "Methods", "Over time", "Results"]
    assert titles(tidy([])) == []


def drop_clean(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["stream"] != "clean"]


def no_severities(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(severity=np.nan)


def no_intervals(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(low=np.nan, high=np.nan, n=pd.array([pd.NA] * len(table), "Int64"))


def only_adapted(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["adapter"] != "none"]


def no_names(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(stream="", adapter="", shift="")


def more_measures(table: pd.DataFrame) -> pd.DataFrame:
    extra = table.head(50).assign(measure="entropy_over_steps", step=pd.array(range(50), "Int64"))
    bare = [table.head(9).assign(measure=name) for name in ("ece", "collapse", "reliability", "class_attraction")]
    every = tidy(pd.concat([table, extra, *bare]))
    return every.assign(weather="wet", odd=[None] * len(every))


def no_values(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(value=np.nan)


def few_columns(table: pd.DataFrame) -> pd.DataFrame:
    return table[["model", "measure", "value"]]


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [drop_clean, no_severities, no_intervals, only_adapted, no_names, more_measures, no_values, few_columns],
    ids=lambda change: change.__name__,
)
def test_any_part_may_be_missing(
    change: Callable[[pd.DataFrame], pd.DataFrame], study: pd.DataFrame, tmp_path: Path
) -> None:
    summary = write_report(change(study), tmp_path / "report.html", title="t", settings={})
    assert summary.endswith(".")
    assert "nan" not in re.sub(r"gaussian\w*|finance", "", summary)
    assert "</html>" in (tmp_path / "report.html").read_text()


@pytest.mark.long
def test_empty_table_says_so(tmp_path: Path) -> None:
    summary = write_report(tidy([]), tmp_path / "report.html", title="t", settings={})
    page = (tmp_path / "report.html").read_text()
    assert summary == "The table is empty: nothing was measured."
    assert summary in page
    assert len(page) < 110_000  # nothing to draw, so no plotly, which has 660,000 compressed


def test_a_section_of_ones_own_is_one_function(study: pd.DataFrame) -> None:
    def count(table: pd.DataFrame) -> Section:
        return Section("Count", f"{len(table)} rows & more")

    page = render(made(study, [count]), summarise(study), title="t", settings={})
    assert f"{len(study)} rows &amp; more" in page


@pytest.mark.long
def test_neither_torch_nor_plotly_is_imported() -> None:
    code = "import sys, haptera.report; print([m for m in ('torch', 'plotly') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_million_rows_make_a_page_that_can_be_mailed(tmp_path: Path) -> None:
    models, streams, steps = 100, 100, 100
    value = np.random.default_rng(0).random(models * streams * steps)
    table = tidy(pd.DataFrame({
        "model": np.repeat([f"model-{i}" for i in range(models)], streams * steps),
        "stream": np.tile(np.repeat([f"stream-{i}" for i in range(streams)], steps), models),
        "adapter": "none",
        "shift": np.tile(np.repeat([f"shift-{i}" for i in range(10)], steps // 10), models * streams),
        "severity": 3.0,
        "step": np.tile(np.arange(steps), models * streams),
        "measure": "accuracy_over_steps",
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "n": 100,
        "seed": 0,
    }))  # fmt: skip
    accuracy = table.groupby(["model", "stream", "adapter", "shift", "severity"], as_index=False)[["value"]].mean()
    table = tidy(pd.concat([table, accuracy.assign(measure="accuracy", n=1000, seed=0)]))
    write_report(table, tmp_path / "report.html", title="large", settings={})  # benchmarks/report.py times it
    assert (tmp_path / "report.html").stat().st_size < 25e6


def test_rows_along_steps_are_left_out_of_what_compares_cells() -> None:
    rows = [
        {"model": "net", "measure": "accuracy", "value": 0.5},
        {"model": "net", "measure": "accuracy", "value": 0.6, "step": 3},
        {"model": "net", "measure": "accuracy_over_steps", "value": 0.5, "step": 3},
    ]
    assert at_rest(tidy(rows))["measure"].tolist() == ["accuracy", "accuracy"]
    assert len(at_rest(tidy(rows[:1]))) == 1


def test_a_table_that_was_measured_is_taken_as_it_is(study: pd.DataFrame) -> None:
    plain = study[~study["measure"].isin(REPORTED)]
    assert len(StudyReport(plain, measured=True).table()) == len(plain)
    assert len(StudyReport(plain).table()) > len(plain)
