"""Takes the picture of a report that the README shows.

    python experiments/report_picture.py

Runs the demo into `haptera-demo` first, which takes a minute or two where it has not been run before, and writes
`docs/pictures/report.png`. It needs Chromium.
"""

import shutil
import subprocess
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
    root = Path(__file__).parents[1]
    demo = root / "haptera-demo"
    subprocess.run([sys.executable, "-m", "haptera", "demo", "--out", str(demo)], check=True)
    main(demo / "report.html", root / "docs" / "pictures" / "report.png")
