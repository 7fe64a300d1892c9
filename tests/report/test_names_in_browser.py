"""Names of figures as a reader sees them: whole where there is room, and with the sign that is drawn."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.report.browser import Visit, in_chromium

from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Section

pytestmark = in_chromium
LONG = "median error (degrees, least)"


def write(figure: Figure, path: Path) -> Path:
    write_page(render([Section("All", "", (figure,))], [], title="Names", settings={}), path)
    return path


@pytest.mark.parametrize(("columns", "is_whole"), [(1, True), (30, False)])
def test_names_over_few_columns_of_a_heatmap_are_whole(
    visit: Callable[..., Visit], tmp_path: Path, columns: int, is_whole: bool
) -> None:
    names = [f"{LONG} {place}"[-len(LONG) :] if place else LONG for place in range(columns)]
    rows = pd.DataFrame({"measure": names, "decoder": "knn", "value": 1.0})
    page = visit(
        write(Figure("Heat", "", rows, "heatmap", "measure", "decoder", value=("value",)), tmp_path / "a.html")
    ).page
    page.wait_for_selector(".xtick text")
    assert (page.locator(".xtick text").first.text_content() == LONG) is is_whole


def test_the_legend_of_points_shows_the_marker_of_each_dash(visit: Callable[..., Visit], tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"birth": [0.0, 1, 2, 3], "death": [1.0, 2, 3, 4], "what": "ring", "fit": ["true", "shuffled"] * 2}
    )
    figure = Figure("Bars", "", rows, "scatter", "birth", "death", color=("what",), dash="fit")
    page = visit(write(figure, tmp_path / "a.html")).page
    page.wait_for_selector(".legend li")
    signs = page.locator(".legend li", has_text="true").or_(page.locator(".legend li", has_text="shuffled"))
    paths = [sign.locator("svg path") for sign in signs.all()]
    assert [path.count() for path in paths] == [1, 1]  # a marker, and no line
    assert len({path.get_attribute("d") for path in paths}) == 2
