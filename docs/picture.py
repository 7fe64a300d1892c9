"""Takes the picture of a report that the README shows.

python docs/picture.py haptera-demo/report.html docs/report.png
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def main(report: Path, picture: Path) -> None:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 1240}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.wait_for_selector(".js-plotly-plot .scatterlayer .trace")
        page.wait_for_timeout(500)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
