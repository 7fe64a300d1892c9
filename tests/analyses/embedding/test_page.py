"""The cloud of an embedding: what the figure says, and that it turns in a browser without a request."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.report.figure import Figure
from haptera.report.page import render
from haptera.report.section import Section

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def cloud(**settings) -> Figure:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(50, 3)), columns=["a", "b", "c"])
    frame["heading"] = generator.uniform(0, 360, 50)
    frame["side"] = np.where(frame["heading"] > 180, "left", "right")
    return Figure("Embedding", "Turn it.", frame, kind="cloud", x="a", y="b", **settings)


def test_a_cloud_names_its_third_dimension_and_its_colours():
    figure = cloud(depth="c", value=("heading",), cyclic=True, limits=(0.0, 360.0))
    assert figure.encoding()["depth"] == "c"
    assert figure.encoding()["cyclic"] is True
    assert figure.height > 400
    with pytest.raises(HapteraError, match="did you mean 'c'"):
        cloud(depth="C")


def wait_until(place, holds):
    """Ask again and again; `wait_for_function` does so by `eval`, which the page's policy forbids."""
    for _ in range(600):
        if place.evaluate(holds):
            return
        place.page.wait_for_timeout(50)
    raise AssertionError(f"never seen in 30 s: {holds}")


@pytest.mark.long  # CI runs it, too: `make test-long`
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser")
def test_arrow_keys_turn_the_cloud_and_nothing_is_loaded(tmp_path: Path):
    from playwright.sync_api import sync_playwright

    figures = (
        cloud(depth="c", value=("heading",), cyclic=True),
        cloud(depth="c", color=("side",)),
        cloud(value=("c",)),
    )
    path = tmp_path / "page.html"
    path.write_text(render([Section("Embedding", "", figures)], [], title="Cloud", settings={}), encoding="utf-8")
    requests, errors = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        plot = page.locator(".plot").first
        kinds = "element => element.data.map((trace) => trace.type)"
        wait_until(plot, "element => element.data !== undefined")
        if plot.evaluate(kinds) == ["scatter3d"]:  # where the browser has WebGL
            eye = "element => element._fullLayout.scene.camera.eye"
            before = plot.evaluate(eye)
            plot.focus()
            page.keyboard.press("ArrowLeft")
            wait_until(plot, f"element => element._fullLayout.scene.camera.eye.x !== {before['x']}")
            after = plot.evaluate(eye)
            assert np.hypot(after["x"], after["y"]) == pytest.approx(np.hypot(before["x"], before["y"]))
            assert after["z"] == pytest.approx(before["z"])
        else:
            assert "no WebGL" in page.locator(".status").first.inner_text()
        browser.close()
    assert errors == []
    assert set(requests) == {path.as_uri()}
