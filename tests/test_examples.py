"""Every example runs as a user runs it, and finds what its docstring promises."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
SAYS = {
    "adapter_in_a_service.py": "black frames: outputs are finite: True",
    "import_predictions.py": "ridge on pixel_noise 3: accuracy",
    "my_own_adapter.py": "laws broken: none",
    "my_own_shift.py": "laws broken: none",
    "net.py": "net.safetensors",
    "study_in_python.py": "20 cells run, 0 found finished",
}


def python(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    # One thread: on a busy machine, several that wait for each other are many times slower.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_runs_and_says_what_it_found(script, tmp_path):
    done = python(EXAMPLES / script, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SAYS.get(script, "\n") in done.stdout


def test_scripts_are_short_enough_to_read_at_once():
    lengths = {script: len((EXAMPLES / script).read_text().splitlines()) for script in SCRIPTS}
    assert max(lengths.values()) < 60, lengths


def test_study_file_runs_and_a_second_run_finds_everything_finished(tmp_path):
    command = ["-m", "holdfast", "run", EXAMPLES / "study.toml", "--out", "audit", "--json"]
    first, second = python(*command, cwd=tmp_path), python(*command, cwd=tmp_path)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    ran, found = json.loads(first.stdout), json.loads(second.stdout)
    assert ran["ran"] == ran["cells"] > 0
    assert (found["ran"], found["kept"], found["failed"]) == (0, ran["cells"], 0)
