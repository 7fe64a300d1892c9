"""A shell that asks how to complete a line is told commands, options of the command on the line, and nothing else."""

import os
import subprocess
import sys

import pytest


def completed(shell: str, line: str) -> list[str]:
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
    }[shell]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['haptera']; from haptera.cli import main; main()"],
        env=os.environ | asked | {"_HAPTERA_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return done.stdout.split("\n")


@pytest.mark.long
def test_commands_are_completed():
    assert [word for word in completed("bash", "haptera tr") if word] == ["transform", "trends"]


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_options_of_the_command_on_the_line_are_completed(shell):
    said = "\n".join(completed(shell, "haptera trends clean.npz --wed"))
    assert "--wedge" in said
    assert "--model" not in said
