"""Tables and charts as a reader sorts, filters and saves them in Chromium."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
from playwright.sync_api import expect
from tests.report.browser import Visit, as_embedded, in_chromium, saved
from tests.report.conftest import write_report

from haptera.report.study import severity

pytestmark = in_chromium


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
    assert set(csv["measure"]) == {"error", "shift_mean"}  # the mean under a shift is one of errors
