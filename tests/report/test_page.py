"""What is embedded reads back, and no name can end the script."""

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.report import Figure, Section
from haptera.report.page import columns, render, rounded, script
from haptera.report.scripts import bundle_for, plotly_script
from haptera.report.section import Finding, Listing

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 \u2029"


def decoded(frame: pd.DataFrame) -> dict[str, list[object]]:
    """The obvious reader."""
    content = json.loads(str(script(columns(frame))))
    found = {}
    for column in content["columns"]:
        if "numbers" in column:
            lengths = column.get("lengths", [1] * len(column["numbers"]))
            pairs = zip(column["numbers"], lengths, strict=True)
            found[column["name"]] = [number for number, length in pairs for _ in range(length)]
            continue
        codes = column.get("codes")
        if codes is None:
            runs = column["runs"]
            codes = [code for code, length in zip(runs[::2], runs[1::2], strict=True) for _ in range(length)]
        found[column["name"]] = [None if code < 0 else column["values"][code] for code in codes]
    assert all(len(values) == content["rows"] for values in found.values())
    return found


def test_no_name_leaves_its_script() -> None:
    text = str(script(columns(pd.DataFrame({HOSTILE: [1], "model": [HOSTILE]}))))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["columns"][1]["values"] == [HOSTILE]


@given(st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "ü<", ""])), max_size=40))
def test_text_reads_back(values: list[str | None]) -> None:
    assert decoded(pd.DataFrame({"name": pd.array(values, "str")}))["name"] == values


def test_sorted_text_is_stored_as_runs() -> None:
    frame = pd.DataFrame({"name": ["a"] * 50 + ["b"] * 50})
    assert columns(frame)["columns"][0]["runs"] == [0, 50, 1, 50]
    assert decoded(frame)["name"] == frame["name"].tolist()


@given(st.floats(-1e15, 1e15).filter(lambda value: value == 0 or abs(value) > 1e-15))
def test_five_significant_digits_that_print_short(value: float) -> None:
    (found,) = rounded(np.array([value])).tolist()
    assert found == pytest.approx(value, rel=5.1e-5, abs=0)
    digits = repr(abs(found)).split("e")[0].replace(".", "").strip("0")
    assert len(digits) <= 6  # a power of ten may count as the one below


def test_missing_and_infinite_numbers_are_null_and_integers_are_exact() -> None:
    frame = pd.DataFrame({
        "float": [0.123456, np.nan, np.inf],
        "integer": pd.array([1234567, None, 3], "Int64"),
        "plain": [1234567, 2, 3],
        "flag": [True, False, True],
    })  # fmt: skip
    assert decoded(frame) == {
        "float": [0.12346, None, None],
        "integer": [1234567, None, 3],
        "plain": [1234567, 2, 3],
        "flag": ["True", "False", "True"],
    }


def chart(kind: Any, **more: str) -> Section:
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    return Section("S", figures=(Figure("A title", "", frame, kind, "a", "b", **more),))


def test_a_page_carries_no_more_of_plotly_than_its_figures_need() -> None:
    assert bundle_for([Section("Words")]) == bundle_for([chart("table")]) == "none"
    assert bundle_for([chart("line"), chart("table")]) == bundle_for([chart("heatmap", value=("a",))]) == "plane"
    assert bundle_for([chart("line"), chart("cloud", depth="a")]) == "space"
    flat = plotly_script("plane")
    assert "MIT license" in flat[:200]
    assert '"heatmap"' in flat
    assert len(flat) < 1.6e6 < len(plotly_script("space"))


@pytest.mark.parametrize(("kind", "most"), [("line", 0.9e6), ("cloud", 2.1e6)])
def test_plotly_is_compressed_in_a_page(kind: str, most: float) -> None:
    section = chart(kind, **({"depth": "a"} if kind == "cloud" else {}))
    page = render([section], [], title="t", settings={})
    (held,) = re.findall(r'<script type="application/gzip" id="plotly">([A-Za-z0-9+/=]+)</script>', page)
    assert gzip.decompress(base64.b64decode(held)).decode() == plotly_script(bundle_for([section]))
    assert len(held) < len(page) < most
    served = render([section], [], title="t", settings={}, served=True)
    assert held not in served


def test_numbers_are_compressed_where_they_are_many() -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=40_000), "b": [HOSTILE] * 40_000})
    section = Section(
        "S", figures=(Figure("A title", "", frame, "line", "a", "a"),), tables=(Listing("L", "", frame[:50]),)
    )
    page = render([section], [], title="t", settings={})
    kinds = dict(re.findall(r'<script type="application/(\w+)" id="([\w-]+)-data">', page))
    assert kinds == {"gzip": "figure-1-1", "json": "table-1-1"}
    (held,) = re.findall(r'id="figure-1-1-data">(.*?)</script>', page)
    content = json.loads(gzip.decompress(base64.b64decode(held)))
    assert content["title"] == "A title"
    assert content["data"] == json.loads(str(script(columns(frame))))
    assert render([section], [], title="t", settings={}) == page
    assert 'type="application/gzip"' not in render([section], [], title="t", settings={}, served=True)


def test_without_a_script_short_tables_are_there_and_long_ones_are_not() -> None:
    frame = pd.DataFrame({"model": ["a <b>", None], "speed": [0.123456, 58123.4]})
    short = Listing("Short", "", frame, labels={"speed": "images per second"})
    long = Listing("Long", "", pd.concat([frame] * 31))
    page = render([Section("S", tables=(short, long))], [], title="t", settings={})
    (table,) = re.findall(r"<noscript><table>(.*?)</table></noscript>", page, re.DOTALL)
    assert re.findall(r"<th scope[^>]*>(.*?)</th>", table) == ["model", "images per second"]
    assert re.findall(r"<td>(.*?)</td>", table) == ["a &lt;b&gt;", "0.1235", "–", "58,123"]


def test_an_answer_links_to_the_figure_behind_it_and_to_nothing_that_is_not_there() -> None:
    answers = [
        Finding("", "Which?", "This one.", number="0.82 <b>", figure="A title"),
        Finding("", "Where?", "There.", figure="A figure that the page lacks"),
    ]
    page = render([chart("table")], answers, title="t", settings={}, origin="today & here")
    assert page.count('<dd class="seen">') == 1
    assert '<a href="#figure-1-1">A title</a>' in page
    assert '<dd class="large">0.82 &lt;b&gt;</dd>' in page
    assert '<p class="origin">today &amp; here</p>' in page


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=40), st.integers(1, 9))
def test_numbers_read_back_also_where_they_repeat(values: list[int | None], times: int) -> None:
    repeated = [value for value in values for _ in range(times)]
    frame = pd.DataFrame({"whole": pd.array(repeated, "Int64"), "real": pd.array(repeated, "Float64")})
    assert decoded(frame) == {"whole": repeated, "real": repeated}


def test_numbers_that_repeat_are_carried_once() -> None:
    (column,) = columns(pd.DataFrame({"severity": [1.0] * 50 + [2.0] * 50}))["columns"]
    assert column == {"name": "severity", "lengths": [50, 50], "numbers": [1.0, 2.0]}
