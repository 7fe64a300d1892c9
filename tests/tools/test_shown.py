"""Pages show other files as they are now, and nothing on them is empty without the build."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import shown  # noqa: E402

PAGES = list(shown.pages())
BLOCK = re.compile(r"^```\{(\w[\w-]*)\}[^\n]*\n((?::[\w-]+:[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(shown.DOCS))


def test_pages_are_current():
    assert not [name(page) for page in PAGES if page.read_text("utf-8") != shown.current(page)], "`make evidence`"


def test_no_block_is_empty_without_the_build():
    blocks = [(name(page), *block) for page in PAGES for block in BLOCK.findall(page.read_text("utf-8"))]
    assert len(blocks) > 50
    assert not [(page, kind) for page, kind, _, content in blocks if not content.strip()]


def test_an_include_becomes_what_it_includes_and_stays_so(tmp_path):
    (tmp_path / "rows.md").write_text("| a |\n|---|\n| 1 |\n")
    (tmp_path / "code.py").write_text("import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n")
    page = tmp_path / "page.md"
    python = "```{literalinclude} code.py\n:language: python\n:pyobject: one\n```"
    page.write_text(f"# Page\n\n```{{include}} rows.md\n```\n\nText.\n\n{python}\n")
    text = shown.current(page)
    assert "\n| a |\n|---|\n| 1 |\n" in text
    assert "```python\ndef one():\n    return 1\n```" in text
    assert "two" not in text
    page.write_text(text)
    assert shown.current(page) == text
    (tmp_path / "rows.md").write_text("| b |\n")
    assert "| b |" in shown.current(page)
    assert "| 1 |" not in shown.current(page)
    assert "Text." in shown.current(page)


def test_verdicts_are_the_last_row_of_the_overview(tmp_path):
    head = "| source | confirmed | undecided | rows | errors found |\n|---|---|---|---|---|\n"
    (tmp_path / "index.md").write_text(f"{head}| one | 2 | – | 2 | 1 |\n| **all** | **7** | **3** | **10** | **4** |\n")
    (tmp_path / "page.md").write_text("<!-- shows verdicts of index.md -->\n<!-- end of verdicts of index.md -->\n")
    assert "10 rows: 7 confirmed, 3 undecided. 4 errors were found in the sources." in shown.current(
        tmp_path / "page.md"
    )
