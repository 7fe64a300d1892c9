"""A display shows what a page opens with, is saved, and gives a notebook what it can show."""

import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.report.display import Display, opened
from haptera.report.figure import Figure

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
    assert picture._repr_mimebundle_()["text/html"].startswith('<img src="data:image/png;base64,')
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
