"""What is embedded reads back, and no name can end the script."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.report.page import columns, rounded, script

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 \u2029"


def decoded(frame: pd.DataFrame) -> dict[str, list[object]]:
    """The obvious reader."""
    content = json.loads(str(script(columns(frame))))
    found = {}
    for column in content["columns"]:
        if "numbers" in column:
            found[column["name"]] = column["numbers"]
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
