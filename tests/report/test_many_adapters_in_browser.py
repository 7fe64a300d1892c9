"""Twenty adapters on one page: each can be told from the others, hidden, brought out, and read in the paper's table."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from tests.report.browser import Visit, in_chromium, no_sideways_scroll
from tests.report.conftest import measured, write_report

from haptera.table import tidy

pytestmark = in_chromium
ADAPTERS = ("none", *(f"method {number}" for number in range(1, 20)))
SHIFTS = ("gaussian_noise", "shot_noise", "fog", "contrast")


def rows(adapter: str, seed: int) -> list[dict[str, object]]:
    generator = np.random.default_rng([ADAPTERS.index(adapter), seed])
    found: list[dict[str, object]] = []
    for place, shift in enumerate(SHIFTS):
        names = {
            "model": "net",
            "stream": "continual",
            "adapter": adapter,
            "shift": shift,
            "severity": 5.0,
            "seed": seed,
        }
        value = 0.4 + 0.02 * ADAPTERS.index(adapter) + generator.normal(0, 0.01)
        row = measured("accuracy", value, 500)
        found += [names | row, names | row | {"measure": "error", "value": 1 - row["value"]}]
        found += [
            names | {"step": 10 * place + step} | measured("accuracy_over_steps", value, 100)
            for step in range(0, 10, 3)
        ]
    seconds = {"measure": "seconds_per_image", "value": 0.001 * (1 + ADAPTERS.index(adapter)), "n": 2000}
    return [*found, {"model": "net", "stream": "continual", "adapter": adapter, "seed": seed} | seconds]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tidy(row for adapter in ADAPTERS for seed in (0, 1) for row in rows(adapter, seed))
    made = tmp_path_factory.mktemp("many") / "report.html"
    write_report(table, made, title="Many", settings={})
    return made


def figure(page: Page, title: str) -> Locator:
    box = page.locator(".figure", has=page.get_by_role("heading", name=title, exact=True))
    box.scroll_into_view_if_needed()
    expect(box.locator(".main-svg, table").first).to_be_visible()
    return box


def mean_error(adapter: str) -> float:
    """In per cent, over both seeds and all shifts."""
    values = [row["value"] for seed in (0, 1) for row in rows(adapter, seed) if row["measure"] == "error"]
    return 100 * float(np.mean(values))  # type: ignore[arg-type]


LOWEST = "box => box.querySelector('.plot').layout.yaxis.range[0]"
FADED = """box => Array.from(box.querySelectorAll('.scatterlayer .trace'))
    .filter(trace => trace.style.opacity === '0.12').length"""
LOOK = """box => Array.from(box.querySelectorAll('.scatterlayer .trace')).map(trace => [
    trace.querySelector('.js-line')?.style.stroke, trace.querySelector('.js-line')?.style.strokeDasharray,
    trace.querySelector('.point')?.getAttribute('d')].join(' '))"""


def check_looks(box: Locator) -> list[str]:
    looks: list[str] = box.evaluate(LOOK)
    assert len(looks) == len(set(looks)) == 20
    return looks


def test_no_two_lines_look_alike_in_the_dark_either_and_names_do_not_overlap(
    visit: Callable[..., Visit], path: Path
) -> None:
    page = visit(path, scheme="dark").page
    box = figure(page, "Accuracy over time")
    check_looks(box)
    labels = [label for label in box.locator(".annotation-text").all() if label.text_content() in ADAPTERS]
    assert sorted(str(label.text_content()) for label in labels) == sorted(ADAPTERS)
    tops = sorted(label.bounding_box()["y"] for label in labels)  # type: ignore[index]
    assert min(np.diff(tops)) > 10
    points = figure(page, "Accuracy against time per image").locator(".annotation-text")
    boxes = [label.bounding_box() for label in points.all()]
    assert len(boxes) == 20
    for place, one in enumerate(boxes):
        for other in boxes[:place]:
            assert one is not None
            assert other is not None
            aside = one["x"] + one["width"] <= other["x"] + 2 or other["x"] + other["width"] <= one["x"] + 2
            assert aside or abs(one["y"] - other["y"]) > 9


def test_a_name_can_be_hidden_shown_and_brought_out(visit: Callable[..., Visit], path: Path) -> None:
    page = visit(path).page
    box = figure(page, "Accuracy over time")
    traces = box.locator(".scatterlayer .trace")
    before = check_looks(box)
    button = box.get_by_role("button", name="method 7", exact=True)
    button.click()
    expect(traces).to_have_count(19)
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(button).to_be_focused()
    assert set(box.evaluate(LOOK)) < set(before)  # the others keep their looks
    button.press("Enter")
    expect(traces).to_have_count(20)
    assert box.evaluate(LOOK) == before
    box.get_by_role("button", name="Hide all").click()
    box.get_by_role("button", name="none", exact=True).click()
    expect(traces).to_have_count(2)  # the line, and the band of its interval
    box.get_by_role("button", name="Show all").click()
    expect(traces).to_have_count(20)
    box.get_by_role("button", name="method 3", exact=True).hover()
    assert box.evaluate(FADED) == 19
    page.mouse.move(0, 0)
    assert box.evaluate(FADED) == 0
    fit = box.get_by_role("button", name="Fit to the data")
    expect(fit).to_have_attribute("aria-pressed", "true")
    assert box.evaluate(LOWEST) > 0.2
    fit.click()
    assert box.evaluate(LOWEST) == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_papers_table_is_on_the_page(visit: Callable[..., Visit], path: Path, width: int, scheme: str) -> None:
    page = visit(path, width, scheme).page
    box = figure(page, "Adapters by shifts")
    heads = box.locator(".paper thead tr").last.locator("th").all_inner_texts()
    assert heads == ["adapter", "Gauss.", "Shot", "Fog", "Contr.", "mean"]
    body = box.locator(".paper tbody tr")
    lines = [line.split("\t") for line in body.all_inner_texts()]
    assert lines[0][0].strip() == "none"
    shown = {name.strip(): float(mean.split("\n")[0]) for name, *_, mean in lines}
    assert shown == pytest.approx({name: mean_error(name) for name in ADAPTERS}, abs=0.051)
    assert box.locator(".paper strong").count() >= 5
    assert "method 19 is" in box.locator(".remark").inner_text()
    assert "paired over 2 seeds" in box.locator(".remark").inner_text()
    box.get_by_role("button", name="mean", exact=True).click()
    first = body.first
    expect(first.locator("th")).to_have_text("method 19")
    expect(box.get_by_role("button", name="mean", exact=True)).to_be_focused()
    box.get_by_label("show").select_option("accuracy")
    accuracy = float(first.locator("td").last.inner_text().split("±")[0])
    assert shown["method 19"] + accuracy == pytest.approx(100, abs=0.11)
    no_sideways_scroll(page)
