"""The gallery shows pictures that are there, light and dark, small, each with code that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text("utf-8")
PICTURES = ROOT / "docs" / "pictures" / "gallery"


def test_every_picture_is_there_in_both_schemes_and_small():
    shown = re.findall(r'(?:src|srcset)="pictures/gallery/([^"]+)"', PAGE)
    assert len(shown) > 60
    assert sorted(shown) == sorted(path.name for path in PICTURES.iterdir())
    assert {name.replace("-dark.png", ".png") for name in shown} <= set(shown)
    assert max(path.stat().st_size for path in PICTURES.iterdir()) < 60_000


def test_the_code_that_draws_each_figure_exists():
    linked = re.findall(r"<figcaption>\n\n\[.+\]\(\.\./(src/\S+\.py)\)\n\n</figcaption>", PAGE)
    assert len(linked) == PAGE.count("<figure>")
    assert not [path for path in linked if not (ROOT / path).is_file()]
