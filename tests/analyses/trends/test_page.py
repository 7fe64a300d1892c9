"""The page of trends: the frames behind its figures, and that it draws, offline, in Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from haptera.analyses.trends import page
from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.side import Side, join
from haptera.theory.known_models import ProbitModels

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAMES = [f"net-{place}" for place in range(9)]


@pytest.fixture(scope="module")
def trends() -> Trends:
    sides = ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400)
    return Trends(
        join(*(Side.of_correct(name, NAMES, side) for name, side in zip("ab", sides, strict=True))), draws=100
    )


@pytest.fixture(scope="module")
def alone(trends: Trends) -> Trends:
    sides = (Side(side.source, side.models, side.accuracy) for side in (trends.sides.reference, trends.sides.shifted))
    return Trends(join(*sides), draws=100)


def test_every_model_is_a_point_and_every_line_a_layer(trends: Trends) -> None:
    frame = page.line_section(trends).figures[0].frame
    points = frame[frame["mark"] == "point"]
    assert points["model"].tolist() == NAMES
    assert points["shifted"].tolist() == trends.accuracies[1].tolist()
    lines = frame[frame["mark"] == "line"]
    assert {f"{trends.line} line", "linear line", "nothing lost"} <= set(lines["layer"])
    linear = lines[lines["layer"] == "linear line"]
    assert np.allclose(linear["shifted"], trends.lines["linear"].line(linear["reference"]))
    bands = frame[frame["mark"] == "band"]
    assert set(bands["layer"]) == {f"{trends.line} line", "new models"}
    assert (bands["low"] < bands["high"]).all()


def test_every_event_is_in_a_cell_and_every_wedge_a_band(trends: Trends) -> None:
    frame = page.closeness_section(trends).figures[0].frame
    assert frame[frame["mark"] == "cell"]["events"].sum() == 504
    bands = frame[frame["mark"] == "band"]
    assert bands["layer"].nunique() == 2
    assert any("100 % inside" in layer for layer in bands["layer"])
    assert (bands["low"] <= bands["high"]).all()


def test_frontiers_of_both_shares_are_shown(trends: Trends) -> None:
    frame = page.closeness_section(trends).figures[1].frame
    assert frame["events"].unique().tolist() == ["100 % of the events", "95 % of the events"]


def test_lower_bounds_are_below_the_line_of_the_ends_and_fall_with_zeta(trends: Trends) -> None:
    frame = page.guarantee_section(trends).figures[2].frame
    curves = frame[frame["layer"].str.startswith("lower bound")]
    means = curves.groupby(["wedge", "layer"])["shifted"].mean().unstack("layer")
    assert (means["lower bound, ζ = 0"] > means["lower bound, ζ = 0.05"]).all()
    assert (means["lower bound, ζ = 0.05"] > means["lower bound, ζ = 0.1"]).all()


def test_regions_narrow_when_more_is_known(trends: Trends) -> None:
    frame = page.guarantee_section(trends).figures[1].frame
    bands = frame[frame["mark"] == "band"]
    width = (bands["high"] - bands["low"]).groupby(bands["layer"]).sum()
    assert width["bound (2) once"] > width.drop("bound (2) once").max()


def test_accuracies_alone_have_a_page_without_events(alone: Trends, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(alone.page())
    text = (tmp_path / "page.html").read_text()
    assert ">Line</h2>" in text
    assert ">Robustness</h2>" in text
    assert ">Closeness</h2>" not in text


def test_many_pairs_are_cut_to_the_largest_and_said_so(trends: Trends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_PAIRS", 10)
    figure = page.similarity_section(trends).figures[0]
    assert len(figure.frame) == 10
    assert figure.frame["dominance"].min() >= np.sort(trends.pairs["dominance"])[-10]
    assert "These are the 10 of 36 pairs" in figure.caption


@pytest.fixture(scope="module")
def drawn(trends: Trends, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[object, list[str]]]:
    """The page in a browser, every figure drawn, and what it complained about or asked for."""
    path = tmp_path_factory.mktemp("trends") / "page.html"
    path.write_text(trends.page())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(viewport={"width": 1200, "height": 900})
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda request: None if request.url == path.as_uri() else said.append(request.url))
        opened.goto(path.as_uri())
        opened.wait_for_selector("html[data-ready=yes]")
        for box in opened.locator(".figure, .listing").all():
            box.scroll_into_view_if_needed()
            expect(box.locator(".main-svg, table").first).to_be_visible(timeout=120_000)
        yield opened, said
        browser.close()


@pytest.mark.long  # CI runs it, too: `make test-long`
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser")
def test_the_page_draws_and_asks_for_nothing(drawn) -> None:
    opened, said = drawn
    assert [url for url in said if not url.startswith(("data:", "blob:"))] == []
    assert opened.locator("#figure-1-1 .scatterlayer .point").count() == 9
    assert opened.locator("#figure-4-1 .heatmaplayer image").count() == 1
    assert opened.locator("#figure-4-1 .legend li").count() == 2
    ticks = opened.locator("#figure-1-2 .xtick").all_text_contents()
    assert {"0.5", "0.7", "0.9"} <= set(ticks)


@pytest.mark.long  # CI runs it, too: `make test-long`
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser")
def test_probit_axes_are_the_normal_quantile(drawn) -> None:
    # On probit axes .5, .6 and .7 are 0, .2533 and .5244 apart, as the ticks must be.
    opened, _ = drawn
    boxes = {tick.text_content(): tick.bounding_box() for tick in opened.locator("#figure-1-2 .xtick").all()}
    place = {name: box["x"] + box["width"] / 2 for name, box in boxes.items()}
    assert (place["0.7"] - place["0.5"]) / (place["0.6"] - place["0.5"]) == pytest.approx(0.5244 / 0.2533, rel=0.01)
