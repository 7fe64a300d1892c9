"""Results that are older than the code that makes them: a note on every page of the evidence that shows one.

`docs/evidence/made_by.toml` says which script makes which result. The code of a result is that script, the files beside
it that it imports, and the modules of haptera that define what these import by name: one level deep, so that a change
which cannot matter seldom marks anything. Times are those of commits. Where git knows nothing, nothing is marked and
the build says so. See decision 0013.
"""

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
LISTS = {"src/haptera/catalog.py"}
"""Files that only name parts, so that a new part is no change of the others."""


@cache
def commit_times(root: Path = ROOT) -> dict[str, int]:
    """Return the time of the last commit of every file, in one pass over the history; empty without git."""
    words = ["git", "-C", str(root), "log", "--format=@%ct", "--name-only", "--no-renames"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    times: dict[str, int] = {}
    time = 0
    for line in filter(None, done.stdout.splitlines()):
        if line.startswith("@"):
            time = int(line[1:])
        else:
            times.setdefault(line, time)
    return times


def code_of(script: Path, root: Path = ROOT) -> set[Path]:
    """Return the script, what it imports from its folder, and the files of haptera that define what these import."""
    files = {script}
    waiting = [script]
    while waiting:
        for module, name in _imports(waiting.pop()):
            beside = script.parent / f"{module}.py"
            if beside.is_file() and beside not in files:
                files.add(beside)
                waiting.append(beside)
            elif module.split(".")[0] == "haptera" and (path := _defining(module, name, root / "src")):
                files.add(path)
    return files


def older_results(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the results that are older than their code, each with the files that changed since."""
    times = commit_times(root)
    made_by = tomllib.loads((root / "docs" / "evidence" / "made_by.toml").read_text("utf-8"))
    older: dict[str, list[str]] = {}
    for script, results in made_by.items():
        code = sorted({str(path.relative_to(root)) for path in code_of(root / script, root)} - LISTS)
        for result in results:
            made = times.get(f"docs/evidence/results/{result}")
            since = [path for path in code if made is not None and times.get(path, 0) > made]
            if since:
                older[result] = since
    return older


def note(text: str, older: dict[str, list[str]]) -> str:
    """Return the page with a note below its title, if it shows or quotes an older result."""
    shown = [result for result in sorted(older) if re.search(rf"results/{re.escape(result)}\b", text)]
    if not shown:
        return text
    lines = [f"- `{result}`: {_list(older[result])}" for result in shown]
    block = "\n".join(["", "```{admonition} Older than its code", ":class: caution", "", *lines, "```", ""])
    return re.sub(r"^(# .*\n)", lambda match: match[1] + block, text, count=1, flags=re.MULTILINE)


def _list(paths: list[str]) -> str:
    named = ", ".join(f"`{path}`" for path in paths[:3])
    return f"{named} and {len(paths) - 3} more changed since" if len(paths) > 3 else f"{named} changed since"


def _imports(path: Path) -> list[tuple[str, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
    return found


def _defining(module: str, name: str, package: Path) -> Path | None:
    """Return the file of a module, or of what a package's `__init__` takes from another module under that name."""
    place = package / module.replace(".", "/")
    if place.with_suffix(".py").is_file():
        return place.with_suffix(".py")
    if (place / f"{name}.py").is_file():
        return place / f"{name}.py"
    start = place / "__init__.py"
    if start.is_file():
        for origin, own in _imports(start):
            if own == name and origin != module:
                return _defining(origin, name, package)
    return None


def setup(app: Any) -> dict[str, Any]:
    """Put the note on pages of the evidence when they are read."""
    from sphinx.util import logging

    older = older_results() if commit_times() else {}
    if not commit_times():
        logging.getLogger(__name__).info("no git history: results that are older than their code are not marked")

    def mark(_: Any, docname: str, source: list[str]) -> None:
        if docname.startswith("evidence/"):
            source[0] = note(_with_files(docname, source[0]), older)

    app.connect("source-read", mark)
    return {"parallel_read_safe": True}


def _with_files(docname: str, text: str) -> str:
    """Return the page; one of a source quotes the results that its rows name, as a comment."""
    rows = EVIDENCE / f"{docname.removeprefix('evidence/')}.toml"
    if not rows.is_file():
        return text
    files = sorted({row["file"] for row in _rows(rows) if "results/" in row.get("file", "")})
    return text + "".join(f"\n% {file}" for file in files) + "\n"


def _rows(path: Path) -> list[dict[str, Any]]:
    content = tomllib.loads(path.read_text("utf-8"))
    return [*content.get("rows", []), content.get("defaults", {})]
