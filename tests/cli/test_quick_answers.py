"""`--help` and `list` answer without the heavy libraries, and exit codes are as promised."""

import json
import subprocess
import sys

import pytest

from haptera.catalog import entries
from haptera.cli import COMMANDS

POSE = ("train", "predict", "score", "audit")
HEAVY = ["torch", "pandas", "plotly", "numpy", "scipy", "sklearn"]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["list"], ["list", "adapters"], ["--version"]]
    + [[name, "--help"] for name in ("dependencies", "diagnose", "stability", "trends")],
)
def test_no_heavy_library_is_imported(arguments):
    script = f"""
import sys
from haptera.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [*COMMANDS, *entries("analyses"), *(f"pose {each}" for each in POSE)])
def test_every_command_has_help(haptera, command):
    assert haptera(*command.split(), "--help").returncode == 0


def test_list_shows_every_kind_and_one(haptera):
    everything = haptera("list").stdout
    assert all(word in everything for word in ("gaussian_noise", "corruptions", "batchnorm", "accuracy", "resnet"))
    assert set(json.loads(haptera("list", "shifts", "--json").stdout)) == {"shifts"}
    wrong = haptera("list", "shift")
    assert wrong.returncode == 2
    assert "did you mean 'shifts'" in wrong.stderr


@pytest.mark.long
def test_check_tells_kept_from_broken_and_ends_with_1(haptera, folder):
    assert haptera("check", "contrast").returncode == 0
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from haptera.shifts import Shift\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Shift):\n"
        "    name = 'mine'\n"
        "    def apply(self, images, random):\n"
        "        return images + len(images) / 100\n"
    )
    done = haptera("check", "mine.py:Mine")
    assert done.returncode == 1
    assert "broken  does not depend on batches: batches of 1 give other images" in done.stdout
    assert json.loads(haptera.apart("check", "mine:Mine", "--json").stdout)["broken"]


@pytest.mark.parametrize("typo", [["rnu"], ["run", "--modle", "x"], ["report"]])
def test_wrong_usage_ends_with_2(haptera, typo):
    done = haptera(*typo)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
