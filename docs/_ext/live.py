"""Two directives that cannot go stale: what commands print, and which laws there are.

`prints` runs each line of its content in one temporary folder, which also holds `examples/`, and shows the commands
with what they printed. `laws` lists the laws of one kind with the first line of their docstrings.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

EXAMPLES = Path(__file__).parents[2] / "examples"


class Prints(SphinxDirective):
    """Commands and their output; `:exit:` is the exit code that the last one must have, 0 by default."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Run every line and show it."""
        lines: list[str] = []
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("examples").symlink_to(EXAMPLES)
            for place, command in enumerate(self.content, 1):
                code, text = _run(shlex.split(command))
                expected = self.options.get("exit", 0) if place == len(self.content) else 0
                if code != expected:
                    raise self.error(f"{command!r} ended with {code}, {expected} was expected: {text}")
                lines += [f"$ {command}", *(line.rstrip() for line in text.strip("\n").splitlines()), ""]
        text = "\n".join(lines).rstrip()
        return [nodes.literal_block(text, text, language="text")]


class Laws(SphinxDirective):
    """The laws of `shifts`, `streams`, `adapters` or `measures`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One entry for each law, with the sentence that states it."""
        kind = self.arguments[0]
        laws = getattr(import_module(f"holdfast.testing.{kind}"), f"{kind.removesuffix('s').upper()}_LAWS")
        entries = nodes.definition_list()
        for law in laws:
            sentence, _ = self.parse_inline((law.__doc__ or "").strip().splitlines()[0])
            term = nodes.term("", law.__name__.replace("_", " "))
            entries += nodes.definition_list_item(
                "", term, nodes.definition("", nodes.paragraph("", "", *sentence))
            )
        return [entries]


def _run(words: list[str]) -> tuple[int, str]:
    """Exit code and output; a command of holdfast runs in this process, which has paid for the imports already."""
    if words[0] == "holdfast":
        from holdfast.cli import app

        done = CliRunner().invoke(app, words[1:], prog_name="holdfast", env={"COLUMNS": "96"})
        return done.exit_code, done.output + (f"error: {done.exception}" if done.exit_code and done.exception else "")
    assert words[0] == "python", words
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, env=environment, check=False)
    return ended.returncode, ended.stdout + (ended.stderr if ended.returncode else "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("prints", Prints)
    app.add_directive("laws", Laws)
    return {"parallel_read_safe": False}
