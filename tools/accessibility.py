"""Check pages with axe-core in Chromium, in the light and the dark theme, and measure their sizes and first paints.

    python tools/accessibility.py haptera-demo/report.html [PAGE ...]

npm gets axe-core into a temporary folder. Every figure and table is drawn before axe looks. Ends with 1 where a finding
is serious or critical; moderate and minor ones are printed. Nothing is checked, and that is said with code 2, where
there is no npm, no network or no Chromium. Times are medians of loads, those of several pages taken in turn: until
something is painted, and until the first chart is there, all that comes before it unpacked and run.
"""

import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

AXE, MEMBER = "axe-core", "package/axe.min.js"
GRAVE = ("serious", "critical")
PAINT = """new Promise((done) => new PerformanceObserver((list) => {
  const [first] = list.getEntriesByName("first-contentful-paint");
  if (first) done(first.startTime);
}).observe({ type: "paint", buffered: true }))"""
"""Waits without `eval`, which the page's policy forbids."""
LOADS = 9
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
SLOW = 300_000
"""Milliseconds to wait on a machine that does much else."""


def axe_script() -> str | None:
    """Return axe-core from npm; None where it cannot be had."""
    if shutil.which("npm") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return None
        with tarfile.open(Path(folder, done.stdout.strip().splitlines()[-1])) as archive:
            found = archive.extractfile(MEMBER)
            return found.read().decode() if found else None


def chromium() -> str | None:
    """Return the path of a Chromium; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def look(path: Path, axe: str, scheme: str, browser: Any) -> list[dict[str, Any]]:
    """Return what axe finds on a page in one theme."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
    )
    context.set_default_timeout(SLOW)
    try:
        page = context.new_page()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        for box in page.locator(".figure, .listing").all():
            box.scroll_into_view_if_needed()
            box.locator(".main-svg, table").first.wait_for()
        for behind in page.locator(".definitions summary, .behind summary").all():
            behind.click()
        page.evaluate("scrollTo(0, 0)")
        page.add_script_tag(content=axe)
        found: list[dict[str, Any]] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        return found
    finally:
        context.close()


def load(path: Path, browser: Any) -> tuple[float, float]:
    """Return the milliseconds until a page's first paint, and until it has a chart or, without one, is ready."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(SLOW)
    try:
        page.goto(path.resolve().as_uri())
        page.wait_for_selector(
            ".main-svg" if page.locator(".plot").count() else "html[data-ready=yes]", state="attached"
        )
        drawn = float(page.evaluate("performance.now()"))
        return float(page.evaluate(PAINT)), drawn
    finally:
        page.close()


def check(path: Path, axe: str, browser: Any) -> int:
    """Print what axe finds on a page; return how many findings are grave."""
    grave = 0
    for scheme in ("light", "dark"):
        found = look(path, axe, scheme, browser)
        print(f"  {scheme}: {len(found)} rules of axe-core broken")
        for rule in found:
            grave += rule["impact"] in GRAVE
            where = [" ".join(map(str, node["target"])) for node in rule["nodes"]]
            print(f"    {rule['impact']}: {rule['id']}, {rule['help']} ({len(where)} times, first at {where[0]})")
    return grave


def main(*paths: Path) -> int:
    """Print what was found; return the code to end with."""
    for path in paths:
        if not path.is_file():
            raise SystemExit(f"there is no file {path}")
    axe, program = axe_script(), chromium()
    if axe is None or program is None:
        print("nothing was checked:", "npm cannot get axe-core" if axe is None else "there is no Chromium")
        return 2
    from playwright.sync_api import sync_playwright

    grave = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        loads = [[load(path, browser) for path in paths] for _ in range(LOADS + 1)][1:]  # the first starts the browser
        for path, times in zip(paths, zip(*loads, strict=True), strict=True):
            paint, drawn = (statistics.median(each) for each in zip(*times, strict=True))
            print(
                f"{path}: {path.stat().st_size / 1e6:.2f} MB, painted after {paint:.0f} ms, drawn after {drawn:.0f} ms"
            )
            grave += check(path, axe, browser)
        browser.close()
    return int(grave > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("usage: python tools/accessibility.py PAGE [PAGE ...]")
    raise SystemExit(main(*map(Path, sys.argv[1:])))
