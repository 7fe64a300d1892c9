"""Pages in Chromium, from a file, offline."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from haptera.report.page import rounded

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


PATIENCE = 120_000
"""Milliseconds until a browser is given up, on a machine that does much else."""
expect.set_options(timeout=PATIENCE)
in_chromium = [
    pytest.mark.browser,
    pytest.mark.long,  # CI runs these, too: `make test-long`
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser"),
]


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


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a page; afterwards it must have loaded nothing and logged no error."""
    opened: list[tuple[BrowserContext, Visit]] = []

    def go(path: Path, width: int = 1280, scheme: str = "light") -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
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
