"""Takes the pictures of a report that the README and the landing page show, light and dark.

    python experiments/report_picture.py

Runs `haptera demo --quick` first, half a minute, and writes `docs/pictures/report.png` and `report-dark.png`. They show
the answers and the first figure; what lies between them on the page, and what is below the figure, is left out, and
the figure is less tall, so that a screen holds the landing page. It needs Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LEFT_OUT = ".bar, .notes, .definitions, .lead, h2 { display: none !important; }"
LOWER = "(plot) => { plot.style.height = '270px'; return Plotly.relayout(plot, { height: 270 }).then(() => null); }"
CLOSER = "section { margin-top: 1.25rem; padding-top: 0; } h1 { margin-top: 1.25rem; }"


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
            chart = page.locator(".js-plotly-plot").first
            chart.evaluate(LOWER)
            page.wait_for_timeout(500)
            plot = chart.bounding_box()
            path = PICTURES / f"report{ending}.png"
            page.screenshot(path=path, clip={"x": 0, "y": 0, "width": 1200, "height": plot["y"] + plot["height"] - 4})
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        subprocess.run([sys.executable, "-m", "haptera", "demo", "--quick", "--out", str(demo)], check=True)
        main(demo / "report.html")
