"""Pages read well without a build: write into each page what it shows of other files, and the laws of a kind of part.

A page says what it shows in a comment, and this script writes it below, up to the comment that ends it:

    <!-- shows results/cifar.md -->
    ...
    <!-- end of results/cifar.md -->

`shows FILE` is a file, a Markdown file as it is and any other in a fence; `shows FILE NAME` is a function or class of a
Python file; `shows laws of KIND` the laws of `haptera.testing`; `shows contents N` links to the pages of the N-th
toctree of the page, which is then hidden; `shows verdicts of FILE` the last row of its table of verdicts, as a
sentence. A new one may be written as `{include}` or `{literalinclude}`, as Sphinx knows them: they become comments.
`make evidence` runs this, and a test fails where a page is not current.
"""

import ast
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REGION = re.compile(r"^<!-- shows (.+?) -->\n.*?^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^```\{(?:literalinclude|include)\} (\S+)\n((?::\w+:.*\n)*)```$", re.MULTILINE)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERDICTS = re.compile(r"^\| source \|(.+)\|\n(?:\|.*\n)*?\| \*\*all\*\* \|(.+)\|$", re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml"}
SINGULAR = {"shifts": "shift", "streams": "stream", "adapters": "adapter", "measures": "measure",
            "analyses": "analysis"}  # fmt: skip


def pages() -> Iterator[Path]:
    """Yield every page of the documentation but those that are parts of others."""
    for path in sorted(DOCS.rglob("*.md")):
        inside = path.relative_to(DOCS).parts
        if inside[0] != "_build" and inside[:2] != ("evidence", "results"):
            yield path


def current(path: Path) -> str:
    """Return a page with everything it shows as it is now."""
    text = DIRECTIVE.sub(_comments, path.read_text("utf-8"))
    return REGION.sub(lambda match: _region(match[1], path.parent, TOCTREE.findall(text)), text)


def _comments(match: re.Match[str]) -> str:
    name = re.search(r"^:pyobject: (\w+)$", match[2], re.MULTILINE)
    what = f"{match[1]} {name[1]}" if name else match[1]
    return f"<!-- shows {what} -->\n<!-- end of {what} -->"


def _region(what: str, folder: Path, toctrees: list[str]) -> str:
    if kind := re.fullmatch(r"laws of (\w+)", what):
        shown = _laws(kind[1])
    elif file := re.fullmatch(r"verdicts of (\S+)", what):
        shown = _verdicts(folder / file[1])
    elif number := re.fullmatch(r"contents (\d+)", what):
        shown = _links(toctrees[int(number[1]) - 1], folder)
    else:
        shown = _content(*what.split(" "), folder=folder)
    return f"<!-- shows {what} -->\n\n{shown}\n\n<!-- end of {what} -->"


def _content(file: str, name: str = "", *, folder: Path) -> str:
    """Return a file, or what one of its names stands for, as Markdown."""
    path = folder / file
    text = path.read_text("utf-8").strip("\n")
    if path.suffix == ".md":
        return text
    if name:
        [node] = [each for each in ast.parse(text).body if getattr(each, "name", None) == name]
        text = "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
    return f"```{LANGUAGES.get(path.suffix, 'text')}\n{text}\n```"


def _links(toctree: str, folder: Path) -> str:
    """Return a link with its title for each page that a toctree names."""
    names = [line for line in toctree.splitlines() if line and not line.startswith(":")]
    found = [path for name in names for path in sorted(folder.glob(f"{name}.md"))]
    titles = {path: re.search(r"^# (.+)$", path.read_text("utf-8"), re.MULTILINE) for path in found}
    return "\n".join(f"- [{title[1]}]({path.relative_to(folder)})" for path, title in titles.items() if title)


def _verdicts(path: Path) -> str:
    """Return the sentence that the overview of the evidence amounts to."""
    rows = VERDICTS.search(path.read_text("utf-8"))
    if rows is None:
        raise SystemExit(f"{path} has no table of verdicts that ends with the row of all")
    names, counts = ([cell.strip(" *") for cell in row.split("|")] for row in rows.groups())
    every = dict(zip(names, counts, strict=True))
    total, errors = every.pop("rows"), every.pop("errors found")
    told = ", ".join(f"{number} {name}" for name, number in every.items())
    return f"{total} rows: {told}. {errors} errors were found in the sources."


def _laws(kind: str) -> str:
    """Return the laws of a kind, each with the sentence that states it."""
    laws = getattr(import_module(f"haptera.testing.{kind}"), f"{SINGULAR[kind].upper()}_LAWS")
    sentences = {law.__name__.replace("_", " "): (law.__doc__ or "").strip().splitlines()[0] for law in laws}
    return "\n".join(f"- **{name}**: {sentence}" for name, sentence in sentences.items())


def refresh() -> list[Path]:
    """Write the pages that are not current and return them."""
    stale = {path: text for path in pages() if (text := current(path)) != path.read_text("utf-8")}
    for path, text in stale.items():
        path.write_text(text, "utf-8")
    return list(stale)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    for page in refresh():
        print(f"{page.relative_to(ROOT)} written")
