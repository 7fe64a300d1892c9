"""A directive for commands whose output is not stored yet: the build runs them and shows what they print.

`prints` runs the commands of its content, one after the other, in a temporary folder that also holds `examples/`; a
command goes on after a backslash. `make guides` turns it into a block with the output in the page, which is quicker to
build and reads well without a build (decision 15).
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

WIDTH = 92
EXAMPLES = Path(__file__).parents[2] / "examples"


class Prints(SphinxDirective):
    """Commands and their output; one that fails is an error of the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run every line and show it."""
        lines: list[str] = []
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("examples").symlink_to(EXAMPLES)
            for command in re.split(r"(?<!\\)\n", "\n".join(self.content)):
                code, text = _run(shlex.split(command.replace("\\\n", " ")))
                if code:
                    raise self.error(f"{command!r} ended with {code}: {text}")
                lines += [f"$ {command}", *_folded(text), ""]
        text = "\n".join(lines).rstrip()
        return [nodes.literal_block(text, text, language="text")]


def _folded(text: str) -> list[str]:
    """The lines of an output, no longer than the page is wide."""
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return [part for line in lines for part in (textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line])]


def _run(words: list[str]) -> tuple[int, str]:
    """Exit code and output; a command of haptera runs in this process, which has paid for the imports already."""
    if words[0] == "haptera":
        from haptera.cli import app_for

        done = CliRunner().invoke(app_for(words[1]), words[1:], prog_name="haptera", env={"COLUMNS": str(WIDTH)})
        return done.exit_code, done.output + (f"error: {done.exception}" if done.exit_code and done.exception else "")
    assert words[0] == "python", words
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, env=environment, check=False)
    return ended.returncode, ended.stdout + (ended.stderr if ended.returncode else "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("prints", Prints)
    return {"parallel_read_safe": False}
