"""A page of many adapters: colours stand for them, the paper's table reads the table, published names stay apart."""

import numpy as np
import pandas as pd
import pytest

from haptera.measures import mean_over_seeds, shift_margin, shift_mean
from haptera.report.figure import Figure
from haptera.report.paper.published import MEASURE
from haptera.report.study import paper, severity
from haptera.report.study.cells import adapters
from haptera.table import join, tidy


def table(names, levels=(1.0, 3.0), seeds=(0, 1), models=("net",)):
    generator = np.random.default_rng(0)
    rows = [
        {"model": model, "stream": "corruptions", "adapter": name, "shift": shift, "severity": level, "seed": seed}
        | {"measure": "accuracy", "value": float(generator.uniform(0.3, 0.9)), "n": 100}
        for model in models
        for name in names
        for shift in ("fog", "snow")
        for level in levels
        for seed in seeds
    ]
    made = tidy(rows)
    means = shift_mean(made) + shift_margin(made)
    return join(made, means + mean_over_seeds(tidy(means)))


def names(count):
    return ["none", *(f"a{number}" for number in range(1, count))]


def test_adapters_keep_one_look_on_the_whole_page_as_long_as_looks_last():
    assert adapters(table(names(20))) == tuple(names(20))
    assert adapters(table(names(43), levels=(1.0,), seeds=(0,))) == ()
    printed = tidy([{"model": "net", "adapter": "ROID", "measure": MEASURE, "value": 0.1}])
    assert adapters(pd.concat([table(names(2)), printed])) == ("none", "a1")


@pytest.mark.parametrize(("count", "color", "dash"), [(4, ("model",), "adapter"), (5, ("adapter",), None)])
def test_colours_stand_for_adapters_where_dashes_do_not_suffice(count, color, dash):
    figure = severity.section(table(names(count), models=("net", "other"))).figures[0]
    assert (figure.color, figure.dash) == (color, dash)
    assert ("model" in figure.select) == (dash is None)


def test_the_lines_of_one_model_are_coloured_by_adapter():
    figure = severity.section(table(names(3))).figures[0]
    assert (figure.color, figure.dash) == (("adapter",), None)
    assert "model" not in figure.select


def test_the_papers_table_shows_rows_of_the_table():
    made = table(names(3))
    frame = paper.figure(made).frame
    rows = made[made["measure"] == "shift_mean_over_seeds"]
    heads = {"Snow": "snow", "Fog": "fog", "mean": ""}
    assert len(frame) == len(rows) == 9
    for shown in frame.itertuples():
        row = rows[(rows["adapter"] == shown.adapter) & (rows["shift"] == heads[shown.shift])].iloc[0]
        assert (shown.error, shown.sd) == pytest.approx((100 * row["value"], 100 * row["sd"]))
        assert shown.error + shown.accuracy == pytest.approx(100)
    assert frame["published"].isna().all()
    assert frame["remark"].nunique() == 1


def test_one_adapter_has_no_table():
    assert paper.figure(table(["none"])) is None
    assert paper.figure(tidy([{"model": "net", "measure": "brier_score", "value": 1.0}])) is None


def test_a_chart_of_many_names_is_taller():
    heights = []
    for count in (7, 8):
        frame = pd.DataFrame({"x": [0] * count, "y": [1.0] * count, "who": names(count)})
        heights.append(Figure("Many", "", frame, kind="line", x="x", y="y", color=("who",)).height)
    assert heights[0] < heights[1]
