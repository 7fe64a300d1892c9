"""The page as a reader meets it: in Chromium, from a file, offline."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.report.conftest import write_report

from haptera.report.encode import rounded
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Section
from haptera.report.study import severity
from haptera.table import tidy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser"),
]
HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>"
SETTINGS = {
    "versions": {"haptera": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.2"},
    "machine": {"processor": "x86_64", "threads": 2},
    "seeds": [0],
    "data": {"path": "old/", "images": 1000, "classes": 10, "fingerprint": "3f9a2c1d77e0"},
    "adapters": {"none": {}, "batchnorm:prior=16": {"prior": 16, "momentum": None}},
}


@dataclass
class Visit:
    """A page and what it did while it was open."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, study: pd.DataFrame) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    notes = ["2 cells failed: vgg-16-bn · continual · batchnorm:prior=16; the same command tries them again."]
    write_report(study, path, title="Audit of twelve classifiers", settings=SETTINGS, notes=notes)
    return path


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a page; afterwards it must have loaded nothing and logged no error."""
    opened: list[tuple[BrowserContext, Visit]] = []

    def go(path: Path, width: int = 1280, scheme: str = "light") -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.set_default_timeout(8000)
        found = Visit(context.new_page())
        found.page.on("console", lambda message: found.errors.append(message.text))
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        opened.append((context, found))
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-ready=yes]")
        return found

    yield go
    for context, found in opened:
        loaded = set(found.requests) - {found.page.url.split("#")[0]}
        errors = list(found.errors)
        context.close()
        assert errors == []
        assert {url for url in loaded if not url.startswith(("data:", "blob:"))} == set()


def see_all(page: Page) -> None:
    """Scroll to every figure and table, so that all are drawn."""
    for box in page.locator(".figure, .listing").all():
        box.scroll_into_view_if_needed()
        expect(box.locator(".main-svg, table").first).to_be_visible()
    page.evaluate("scrollTo(0, 0)")


def saved(page: Page, button: str) -> str:
    with page.expect_download() as download:
        page.locator(button).click()
    return Path(download.value.path()).read_text()


def as_embedded(frame: pd.DataFrame) -> pd.DataFrame:
    """Floats as the page has them."""
    floats = frame.select_dtypes("float").columns
    return frame.assign(**{name: rounded(frame[name].to_numpy()) for name in floats}).reset_index(drop=True)


def no_sideways_scroll(page: Page) -> None:
    wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window


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
    assert page.locator("#figure-4-1 .annotation").count() == 3
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


def test_a_name_that_is_a_formula_is_saved_as_text_and_negative_numbers_as_numbers(
    visit: Callable[..., Visit], study: pd.DataFrame, tmp_path: Path
) -> None:
    names = {"vit-small": "=HYPERLINK(1)", "resnet-50": "-1+1"}
    named = study.assign(model=study["model"].replace(names))
    named = pd.concat([named, named.head(1).assign(measure="margin", value=-0.5)], ignore_index=True)
    path = tmp_path / "report.html"
    write_report(named, path, title="Names", settings={})
    page = visit(path).page
    page.locator(".listing", has_text="Every value").scroll_into_view_if_needed()
    table = pd.read_csv(StringIO(saved(page, ".listing:has-text('Every value') button:text('CSV')")))
    assert {"'=HYPERLINK(1)", "'-1+1"} <= set(table["model"])
    assert not set(table["model"]) & set(names.values())
    assert table.loc[table["measure"] == "margin", "value"].tolist() == [-0.5]


def test_chart_table_and_csv_follow_the_controls(
    visit: Callable[..., Visit], written: Path, study: pd.DataFrame
) -> None:
    page = visit(written).page
    figure = page.locator("#figure-1-1")
    figure.get_by_label("shift").select_option("contrast")
    figure.locator(".chooser summary").click()
    figure.get_by_role("button", name="None").click()
    expect(figure.locator(".plot")).to_contain_text("nothing is selected")
    figure.get_by_label("vit-small").check()
    page.keyboard.press("Escape")
    expect(figure.locator(".panel")).to_be_hidden()
    figure.locator(".behind summary").click()
    expect(figure.locator("tbody tr")).to_have_count(12)

    section = severity.section(study)
    assert section is not None
    frame = as_embedded(section.figures[0].frame)
    everything = pd.read_csv(StringIO(saved(page, "#figure-1-1 > .actions button:text('all')")))
    pd.testing.assert_frame_equal(everything, frame, check_dtype=False)
    shown = pd.read_csv(StringIO(saved(page, "#figure-1-1 > .actions button:text('shown')")))
    wanted = (frame["stream"] == "corruptions") & (frame["shift"] == "contrast") & (frame["model"] == "vit-small")
    pd.testing.assert_frame_equal(shown, frame[wanted].reset_index(drop=True), check_dtype=False)

    heatmap = page.locator("#figure-2-1")
    heatmap.scroll_into_view_if_needed()
    heatmap.get_by_label("show").select_option("change")
    expect(heatmap.locator("strong:visible")).to_have_text("batchnorm:prior=16")  # none does not differ from itself


def test_tables_sort_by_keyboard_filter_and_page(visit: Callable[..., Visit], written: Path) -> None:
    page = visit(written).page
    listing = page.locator(".listing", has_text="Every value")
    listing.scroll_into_view_if_needed()
    header = listing.locator("th", has_text="value")
    header.locator("button").focus()
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "descending")
    column = [cell.inner_text() for cell in header.locator("xpath=preceding-sibling::th").all()]
    values = listing.locator(f"tbody tr td:nth-child({len(column) + 1})").all_inner_texts()
    assert values == sorted(values, key=float, reverse=True)
    assert len(values) == 25
    listing.get_by_role("button", name="Next").press("Enter")
    expect(listing.locator(".status")).to_contain_text("rows 26–50 of")
    listing.get_by_label("Filter").fill("RESNET-50 contrast error")
    expect(listing.locator(".status")).to_contain_text("filtered from")
    texts = listing.locator("tbody tr").all_inner_texts()
    assert len(texts) > 0
    assert all("resnet-50" in text and "contrast" in text and "error" in text for text in texts)
    csv = pd.read_csv(StringIO(saved(page, ".listing:has-text('Every value') button:text('CSV')")))
    assert set(csv["measure"]) == {"error"}


def test_keyboard_reaches_the_content_and_the_focus_is_seen(visit: Callable[..., Visit], written: Path) -> None:
    page = visit(written).page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
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
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_print_is_light_and_complete(visit: Callable[..., Visit], written: Path, tmp_path: Path) -> None:
    page = visit(written, scheme="dark").page
    page.evaluate("addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; })")
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate("window.printed") == "light"
    assert page.locator("#figure-5-1 .main-svg").count() > 0  # drawn for the print, though never in view
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


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
