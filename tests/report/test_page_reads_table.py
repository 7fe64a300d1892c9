"""What the page says is what the table says: every number of a sentence is a number of the table."""

import re

import numpy as np
import pandas as pd
import pytest

from haptera.report.study import adaptation, complete, heatmap, methods
from haptera.report.study.cells import cells
from haptera.report.study.findings import gains, holding
from haptera.report.study.summary import summarise
from haptera.table import tidy

NUMBERS = ["value", "low", "high", "before", "after", "sd"]
SPOKEN = ("clean_accuracy", "mean_accuracy", "mean_gain", "recovered", "idle_steps")


def numbers_that_are_not_in(table: pd.DataFrame, sentence: str) -> list[str]:
    """Those with a decimal point, signed or not, and per cent, to the digits that are printed."""
    rows = table[table["measure"].str.removesuffix("_over_seeds").isin(SPOKEN)]
    known = np.concatenate([rows[name].dropna().to_numpy(float) for name in NUMBERS if name in rows])
    found = re.findall(r"(?<![\w.])[+−]?\d+\.\d+|\d+ %", sentence.replace("within 0.10 of", ""))
    lacking = []
    for text in found:
        digits = 0 if text.endswith("%") else len(text.partition(".")[2])
        factor = 100 if text.endswith("%") else 1
        number = abs(float(text.strip(" %").replace("−", "-")))
        if not np.isclose(np.round(np.abs(factor * known), digits), number, atol=1e-9).any():
            lacking.append(text)
    return lacking


@pytest.fixture(params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def table(request: pytest.FixtureRequest, make) -> pd.DataFrame:
    return make(models=("resnet-18", "vit-small", "vgg-16-bn"), seeds=request.param)


def test_every_number_of_the_summary_is_in_the_table(table: pd.DataFrame) -> None:
    for answer in summarise(table):
        assert numbers_that_are_not_in(table, answer.sentence) == []


def test_the_numbers_of_learners_are_in_the_table(learning: pd.DataFrame) -> None:
    text = " ".join(answer.sentence for answer in summarise(learning))
    assert "standard deviation" in text
    assert numbers_that_are_not_in(learning, text) == []


def test_a_number_that_is_made_up_is_noticed(table: pd.DataFrame) -> None:
    assert numbers_that_are_not_in(table, "it reaches 0.987654, or 1234 %") == ["0.987654", "1234 %"]


def test_findings_are_rows_of_the_table(table: pd.DataFrame) -> None:
    several = table["measure"].str.endswith("_over_seeds").any()
    best = holding(table, cells(table))
    rows = table[table["measure"] == ("mean_accuracy_over_seeds" if several else "mean_accuracy")]
    row = rows[(rows["model"] == best.who) & (rows["adapter"] == "none") & (rows["stream"] == "corruptions")].iloc[0]
    assert (best.value, best.low, best.high) == (row["value"], row["low"], row["high"])
    (gain,) = gains(table)
    rows = table[table["measure"] == ("mean_gain_over_seeds" if several else "mean_gain")]
    row = rows[(rows["shift"] == "") & (rows["stream"] == "")].iloc[0]
    assert (gain.change, gain.before, gain.after) == (row["value"], row["before"], row["after"])
    assert gain.unclear == (row["low"] <= 0 <= row["high"])


def test_counts_of_the_summary_are_in_the_table(table: pd.DataFrame) -> None:
    (sentence,) = [answer.sentence for answer in summarise(table) if "cells" in answer.sentence]
    cells = int(re.search(r"on the same ([\d,]+) cells", sentence)[1].replace(",", ""))
    assert cells in table["cells"].dropna().unique()
    assert cells == 3 * 2 * 15  # models, streams, shifts at severities: a second seed is no further cell


def test_differences_on_the_heatmap_are_gains_of_the_table(table: pd.DataFrame) -> None:
    frame = heatmap.section(table).figures[0].frame
    several = (table["measure"] == "adaptation_gain_over_seeds").any()
    gains = table[table["measure"] == ("adaptation_gain_over_seeds" if several else "adaptation_gain")]
    shown = frame[
        frame["change"].notna() & frame["severity"].eq("3") & frame["shift"].isin(["contrast", "motion_blur"])
    ]
    keys = ["stream", "adapter", "model", "shift"]
    both = shown.merge(gains[gains["severity"] == 3], on=keys)
    assert len(both) == len(shown) > 0
    assert both["change"].to_numpy() == pytest.approx(both["value"].to_numpy())


def test_margins_on_the_page_are_those_of_the_table(table: pd.DataFrame) -> None:
    frame = methods.section(table).tables[0].frame
    rows = table[table["measure"] == "adapter_margin"]
    assert sorted(frame["margin"]) == pytest.approx(sorted(rows["value"]))
    assert sorted(frame["low"]) == pytest.approx(sorted(rows["low"]))


def test_forgetting_on_the_page_is_that_of_the_table() -> None:
    names = {"model": "net", "stream": "s", "adapter": "tent", "shift": "clean", "measure": "forgetting", "n": 100}
    rows = [names | {"seed": seed, "value": value, "low": value - 0.1, "high": value + 0.1} for seed, value in
            enumerate((0.1, 0.3, 0.2))]  # fmt: skip
    table = complete(tidy(rows))
    (row,) = table[table["measure"] == "forgetting_over_seeds"].to_dict("records")
    (shown,) = adaptation.section(table).tables[0].frame.to_dict("records")
    assert (shown["lost"], shown["low"], shown["high"], shown["n"]) == pytest.approx(
        (row["value"], row["low"], row["high"], 100)
    )
