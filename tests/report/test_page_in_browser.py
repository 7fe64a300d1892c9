"""The page as a reader meets it: in Chromium, from a file, offline."""

import os
import zlib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, expect
from tests.report.browser import Visit, in_chromium, no_sideways_scroll, see_all
from tests.report.conftest import write_report

from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Section
from haptera.table import tidy

pytestmark = in_chromium
HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>"


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 400, "light")]
)
def test_every_chart_draws(
    visit: Callable[..., Visit], written: Path, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    page = visit(written, width, scheme).page
    assert page.locator("#figure-1-1 .main-svg").count() > 0
    assert page.locator("#figure-4-1 .main-svg").count() == 0  # not before it is near
    see_all(page)
    lines = page.locator("#figure-1-1 .scatterlayer .trace .js-line[style*='stroke-width: 2px']")
    assert lines.count() == 10  # five models with two adapters
    assert page.locator("#figure-2-1 .heatmaplayer image").count() == 1
    assert page.locator("#figure-2-1 .textpoint").count() == 12 * 5
    assert page.locator("#figure-3-1 .textpoint").count() == 2 * 2  # two adapters in two streams
    assert page.locator("#figure-4-1 .scatterlayer .trace .point").count() == 2 * 45
    names = 2 if width > 600 else 0  # of the two lines, where there is room beside them
    assert page.locator("#figure-4-1 .annotation").count() == 3 + names
    assert page.locator("#figure-5-1 .scatterlayer .point").count() == 24
    no_sideways_scroll(page)
    for folder in {tmp_path, Path(os.environ.get("HAPTERA_SCREENSHOTS", tmp_path))}:
        page.screenshot(path=folder / f"report-{name}.png", full_page=True)
        assert (folder / f"report-{name}.png").stat().st_size > 50_000


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 400, "light")]
)
def test_what_adapters_do_is_drawn(
    visit: Callable[..., Visit], learning: pd.DataFrame, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    write_report(learning, path, title="Learning while the world changes", settings={})
    page = visit(path, width, scheme).page
    see_all(page)
    titles = page.locator("h2").all_inner_texts()
    places = {title: f"#figure-{number}-1" for number, title in enumerate(titles, 1)}
    crosses = page.locator(f"{places['Over time']} .scatterlayer .trace").last.locator(".point")
    assert crosses.count() == 2  # below its parent, then below the unadapted model
    inside = page.locator(places["Adaptation"])
    assert inside.locator(".legend li").all_inner_texts() == ["rdumb"]
    inside.get_by_label("show").select_option("share of the largest class")
    expect(inside.locator(".legend li")).to_have_count(4)
    diagram = page.locator(places["Calibration"])
    assert diagram.locator(".scatterlayer .js-line[style*='dasharray']").count() == 1
    assert page.locator(f"{places['Classes']} .textpoint").count() > 5
    no_sideways_scroll(page)
    for folder in {tmp_path, Path(os.environ.get("HAPTERA_SCREENSHOTS", tmp_path))}:
        page.screenshot(path=folder / f"learning-{name}.png", full_page=True)
        assert (folder / f"learning-{name}.png").stat().st_size > 50_000


def test_keyboard_reaches_the_content_and_the_focus_is_seen(visit: Callable[..., Visit], written: Path) -> None:
    page = visit(written).page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for link in page.locator(".answers .seen a").all():
        page.keyboard.press("Tab")
        expect(link).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".definitions summary")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Tab")
    expect(page.locator("#figure-1-1 select").first).to_be_focused()
    buttons = page.locator("button:visible").all()
    assert all(button.evaluate("element => element.tabIndex") == 0 for button in buttons)


def test_dark_mode_follows_the_system_and_remembers_the_reader(visit: Callable[..., Visit], written: Path) -> None:
    page = visit(written, scheme="dark").page
    button = page.locator("#theme")
    expect(button).to_have_attribute("aria-pressed", "true")
    background = "getComputedStyle(document.body).backgroundColor"
    line = "document.querySelector('#figure-1-1 .scatterlayer .trace:last-child .js-line').style.stroke"
    dark = page.evaluate(f"[{background}, {line}]")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    light = page.evaluate(f"[{background}, {line}]")
    assert dark[0] != light[0]
    assert dark[1] != light[1]  # the charts change too, without a reload
    for _ in range(20):  # a browser on a busy machine writes down later what the page told it to keep
        page.reload()
        if page.locator("html").get_attribute("data-theme") == "light":
            break
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


@pytest.mark.parametrize("width", [320, 700, 1280])
def test_no_entry_of_the_contents_is_cut_off(visit: Callable[..., Visit], written: Path, width: int) -> None:
    page = visit(written, width).page
    entries = page.locator(".bar a").all()
    assert len(entries) > 5
    for entry in entries:
        box = entry.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert entry.evaluate(
            "a => document.elementFromPoint(...[a.getBoundingClientRect()].flatMap((b) => "
            "[b.x + b.width / 2, b.y + b.height / 2])) === a"
        )
    no_sideways_scroll(page)


def test_an_answer_leads_to_its_figure(visit: Callable[..., Visit], written: Path) -> None:
    page = visit(written).page
    link = page.locator(".answers .seen a").first
    link.click()
    title = page.locator(f"{link.get_attribute('href')} h3").first
    assert title.inner_text() == link.inner_text()
    expect(title).to_be_in_viewport()


def test_print_is_light_and_complete(visit: Callable[..., Visit], written: Path, tmp_path: Path) -> None:
    page = visit(written, scheme="dark").page
    page.evaluate("addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; })")
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate("window.printed") == "light"
    assert page.locator("#figure-5-1 .main-svg").count() > 0  # drawn for the print, though never in view
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_paper_has_all_rows_of_a_table_or_says_how_many(visit: Callable[..., Visit], tmp_path: Path) -> None:
    tables = tuple(Listing(f"{rows} rows", "", pd.DataFrame({"row": range(rows)})) for rows in (60, 101))
    write_page(render([Section("All", "", tables=tables)], [], title="Long", settings={}), tmp_path / "long.html")
    page = visit(tmp_path / "long.html").page
    see_all(page)
    page.locator("#table-1-1 button", has_text="Next").click()
    shown = "[box.querySelectorAll('tbody tr').length, box.querySelector('.cut').innerText]"
    every = f"Array.from(document.querySelectorAll('.listing'), (box) => {shown})"
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {every}; }})")
    page.pdf(path=tmp_path / "long.pdf")
    (short, said), (cut, first) = page.evaluate("window.printed")
    assert (short, said, cut) == (60, "", 100)
    assert first.startswith("The first 100 of 101 rows")
    assert page.locator("#table-1-1 tbody td").first.inner_text() == "25"  # the reader is where the reader was


def test_columns_of_a_sentence_stay_apart(visit: Callable[..., Visit], tmp_path: Path) -> None:
    answers = [Finding("net", "How stable is net?", "R 1.2   D 0.3   G 0.25")]
    write_page(render([], answers, title="Columns", settings={}), tmp_path / "columns.html")
    assert visit(tmp_path / "columns.html").page.locator(".answers dd").inner_text() == answers[0].sentence


def test_hostile_names_are_only_names(
    visit: Callable[..., Visit], tmp_path: Path, make: Callable[..., pd.DataFrame]
) -> None:
    table = make(models=(HOSTILE, "fine"))
    names = {"contrast": f"{HOSTILE} %{{x}}", "motion_blur": "<b>bold</b>&amp;"}
    table = tidy(table.assign(shift=table["shift"].replace(names)))
    path = tmp_path / "report.html"
    summary = write_report(table, path, title=HOSTILE, settings={HOSTILE: {HOSTILE: [HOSTILE]}}, notes=[HOSTILE])
    page = visit(path, 400).page
    see_all(page)
    page.locator("#figure-1-1 .behind summary").click()
    page.locator("#figure-1-1 .chooser summary").click()
    expect(page.locator("#figure-1-1 .checks label").first).to_be_visible()
    page.locator("#figure-1-1 .nsewdrag").hover()
    assert page.evaluate("window.harmed") is None
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in summary
    assert any(HOSTILE in text for text in page.locator("#figure-1-1 .legend li").all_inner_texts())
    assert "<b>bold</b>&amp;" in page.locator("#figure-2-1 .xtick").all_text_contents()
    no_sideways_scroll(page)


def test_an_empty_report_opens(visit: Callable[..., Visit], tmp_path: Path) -> None:
    write_report(tidy([]), tmp_path / "report.html", title="Nothing", settings={})
    page = visit(tmp_path / "report.html").page
    expect(page.locator(".answers")).to_contain_text("The table is empty")


def test_a_single_model_without_clean_data_or_adapters(
    visit: Callable[..., Visit], tmp_path: Path, make: Callable[..., pd.DataFrame]
) -> None:
    table = make(models=("net",))
    table = table[(table["adapter"] == "none") & (table["stream"] == "corruptions")]
    write_report(table, tmp_path / "report.html", title="One", settings={})
    page = visit(tmp_path / "report.html").page
    see_all(page)
    assert page.locator("#figure-1-1 .chooser").count() == 0
    assert page.locator("#figure-1-1 strong:visible").inner_text() == "corruptions"


def test_names_that_look_like_numbers_are_evenly_spaced_in_the_order_of_the_table(
    visit: Callable[..., Visit], tmp_path: Path
) -> None:
    rows = pd.DataFrame({"unit": ["7", "120", "31"], "value": [1.0, 2.0, 3.0], "kind": ["b", "a", "b"]})
    figure = Figure("Units", "", rows, kind="scatter", x="unit", y="value", color=("kind",))
    write_page(render([Section("All", "", (figure,))], [], title="Units", settings={}), tmp_path / "units.html")
    page = visit(tmp_path / "units.html").page
    ticks = page.locator(".xtick text")
    expect(ticks).to_have_count(3)
    assert ticks.all_text_contents() == ["7", "120", "31"]
    left = [tick.bounding_box()["x"] + tick.bounding_box()["width"] / 2 for tick in ticks.all()]  # type: ignore[index]
    assert left[1] - left[0] == pytest.approx(left[2] - left[1], abs=2)


def test_the_page_unpacks_whatever_gzip_packs(browser: Browser) -> None:
    text = files("haptera.report").joinpath("static", "inflate.js").read_text("utf-8")
    page = browser.new_page()
    page.evaluate(f"() => {{ {text}; window.inflated = (bytes) => Array.from(inflated(Uint8Array.from(bytes))); }}")
    random = np.random.default_rng(0)
    for content in (b"", b"a", b"abc" * 999, bytes(70_000), random.bytes(70_000), text.encode() * 20):
        for level in (0, 1, 9):
            for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY):
                packer = zlib.compressobj(level, wbits=31, strategy=strategy)
                packed = packer.compress(content) + packer.flush()
                assert bytes(page.evaluate("(bytes) => inflated(bytes)", list(packed))) == content
    page.close()


def test_charts_are_there_when_the_page_has_loaded(written: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(written.as_uri(), wait_until="load")
    assert page.evaluate("document.querySelectorAll('#figure-1-1 .main-svg').length") > 0  # asked once, without waiting
    page.close()
