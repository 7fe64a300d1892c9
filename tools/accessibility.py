"""Check a page with axe-core in Chromium, in the light and the dark theme, and measure its size and its first paint.

    python tools/accessibility.py haptera-demo/report.html

npm gets axe-core into a temporary folder. Every figure and table is drawn before axe looks. Ends with 1 where a finding
is serious or critical; moderate and minor ones are printed. Nothing is checked, and that is said with code 2, where
there is no npm, no network or no Chromium.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

AXE, MEMBER = "axe-core", "package/axe.min.js"
GRAVE = ("serious", "critical")
PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => Math.round(entry.startTime))[0]"
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


def look(path: Path, axe: str, scheme: str, browser: Any) -> tuple[list[dict[str, Any]], int]:
    """Return what axe finds on a page in one theme, and the milliseconds until its first paint."""
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
        paint = page.evaluate(PAINT)
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        return found, int(paint or 0)
    finally:
        context.close()


def main(path: Path) -> int:
    """Print what was found; return the code to end with."""
    if not path.is_file():
        raise SystemExit(f"there is no file {path}")
    axe, program = axe_script(), chromium()
    if axe is None or program is None:
        print("nothing was checked:", "npm cannot get axe-core" if axe is None else "there is no Chromium")
        return 2
    from playwright.sync_api import sync_playwright

    grave = 0
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for scheme in ("light", "dark"):
            found, paint = look(path, axe, scheme, browser)
            print(f"{scheme}: first paint after {paint} ms, {len(found)} rules of axe-core broken")
            for rule in found:
                grave += rule["impact"] in GRAVE
                where = [" ".join(map(str, node["target"])) for node in rule["nodes"]]
                print(f"  {rule['impact']}: {rule['id']}, {rule['help']} ({len(where)} times, first at {where[0]})")
        browser.close()
    return int(grave > 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/accessibility.py PAGE")
    raise SystemExit(main(Path(sys.argv[1])))
