"""Logarithmic axes as a reader sees them: values at the ticks, and names at the ends of lines."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from tests.report.browser import Visit, in_chromium

from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Section

pytestmark = in_chromium


def texts(visit: Callable[..., Visit], figure: Figure, path: Path) -> tuple[list[list[str]], Visit]:
    """Return what stands at the ticks of x and of y."""
    write_page(render([Section("All", "", (figure,))], [], title="Logarithms", settings={}), path)
    opened = visit(path)
    opened.page.wait_for_selector(".ytick text")
    return [opened.page.locator(f".{axis}tick text").all_text_contents() for axis in "xy"], opened


def test_lines_have_values_at_their_ticks_and_names_at_their_ends(visit: Callable[..., Visit], tmp_path: Path) -> None:
    rows = pd.DataFrame({"depth": [0, 1, 2] * 2, "value": [1.0, 0.2, 0.02, 1.0, 2.0, 1.5], "model": list("aaabbb")})
    figure = Figure("Lines", "", rows, "line", "depth", "value", color=("model",), log_y=True)
    (_, up), opened = texts(visit, figure, tmp_path / "a.html")
    assert {"0.02", "0.1", "1", "2"} <= set(up)
    ends = opened.page.locator(".annotation-text")
    assert ends.all_text_contents() == ["a", "b"]
    lower, upper = (ends.nth(place).bounding_box() for place in (0, 1))
    ticks = {
        text: opened.page.locator(".ytick text", has_text=text).first.bounding_box()["y"] for text in ("0.02", "0.2")
    }
    assert abs(lower["y"] - ticks["0.02"]) < 10
    assert upper["y"] < ticks["0.2"]


def test_layers_have_values_at_the_ticks_of_both_axes(visit: Callable[..., Visit], tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"value": [0.5, 5.0, 0.5, 5.0], "error": [0.01, 0.1, 0.01, 0.1], "layer": ["nets"] * 2 + ["law"] * 2}
    ).assign(mark=["point", "point", "line", "line"])
    figure = Figure("Law", "", rows, "layers", "value", "error", color=("layer",), mark="mark", scale="log")
    (across, up), _ = texts(visit, figure, tmp_path / "a.html")
    assert {"0.5", "1", "2", "5"} <= set(across)
    assert {"0.01", "0.05", "0.1"} <= set(up)
