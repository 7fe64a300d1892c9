"""A study of twenty adapters, fifteen corruptions and five seeds, and pictures of its page: can one tell them apart?

    python experiments/twenty_adapters.py [FOLDER] [--seeds 5]

A small network on digits, adapted while the fifteen corruptions of ImageNet-C follow one another. It takes some ten
minutes on one core, less with fewer seeds, and goes on where it was stopped. Into the folder go `report.html`, the
paper's table in four formats, and, where there is a Chromium, pictures of every figure, light and dark, and as a phone
shows them. The numbers mean little: the network is small and settings were not tuned.
"""

import argparse
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from haptera.adapters import (
    CMF,
    CPL,
    EATA,
    ETA,
    LAME,
    RMT,
    ROID,
    RPL,
    SANTA,
    SAR,
    SLR,
    T3A,
    Adapter,
    BatchNorm,
    CoTTA,
    DeYO,
    NoAdaptation,
    PseudoLabels,
    RDumb,
    RoTTA,
    Tent,
)
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.report.paper.formats import FORMATS, write_tables
from haptera.report.paper.table import paper_tables
from haptera.run.results import results_of
from haptera.run.study import Study
from haptera.streams import Continual

ADAPTERS: dict[str, Callable[..., Adapter]] = {
    "none": NoAdaptation,
    "batchnorm:prior=0": partial(BatchNorm, prior=0),  # as adapters that learn name their parent
    "tent": partial(Tent, lr=3e-3),
    "pseudo_labels": PseudoLabels,
    "rpl": partial(RPL, lr=3e-3),
    "slr": SLR,
    "cpl": CPL,
    "eta": partial(ETA, redundancy=0.4),
    "eata": partial(EATA, redundancy=0.4),
    "sar": partial(SAR, lr=0.01),
    "cotta": partial(CoTTA, augmentations=4),
    "rdumb": partial(RDumb, redundancy=0.4, every=100),
    "lame": LAME,
    "rotta": RoTTA,
    "rmt": RMT,
    "roid": ROID,
    "cmf": CMF,
    "santa": SANTA,
    "deyo": DeYO,
    "t3a": T3A,
}
SEVERITY = 3
SIZE = 16
VIEWS: dict[str, tuple[int, Literal["light", "dark"]]] = {
    "light": (1280, "light"),
    "dark": (1280, "dark"),
    "narrow": (400, "light"),
    "narrow-dark": (400, "dark"),
}
ENDINGS = {"latex": "tex", "markdown": "md", "csv": "csv", "html": "html"}


def take_pictures(report: Path) -> None:
    """Write a picture of each figure of a page, in every view."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for view, (width, scheme) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.goto(report.resolve().as_uri())
            for figure in page.locator(".figure").all():
                figure.scroll_into_view_if_needed()
                figure.locator(".main-svg, table").first.wait_for()
                name = figure.locator("h3").inner_text().lower().replace(" ", "-")
                page.add_style_tag(content=".bar { display: none !important; }")  # it would lie over the picture
                figure.screenshot(path=report.parent / f"{name}-{view}.png")
        browser.close()


def main(out: Path, seeds: int = 5) -> None:
    """Run what is missing, write the page and the tables, and take the pictures."""
    torch.manual_seed(0)
    net = ResNet(channels=1)
    fit(net, digits("train", size=SIZE), epochs=12)
    stream = Continual(digits("test", size=SIZE), severity=SEVERITY, batch_size=64)
    study = Study({"resnet": net.eval()}, [stream], ADAPTERS, out=out, seeds=range(seeds))
    study.run(progress=True)
    report = results_of(out).report()
    page = report.save(out)["report"]
    for form in FORMATS:
        text = write_tables(paper_tables(report.table(), order=list(ADAPTERS)), form)
        (out / f"table.{ENDINGS[form]}").write_text(text, encoding="utf-8")
    if shutil.which("chromium"):
        take_pictures(page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("haptera-twenty-adapters"))
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    main(given.folder, given.seeds)
