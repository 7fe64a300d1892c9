"""Takes the pictures of a report that the README and the landing page show, light and dark.

    python experiments/report_picture.py [FOLDER]

Runs the demo into FOLDER (`haptera-demo` by default) first, which takes a minute or two where it has not been run
before, and writes `docs/pictures/report.png` and `report-dark.png`. They show the answers and the first figure; what
lies between them on the page, and what is below the figure, is left out. It needs Chromium.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LEFT_OUT = ".bar, .notes, .definitions, .lead { display: none !important; }"
CLOSER = "section { margin-top: 1.5rem; padding-top: 1.25rem; } h1 { margin-top: 1.5rem; }"


def main(report: Path) -> None:
    """Take both pictures, down to the end of the first plot."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for scheme, ending in (("light", ""), ("dark", "-dark")):
            page = browser.new_page(viewport={"width": 1200, "height": 1240}, color_scheme=scheme)
            page.goto(report.resolve().as_uri())
            page.add_style_tag(content=LEFT_OUT + CLOSER)
            page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=120_000)
            page.wait_for_timeout(500)
            plot = page.locator(".js-plotly-plot").first.bounding_box()
            path = PICTURES / f"report{ending}.png"
            page.screenshot(path=path, clip={"x": 0, "y": 0, "width": 1200, "height": plot["y"] + plot["height"] + 12})
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "haptera-demo")
    subprocess.run([sys.executable, "-m", "haptera", "demo", "--out", str(demo)], check=True)
    main(demo / "report.html")
