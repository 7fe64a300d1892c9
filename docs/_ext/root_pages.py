"""Pages of the site that are files at the root of the repository, where code hosts look for them."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILES = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}


def setup(app: Any) -> dict[str, Any]:
    """Put the file in the place of the page that links to it."""

    def replace(app: Any, docname: str, source: list[str]) -> None:
        if docname in FILES:
            path = ROOT / FILES[docname]
            app.env.note_dependency(str(path))
            source[0] = path.read_text("utf-8")

    app.connect("source-read", replace)
    return {"parallel_read_safe": True}
