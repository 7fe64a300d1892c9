"""Guides by question: run every command of a page of `docs/questions`, in order, and write what it prints below it.

`python tools/guides.py [NAME ...]` runs the pages, each in a temporary folder that also holds `examples/` as a clone
does, and replaces the output in their console blocks; `tests/tools/test_guides.py` follows them in the same way. A
command that ends with another code than 0 is followed by a line that says so.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "docs" / "questions"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def page_steps(path: Path) -> list[Step]:
    """Return all commands of a page."""
    return [step for block in CONSOLE.findall(path.read_text("utf-8")) for step in steps(block)]


def run(step: Step, folder: Path) -> str:
    """Run one command as somebody would who copies it, and return what it prints, with the exit code if it is not 0."""
    program, *words = step.words
    start = {"haptera": [sys.executable, "-m", "haptera"], "python": [sys.executable]}[program]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "110", "NO_COLOR": "1", "GITHUB_ACTIONS": ""}
    environment["PYTHONPATH"] = str(ROOT / "src")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*start, *words], cwd=folder, env=environment, **pipes, text=True, check=False)
    text = "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").splitlines())
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

        path.write_text(CONSOLE.sub(replace, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    for page in sys.argv[1:] or sorted(path.stem for path in QUESTIONS.glob("*.md") if path.stem != "index"):
        print(page, flush=True)
        refresh(QUESTIONS / f"{page}.md")
