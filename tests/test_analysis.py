"""What the base of every analysis does for a notebook."""

import pandas as pd
import pytest

from haptera.analysis import Analysis
from haptera.errors import HapteraError
from haptera.report.figure import Figure
from haptera.report.section import Finding, Section


class Falling(Analysis):
    """An analysis with one chart that a notebook can draw and one that it cannot."""

    kind = "falling"
    title = "How it falls"
    settings = {}  # noqa: RUF012

    def findings(self):
        return [Finding("fall", "How far?", "by half", {"fall": 0.5})]

    def sections(self):
        frame = pd.DataFrame({"step": [1, 2], "error": [0.2, 0.4]})
        lines = Figure("Error", "Of each step.", frame, "line", "step", "error")
        star = Figure("Star", "Around one.", frame, "star", "step", "error")
        return [Section("Error", figures=(lines,)), None, Section("More", figures=(star,))]


def test_figures_of_a_page_are_drawn_by_their_titles():
    analysis = Falling()
    assert list(analysis.figures()) == ["Error", "Star"]
    shown = analysis.draw("Error")
    assert shown.frame["error"].tolist() == [0.2, 0.4]
    assert shown.figure.axes[0].lines[0].get_ydata().tolist() == [0.2, 0.4]
    assert analysis.draw("Error", engine="plotly").figure.data[0].y.tolist() == [0.2, 0.4]


def test_a_figure_that_is_not_there_or_cannot_be_drawn_is_named():
    with pytest.raises(HapteraError, match=r"unknown figure 'Eror'; did you mean 'Error'\? valid: Error, Star"):
        Falling().draw("Eror")
    with pytest.raises(HapteraError, match="'Star' is a chart of kind 'star'"):
        Falling().draw("Star")
