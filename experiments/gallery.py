"""Takes a small picture of every figure that the tool draws, light and dark, and writes the page that shows them.

    python experiments/gallery.py [FOLDER]

A report of each kind is made first, in FOLDER or else in a temporary one, unless it is there; that takes some minutes.
Pictures go into `docs/pictures/gallery`, the page is `docs/gallery.md`. It needs Chromium.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures" / "gallery"
WIDTH = 480
"""Pixels of the page when pictures are taken: so narrow that they need not be made smaller to stand side by side."""
MARGIN = 40
"""Pixels beside a plot that is wider than that."""
KINDS = {
    "study": ("A study", "guides/report.md", "src/haptera/report/study/__init__.py"),
    "compare": ("Two studies", "guides/report.md", "src/haptera/analyses/comparison/analysis.py"),
    "diagnosis": ("Diagnosis", "guides/diagnosis.md", "src/haptera/analyses/diagnosis/page.py"),
    "trends": ("Trends", "guides/trends.md", "src/haptera/analyses/trends/page.py"),
    "dependencies": ("Dependencies", "guides/dependencies.md", "src/haptera/analyses/dependencies/page.py"),
    "stability": ("Stability", "guides/stability.md", "src/haptera/analyses/stability/page.py"),
    "gate": ("Gate", "guides/gate.md", "src/haptera/analyses/gate/page.py"),
    "preflight": ("Preflight", "guides/preflight.md", "src/haptera/analyses/preflight/page.py"),
    "live": ("Live", "guides/live.md", "src/haptera/live/page.py"),
    "embedding": ("Embeddings", "guides/embedding.md", "src/haptera/analyses/embedding/page.py"),
    "attribution": ("Attribution", "guides/attribution.md", "src/haptera/analyses/attribution/page.py"),
    "identify": ("Identifiability", "guides/identify.md", "src/haptera/analyses/identify/page.py"),
    "pose": ("Poses", "guides/pose.md", "src/haptera/pose/page.py"),
}
"""Kind -> what the gallery calls it, the page about it, and the file in whose folder is the code of its figures."""
NET = "--model examples/net.py:build --weights net.safetensors --size 16"
RUN = "--data digits --size 16 --stream clean --stream corruptions:shifts=fog,severities=3,5 --adapter none --quiet"
MAKE = {
    "trends": ("python examples/trends_of_classifiers.py .",),
    "dependencies": ("python examples/dependencies_of_a_network.py .",),
    "stability": (
        "python examples/net.py .",
        f"haptera stability {NET} --data digits --samples 200 --out out --quiet",
    ),
    "attribution": (
        "python examples/embedding_with_controls.py .",
        "haptera attribute cells --fits 1 --out out --quiet",
    ),
    "embedding": ("python examples/embedding_with_controls.py .",),
    "identify": ("haptera identify --process sphere/uniform/vmf=10 --model sphere/vmf --steps 200 --out out --quiet",),
    "pose": ("python examples/pose_of_new_individuals.py .",),
    "diagnosis": (
        "python examples/net.py .",
        "haptera materialise --data digits --size 16 --shift contrast --severity 2 --out hall --quiet",
        f"haptera diagnose {NET} --reference digits --data hall/contrast/2 --channels 1 --out out --quiet",
    ),
    "live": (
        "python examples/net.py .",
        f"haptera profile {NET} --data digits --out profile.safetensors --quiet",
        f"haptera live simulate {NET} --data digits --reference profile.safetensors --rate 0 --out log --quiet"
        " --stream clean --stream continual:shifts=fog,severity=3 --adapter batchnorm:prior=0",
        "haptera live log --out out --quiet",
    ),
    "gate": (
        f"haptera run --model examples/net.py:trained {RUN} --out released",
        f"haptera run --model examples/net.py:trained:epochs=3 {RUN} --out candidate",
        "haptera gate candidate --baseline released --out out --quiet",
    ),
    "compare": (
        f"haptera run --model examples/net.py:trained {RUN} --adapter batchnorm --out old",
        f"haptera run --model examples/net.py:trained:epochs=3 {RUN} --adapter batchnorm --out new",
        "haptera compare old new --out out --quiet",
    ),
    "study": ("haptera demo --quick --quiet --out out",),
}
"""Kind -> the commands that make a report of it, in a folder that also holds `examples/`; the last may end with 1."""


@dataclass(frozen=True)
class Picture:
    """One figure: the kind of its report, its title, and the name of its files."""

    kind: str
    title: str
    name: str


def take(page: Page, figure: Locator, path: Path) -> bool:
    """Write a picture of what is drawn in a figure; False where nothing is."""
    plot = figure.locator(".plot")
    plot.scroll_into_view_if_needed()
    page.wait_for_timeout(700)
    if not plot.locator("svg, canvas, table").count():
        return False
    needed = int(plot.bounding_box()["width"]) + 2 * MARGIN
    if needed > WIDTH:  # a plot that is scrolled sideways would be cut
        page.set_viewport_size({"width": needed, "height": 900})
        page.wait_for_timeout(700)
    image = Image.open(io.BytesIO(plot.screenshot())).convert("RGB")
    page.set_viewport_size({"width": WIDTH, "height": 900})
    image.quantize(64).save(path, optimize=True)
    return True


def code_of(title: str, code: str) -> str:
    """Return the file that draws a figure: the first beside `code` that gives it its title, else `code` itself."""
    for path in sorted((ROOT / code).parent.glob("*.py")):
        if f'title="{title}"' in path.read_text("utf-8"):
            return path.relative_to(ROOT).as_posix()
    return code


def pictures_of(kind: str, report: Path, page: Page, scheme: str) -> list[Picture]:
    """Take all figures of a report in one colour scheme."""
    page.goto(report.resolve().as_uri())
    page.wait_for_timeout(1000)
    taken = []
    for figure in page.locator("figure.figure").all():
        title = figure.locator("h3").inner_text().strip()
        name = f"{kind}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"
        if take(page, figure, PICTURES / f"{name}{'-dark' if scheme == 'dark' else ''}.png"):
            taken.append(Picture(kind, title, name))
    return taken


def gallery(pictures: list[Picture]) -> str:
    """Return the page: a heading for each kind, a picture for each figure, light or dark as the reader's screen is."""
    lines = ["<!-- made by experiments/gallery.py -->", "", "# Gallery", ""]
    lines += ["Every figure of the reports; the name of one leads to the code that draws it. In a report each can be"]
    lines += ["filtered and saved, and its numbers are below it.", ""]
    for kind, (title, guide, code) in KINDS.items():
        shown = [picture for picture in pictures if picture.kind == kind]
        if shown:
            lines += [f"## {title}", "", f"[How to make and read them]({guide})", ""]
            lines += [line for picture in shown for line in _figure(picture, code)]
    return "\n".join(lines)


def _figure(picture: Picture, code: str) -> list[str]:
    """Return a picture and its name; Markdown inside HTML needs the empty lines."""
    source = f"pictures/gallery/{picture.name}"
    return [
        "<figure>",
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{source}-dark.png">',
        f'<img src="{source}.png" alt="{picture.title}" loading="lazy"></picture>',
        "<figcaption>",
        "",
        f"[{picture.title}](../{code_of(picture.title, code)})",
        "",
        "</figcaption>",
        "</figure>",
        "",
    ]


def main(reports: dict[str, Path]) -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    pictures: list[Picture] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
            pictures = [each for kind, report in reports.items() for each in pictures_of(kind, report, page, scheme)]
        browser.close()
    (ROOT / "docs" / "gallery.md").write_text(gallery(pictures), "utf-8")
    print(f"{len(pictures)} figures, {sum(path.stat().st_size for path in PICTURES.iterdir()) / 1e3:.0f} kB")


def made(folder: Path) -> dict[str, Path]:
    """Run what makes a report of each kind, unless it is there; returns where they are."""
    found = {}
    for kind, commands in MAKE.items():
        place = folder / kind
        if not list(place.rglob("report.html")):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "examples").symlink_to(ROOT / "examples")
            for command in commands:
                print(command, flush=True)
                start = [sys.executable, *(["-m"] if command.startswith("haptera") else [])]
                subprocess.run([*start, *command.removeprefix("python ").split()], cwd=place, check=False)
        reports = sorted(place.rglob("report.html"), key=lambda path: (path.parent.name != "out", len(path.parts)))
        if reports:
            found[kind] = reports[0]
        else:
            print(f"there is no report of {kind}")
    return {kind: found[kind] for kind in KINDS if kind in found}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(made(Path(sys.argv[1]).resolve()))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(made(Path(name)))
