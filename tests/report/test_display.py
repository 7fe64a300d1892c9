"""A display shows what a page opens with, is saved, and gives a notebook what it can show."""

import base64

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.report.display import Display, opened
from haptera.report.figure import Figure, layer

FRAME = pd.DataFrame({"x": [1, 2, 1, 2], "y": [3.0, 4.0, 5.0, 6.0], "fit": ["a", "a", "b", "b"]})
LINES = Figure("Lines", "Two.", FRAME, "line", "x", "y", color=("fit",))


def test_dropdowns_and_choices_are_as_the_page_opens():
    chosen = Figure("", "", FRAME, "line", "x", "y", select=("fit",), start={"fit": "b"})
    assert opened(chosen)["y"].tolist() == [5.0, 6.0]
    first = Figure("", "", FRAME, "line", "x", "y", select=("fit",))
    assert opened(first)["y"].tolist() == [3.0, 4.0]
    some = Figure("", "", FRAME, "line", "x", "y", color=("fit",), choose="fit", start={"fit": ["b"]})
    assert opened(some)["y"].tolist() == [5.0, 6.0]


def test_each_colour_is_a_line_of_its_own():
    by_matplotlib, by_plotly = Display([LINES]), Display([LINES], "plotly")
    lines = by_matplotlib.figure.axes[0].lines
    assert [line.get_ydata().tolist() for line in lines] == [[3.0, 4.0], [5.0, 6.0]]
    assert [list(trace.y) for trace in by_plotly.figure.data] == [[3.0, 4.0], [5.0, 6.0]]
    assert [line.get_label() for line in lines] == [trace.name for trace in by_plotly.figure.data] == ["a", "b"]


def test_a_heatmap_has_its_numbers_in_place():
    heat = Figure("Heat", "", FRAME, "heatmap", "x", "fit", value=("y",))
    shown = Display([heat], "plotly").figure.data[0]
    assert shown.z.tolist() == [[3.0, 4.0], [5.0, 6.0]]
    assert (list(shown.x), list(shown.y)) == (["1", "2"], ["a", "b"])
    texts = [text.get_text() for text in Display([heat]).figure.axes[0].texts]
    assert texts == ["3.00", "4.00", "5.00", "6.00"]


def test_a_notebook_gets_a_picture_or_a_figure_of_plotly(tmp_path):
    picture = Display([LINES])
    assert base64.b64decode(picture._repr_mimebundle_()["image/png"]).startswith(b"\x89PNG")
    bundle = Display([LINES], "plotly")._repr_mimebundle_()
    assert len(bundle["application/vnd.plotly.v1+json"]["data"]) == 2
    picture.save(tmp_path / "lines.svg")
    assert "<svg" in (tmp_path / "lines.svg").read_text()
    with pytest.raises(HapteraError, match=r"\.svgg"):
        picture.save(tmp_path / "lines.svgg")
    with pytest.raises(HapteraError, match=r"saved as \.html"):
        Display([LINES], "plotly").save(tmp_path / "lines.png")


def test_several_charts_have_their_frames_in_one():
    shown = Display([LINES, LINES])
    assert shown.frame["panel"].tolist() == ["Lines"] * 8
    assert repr(shown) == "Display(Lines, Lines; 8 rows; engine='matplotlib')"


def test_a_chart_of_another_kind_says_so():
    star = Figure("Star", "", FRAME, "star", "fit", "y")
    for engine in ("matplotlib", "plotly"):
        with pytest.raises(HapteraError, match="kind 'star'"):
            Display([star], engine)


def test_layers_have_points_with_intervals_over_lines_over_bands():
    frame = pd.concat([
        layer("band", "interval", x=[0.2, 0.8], low=[0.1, 0.6], high=[0.3, 0.9]),
        layer("line", "fit", x=[0.8, 0.2], y=[0.75, 0.2]),
        layer("point", "models", x=[0.3, 0.7], y=[0.25, 0.65], low=[0.2, 0.6], high=[0.35, 0.7], said=["", "best"]),
    ])  # fmt: skip
    style = {"low": "low", "high": "high", "names": "said"}
    ax = Display([Figure("Layers", "", frame, "layers", "x", "y", **style)]).figure.axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["interval", "fit", "models"]
    assert ax.lines[0].get_xdata().tolist() == [0.2, 0.8]
    assert [text.get_text() for text in ax.texts] == ["best"]
    [bars] = [each for each in ax.containers if each.has_yerr]
    ends = [segment[:, 1].tolist() for segment in bars[2][0].get_segments()]
    assert ends == [pytest.approx([0.2, 0.35]), pytest.approx([0.6, 0.7])]


def test_a_probit_axis_spaces_shares_as_normal_quantiles():
    frame = layer("point", "models", x=[0.02275, 0.5, 0.97725], y=[0.5, 0.5, 0.5])
    ax = Display([Figure("Probit", "", frame, "layers", "x", "y", scale="probit")]).figure.axes[0]
    places = ax.transData.transform([[0.02275, 0.5], [0.15866, 0.5], [0.5, 0.5], [0.97725, 0.5]])[:, 0]
    assert np.diff(places) / np.diff(places)[0] == pytest.approx([1, 1, 2], rel=1e-3)


def test_times_are_placed_as_times_with_intervals_and_shaded_runs():
    frame = pd.DataFrame({"time": ["2026-11-17 14:00:00", "2026-11-17 14:00:10", "2026-11-17 14:01:00"],
                          "y": [0.9, 0.6, 0.8], "low": [0.8, 0.5, 0.7], "high": [1.0, 0.7, 0.9],
                          "alarm": [None, "fog", "fog"]})  # fmt: skip
    style = {"low": "low", "high": "high", "bands": "alarm", "time_x": True}
    ax = Display([Figure("Time", "", frame, "line", "time", "y", **style)]).figure.axes[0]
    days = ax.lines[0].get_xdata(orig=False)
    assert (days - days[0]) * 86400 == pytest.approx([0, 10, 60], abs=1e-3)
    [band] = ax.collections
    assert sorted(set(np.round(band.get_paths()[0].vertices[:, 1], 2))) == [0.5, 0.7, 0.8, 0.9, 1.0]
    assert [text.get_text().strip() for text in ax.texts] == ["fog"]
    assert len(ax.patches) == 1
