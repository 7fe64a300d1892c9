"""The page of a run in Chromium while rows arrive: it shows what is new, keeps what the reader chose, logs no error."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.live.recorded_rows import append, rows, write_log
from tests.report.browser import PATIENCE, browser, in_chromium, no_sideways_scroll, see_all

from haptera.live.server import LiveServer

__all__ = ["browser"]
pytestmark = in_chromium
ROWS = rows()
UPDATED = "html[data-updated*='\"']"


@pytest.fixture
def served(request, tmp_path):
    with LiveServer(write_log(tmp_path / "log", getattr(request, "param", ROWS[:150])), port=0) as server:
        yield server


@pytest.fixture
def visit(browser, served):
    """Open the page; afterwards it must have asked this server alone, and logged nothing."""
    opened = []

    def go(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        told, asked = [], set()
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(served.url)
        page.wait_for_selector("html[data-ready=yes]")
        page.wait_for_selector(UPDATED)
        opened.append((context, told, asked))
        return page

    yield go
    for context, told, asked in opened:
        context.close()
        assert told == []
        names = ("", "early.js", "plotly.js", "page.js", "data.json")
        assert {url for url in asked if not url.startswith(("data:", "blob:"))} <= {served.url + name for name in names}


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 400, "light")]
)
def test_what_arrives_is_shown_and_every_chart_draws(visit, served, tmp_path, name, width, scheme):
    page = visit(width, scheme)
    first = page.locator(".answers dd").first
    expect(first).to_contain_text("shift since 14:02")
    see_all(page)
    figure = page.locator("#figure-1-1")
    assert figure.locator(".scatterlayer .trace").last.locator(".point").count() == 1  # the alarm
    append(served.content.folder, ROWS[150:])
    expect(first).to_contain_text("shift from 14:02 to 16:43")
    expect(figure.locator(".scatterlayer .trace").last.locator(".point")).to_have_count(2)
    expect(page.locator(".listing tbody tr")).to_have_count(6)
    assert figure.locator(".shapelayer path, .layer-below path").count() >= 1  # the shift is shaded
    assert page.locator("#live").inner_text() == "Updated as new data arrives."
    service = page.locator(".answers div", has_text="in time and memory")
    assert re.fullmatch(r"[\d.]+ ms a batch", service.locator("dd.large").inner_text())
    service.locator("a").click()
    expect(page.locator(f"[id='{page.url.partition('#')[2]}']")).to_contain_text("Latency")
    no_sideways_scroll(page)
    for folder in {tmp_path, Path(os.environ.get("HAPTERA_SCREENSHOTS", tmp_path))}:
        page.screenshot(path=folder / f"live-{name}.png", full_page=True)
        assert (folder / f"live-{name}.png").stat().st_size > 50_000


def test_what_the_reader_chose_stays_while_rows_arrive_and_the_keyboard_reaches_it(visit, served):
    page = visit()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    see_all(page)
    adapter = page.locator("#figure-3-1")
    adapter.get_by_label("measure").select_option("entropy (nats)")
    adapter.get_by_label("measure").focus()
    page.locator("#figure-1-1 .behind summary").click()
    adapter.get_by_label("measure").focus()
    append(served.content.folder, ROWS[150:])
    expect(page.locator(".answers dd").first).to_contain_text("shift from 14:02 to 16:43")
    expect(adapter.get_by_label("measure")).to_have_value("entropy (nats)")
    expect(adapter.get_by_label("measure")).to_be_focused()
    expect(adapter.locator(".legend li")).to_have_text(["entropy (nats)"])
    expect(page.locator("#figure-1-1 .behind .status")).to_contain_text("of 440")
    buttons = page.locator("button:visible").all()
    assert all(button.evaluate("element => element.tabIndex") == 0 for button in buttons)


@pytest.mark.parametrize("served", [[row for row in ROWS[:50] if row["kind"] == "step"]], indirect=True, ids=["steps"])
def test_a_section_that_comes_later_is_shown(visit, served):
    log = served.content.folder
    page = visit()
    expect(page.locator("h2", has_text="Events")).to_have_count(0)
    append(log, ROWS[50:])
    expect(page.locator("h2", has_text="Events")).to_have_count(1)
    expect(page.locator(".answers dd").first).to_contain_text("shift from 14:02 to 16:43")


def test_a_section_whose_rows_are_gone_is_dropped(visit, served):
    page = visit()
    expect(page.locator("h2", has_text="Events")).to_have_count(1)
    (served.content.folder / "current.jsonl").write_text("")  # the log is begun anew
    append(served.content.folder, [row for row in ROWS[:50] if row["kind"] == "step"])
    expect(page.locator("h2", has_text="Events")).to_have_count(0)
