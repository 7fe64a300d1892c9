"""Takes the pictures of whole pages that the guides of trends and dependencies show, light and dark.

    python experiments/page_pictures.py [DATA] [FOLDER]

The page of trends is of the 66 ImageNet models whose correctness lies in DATA, where it is given; else of the
classifiers of `examples/trends_of_classifiers.py`. That of dependencies is of `examples/dependencies_of_a_network.py`.
Pages are made in FOLDER, or else in a temporary one, unless they are there. Writes `docs/pictures/trends.png`,
`trends-dark.png` and the like. It needs Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
PUBLISHED = "imagenet_66_models_correct.npz"
HEIGHT = {"trends": 1900, "dependencies": 1900}
"""Kind -> pixels of the page, so that the first figure is seen under the answers."""


def make(folder: Path, data: Path | None) -> None:
    """Make both pages where they are not made yet."""
    command = [sys.executable, "-m", "haptera"]
    if not (folder / "trends" / "report.html").is_file():
        if data is None:
            subprocess.run([sys.executable, ROOT / "examples" / "trends_of_classifiers.py", folder], check=True)
            sides = [folder / "clean.npz", folder / "noisy.npz"]
        else:
            sides = [f"{data / PUBLISHED}:{name}" for name in ("imagenet", "imagenetv2")]
        subprocess.run([*command, "trends", *sides, "--out", folder / "trends", "--quiet"], check=True)
    if not (folder / "dependencies" / "report.html").is_file():
        subprocess.run([sys.executable, ROOT / "examples" / "dependencies_of_a_network.py", folder], check=True)
        logits, out = folder / "pairs.npz", folder / "dependencies"
        subprocess.run([*command, "dependencies", logits, "--out", out, "--quiet"], check=True)


def take(folder: Path) -> None:
    """Take the upper part of each page, light and dark."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for name, height in HEIGHT.items():
            for scheme, ending in (("light", ""), ("dark", "-dark")):
                page = browser.new_page(viewport={"width": 1200, "height": height}, color_scheme=scheme)
                page.goto((folder / name / "report.html").resolve().as_uri())
                page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=120_000)
                page.wait_for_timeout(500)
                path = PICTURES / f"{name}{ending}.png"
                page.screenshot(path=path)
                page.close()
                shrink(path)
        browser.close()


def shrink(path: Path) -> None:
    """Save a picture with a palette of 256 colours that are near all of its own: a third of the size."""
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as temporary:
        place = given[1] if len(given) > 1 else Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        make(place, given[0] if given else None)
        take(place)
