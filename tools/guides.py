"""Guides: run the commands of a page, in order, and write what each prints below it.

Those are all commands of the guides by question, and on other pages those of console blocks that begin with the comment
`<!-- prints -->`; a directive `{prints}`, which the build would run, becomes such a block. `python tools/guides.py
[PAGE ...]` runs pages, such as `questions/new-camera` or `guides/pose`, each in a temporary folder that also holds
`examples/` as a clone does; without names, all. `tests/tools/test_guides.py` follows them in the same way. A command
that ends with another code than 0 is followed by a line that says so.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from haptera.cli.say import fold

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
QUESTIONS = DOCS / "questions"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKED = re.compile(r"(?<=^<!-- prints -->\n)```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^```\{prints\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 92
"""Characters that a page of the site is wide."""
INSTALLED = "import sys; sys.argv[0] = 'haptera'; from haptera.__main__ import run; run()"
"""What the installed script does, so that a command calls itself `haptera`, and nothing it prints is changed."""


@dataclass(frozen=True)
class Step:
    """A command of a page as it is written there, and what stands below it."""

    command: str
    output: str

    @property
    def words(self) -> list[str]:
        """Return the words of the command, lines that end in a backslash joined."""
        return shlex.split(self.command.replace("\\\n", " "))


def steps(block: str) -> list[Step]:
    """Return the commands of a console block, each with the lines below it."""
    parts = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [Step(command, output) for command, output in parts]


def pages() -> list[Path]:
    """Return all pages with commands that are run: the guides by question, and those with marked blocks."""
    every = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts and path.stem != "index"]
    return [path for path in every if _blocks(path).search(_marked(path.read_text("utf-8")))]


def page_steps(path: Path) -> list[Step]:
    """Return all commands of a page that are run."""
    return [step for block in _blocks(path).findall(path.read_text("utf-8")) for step in steps(block)]


def _marked(text: str) -> str:
    """Return a page with its directives as marked blocks, still without output."""

    def block(match: re.Match[str]) -> str:
        commands = re.split(r"(?<!\\)\n", match[1].rstrip("\n"))
        return "<!-- prints -->\n```console\n" + "".join(f"$ {command}\n" for command in commands) + "```"

    return DIRECTIVE.sub(block, text)


def _blocks(path: Path) -> re.Pattern[str]:
    return CONSOLE if path.parent == QUESTIONS else MARKED


def run(step: Step, folder: Path) -> str:
    """Run one command as somebody would who copies it, and return what it prints, with the exit code if it is not 0."""
    program, *words = step.words
    start = {"haptera": [sys.executable, "-c", INSTALLED], "python": [sys.executable]}[program]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": str(WIDTH), "NO_COLOR": "1", "GITHUB_ACTIONS": ""}
    environment["PYTHONPATH"] = str(ROOT / "src")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*start, *words], cwd=folder, env=environment, **pipes, text=True, check=False)
    text = "".join(f"{line}\n" for line in fold(done.stdout.strip("\n"), WIDTH).splitlines())
    return text + (f"[exit code {done.returncode}]\n" if done.returncode else "")


def clone(folder: Path) -> None:
    """Make a folder look like the clone that commands are copied into."""
    (folder / "examples").symlink_to(ROOT / "examples")


def refresh(path: Path) -> None:
    """Run a page and write what its commands print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clone(folder)

        def replace(match: re.Match[str]) -> str:
            lines = [f"$ {step.command}\n{run(step, folder)}" for step in steps(match[1])]
            return "```console\n" + "".join(lines) + "```"

        path.write_text(_blocks(path).sub(replace, _marked(path.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    for page in [DOCS / f"{name}.md" for name in sys.argv[1:]] or pages():
        print(page.relative_to(DOCS), flush=True)
        refresh(page)
