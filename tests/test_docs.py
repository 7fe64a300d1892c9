"""The documentation builds without a warning, its examples run, and what it names exists."""

import doctest
import importlib
import inspect
import logging
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from haptera.catalog import KINDS, entries
from haptera.cli import app_for

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]
REFERENCE = sorted((DOCS / "reference").rglob("*.md"))
TEXTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def doctests(page: Path) -> str:
    """The page with every line blanked that is not an example, so that line numbers stay as they are."""
    text = page.read_text(encoding="utf-8")
    kept = [""] * (text.count("\n") + 1)
    for block in FENCE.finditer(text):
        if ">>>" in block[2]:
            first = text.count("\n", 0, block.start(2))
            kept[first : first + block[2].count("\n")] = block[2].splitlines()
    return "\n".join(kept)


def commands(page: Path) -> list[str]:
    """What follows `$ ` in the page's console blocks, lines that end in a backslash joined."""
    blocks = [
        block[2].replace("\\\n", " ") for block in FENCE.finditer(page.read_text("utf-8")) if block[1] == "console"
    ]
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built pages; a warning of any kind, a dead link among them, is an error."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", out / "doctrees", DOCS, out / "html"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.mark.slow  # CI runs `make docs`
def test_every_page_is_built(site):
    every = [*(page for page in PAGES if "results" not in page.parts), *DOCS.glob("tutorials/*.ipynb")]
    missing = [name(page) for page in every if not (site / page.relative_to(DOCS)).with_suffix(".html").is_file()]
    assert not missing


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r'<(?:script|img|iframe)[^>]*src="https?:|<link[^>]*rel="stylesheet"[^>]*href="https?:')
    assert not [page.name for page in site.rglob("*.html") if loads.search(page.read_text("utf-8"))]


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text("utf-8")], ids=name)
def test_examples_on_the_page_run(page, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.NOTSET, "haptera")  # what a page does to the level ends with it
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(doctests(page), {}, name(page), str(page), 0)
    assert test.examples
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in TEXTS for command in commands(page) if not command.endswith("--help")],
    ids=lambda value: name(value) if isinstance(value, Path) else value[:60],
)
def test_command_on_the_page_exists(page, command):
    program, *words = shlex.split(command)
    if program == "haptera":
        group = typer.main.get_command(app_for(words[0]))
        group.commands[words[0]].make_context(words[0], words[1:])  # parses, runs nothing
    elif program == "python":
        assert (ROOT / words[0]).is_file()
    elif program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert program in ("pip", ".", "cd", "git", "chromium")


def test_every_command_is_on_the_page_of_commands():
    headings = set(re.findall(r"^## ([\w-]+)$", (DOCS / "reference" / "commands.md").read_text("utf-8"), re.MULTILINE))
    assert headings == set(typer.main.get_command(app_for(None)).commands)


def test_every_room_is_on_the_page_of_rooms_and_in_the_layout():
    folders = {path.parent.name for path in (ROOT / "src" / "haptera").glob("*/__init__.py")}
    page, layout = (DOCS / "where-things-are.md").read_text("utf-8"), (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert not [room for room in folders if f"`haptera.{room}`" not in page]
    assert not [room for room in folders if not re.search(rf"^  .*\b{room}/", layout, re.MULTILINE)]


def test_every_stream_has_a_row_where_streams_are_listed():
    rows = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "start" / "concepts.md").read_text("utf-8"), re.MULTILINE))
    classes = {entry.target.rpartition(":")[2] for entry in entries("streams").values()}
    assert classes <= rows


def test_every_command_has_one_row_in_the_table_of_json():
    table = (DOCS / "guides" / "studies.md").read_text("utf-8").partition("## `--json`")[2]
    named = [
        each for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for each in re.findall(r"`([\w-]+)`", row)
    ]
    assert len(named) == len(set(named))
    assert set(named) <= set(typer.main.get_command(app_for(None)).commands)


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_files_on_the_page_exist(page):
    folders = "examples|tests|src|benchmarks|experiments|tools|docs"
    named = re.findall(rf"(?<![\w/.-])((?:{folders})/[\w./-]*\w)", page.read_text("utf-8"))
    made = ("docs/_build",)
    assert not [path for path in named if "NAME" not in path and path not in made and not (ROOT / path).exists()]


@pytest.mark.parametrize(
    "package",
    [
        "adapters",
        "analyses.attribution",
        "data",
        "analyses.dependencies",
        "contrastive",
        "compat.cebra",
        "export",
        "recordings",
        "losses",
        "measures",
        "models",
        "observe",
        "pose",
        "report",
        "shifts",
        "streams",
        "testing",
        "analyses.trends",
        "tune",
    ],
)
def test_the_reference_has_every_public_class_and_function(package):
    module = importlib.import_module(f"haptera.{package}")
    text = "".join(page.read_text("utf-8") for page in REFERENCE)
    found = {name: getattr(module, name) for name in module.__all__}
    public = [name for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(value)]
    assert not [name for name in public if not re.search(rf"\b{name}\b", text)]


def exists(path: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                value = getattr(value, part, None) or value.__dataclass_fields__[part]
        except (ImportError, AttributeError, KeyError):
            continue
        return True
    return False


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "changelog.md"], ids=name)
def test_names_on_the_page_exist(page):
    named = set(re.findall(r"`(haptera(?:\.\w+)+)(?:`|\()", page.read_text("utf-8")))
    groups = {f"haptera.{kind}" for kind in KINDS}  # of entry points
    assert not [path for path in sorted(named - groups) if not exists(path)]


@pytest.mark.parametrize("page", [page for page in REFERENCE if ".. auto" in page.read_text("utf-8")], ids=name)
def test_names_of_the_reference_exist(page):
    """As autodoc looks them up, so that a name that was moved is noticed without building the documentation."""
    entries = re.findall(r"^\.\. auto(\w+):: (\S+)((?:\n   .*)*)", page.read_text("utf-8"), re.MULTILINE)
    for kind, path, options in entries:
        if kind == "module":
            value = importlib.import_module(path)
        else:
            module, _, own = path.rpartition(".")
            value = getattr(importlib.import_module(module), own)
            assert inspect.isclass(value) if kind in ("class", "exception") else callable(value), path
        named = re.search(r":members: ([\w,\s]+?)(?=\n   :|\Z)", options)
        members = re.findall(r"\w+", named[1]) if named else []
        assert not [member for member in members if not exists(f"{path}.{member}")], path
