"""Every example runs, and finds what its docstring promises."""

import json
import os
import runpy
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
NEEDS = dict.fromkeys(["accuracy_by_severity.py", "ccc_on_a_trained_model.py"], "cifar10.npz")
"""Tested by themselves, where the data is."""
SAYS = {
    "attribution_map.py": "inverted_jacobian  auROC",
    "adapter_in_a_service.py": "black frames: outputs are finite: True",
    "contact_sheet.py": "19 corruptions at 6 severities",
    "corrupted_loader.py": "two workers, shuffled, equal one worker in order: True",
    "embedding_with_controls.py": "one ring (1, 1, 0)",
    "cut_a_dependency.py": "the coefficient was",
    "dependencies_of_a_network.py": "classes can go together for one point of accuracy",
    "fastapi_service.py": "step 40: the stream has changed since step 2",
    "import_predictions.py": "ridge on pixel_noise 3: accuracy",
    "my_own_adapter.py": "laws broken: none",
    "my_own_analysis.py": "laws broken: none",
    "my_own_method.py": "laws broken: none",
    "my_own_shift.py": "laws broken: none",
    "net.py": "net.safetensors",
    "pose_of_new_individuals.py": "wrote scores/report.html and predictions.csv",
    "small_theories.py": "0 of them where none was promised",
    "stability_of_networks.py": "the image moves alike: True",
    "study_in_python.py": "20 cells run, 0 found finished",
    "trends_of_classifiers.py": "11 models, 897 and 897 examples, the same on both sides",
}


@pytest.fixture
def run_example(tmp_path, monkeypatch, capsys):
    """Runs a script as `python script.py FOLDER` does, in this process; what it printed, and its exit code."""

    def run(script):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(EXAMPLES)
        monkeypatch.setattr(sys, "argv", [script, str(tmp_path)])
        try:
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        except SystemExit as end:
            return capsys.readouterr().out, end.code
        return capsys.readouterr().out, 0

    return run


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in NEEDS])
def test_script_runs_and_says_what_it_found(script, run_example):
    said, code = run_example(script)
    assert not code
    assert SAYS.get(script, "\n") in said


@pytest.mark.parametrize("script", NEEDS)
def test_script_without_its_data_says_what_is_missing(script, tmp_path, monkeypatch, run_example):
    monkeypatch.setenv("HAPTERA_DATA", str(tmp_path))
    _, code = run_example(script)
    assert str(code).startswith(f"there is no {tmp_path / NEEDS[script]}; ")


@pytest.mark.real
def test_accuracy_falls_with_severity_but_where_the_published_constants_do_not_grow(tmp_path, run_example):
    script = "accuracy_by_severity.py"
    if not (DATA / NEEDS[script]).is_file():
        pytest.skip(f"there is no {DATA / NEEDS[script]}")
    assert not run_example(script)[1]  # it may have to train first
    frame = pd.read_csv(tmp_path / "accuracy_by_severity.csv")
    clean = frame[frame["stream"] == "clean"].iloc[0]
    assert clean["value"] > 0.75
    clearly = set()
    for (_, shift), rows in frame[frame["stream"] != "clean"].groupby(["stream", "shift"]):
        rows = rows.sort_values("severity")
        assert list(rows["severity"]) == [1, 2, 3, 4, 5]
        assert rows["high"].iloc[-1] < clean["low"]
        if (rows["low"].to_numpy()[1:] > rows["high"].to_numpy()[:-1]).any():
            clearly.add(shift)
    assert clearly <= {"glass_blur", "saturate", "spatter", "elastic_transform"}


@pytest.mark.real
def test_a_walk_is_as_hard_as_it_was_meant_to_be_wherever_the_calibration_allows_it(tmp_path, run_example):
    script = "ccc_on_a_trained_model.py"
    if not (DATA / NEEDS[script]).is_file():
        pytest.skip(f"there is no {DATA / NEEDS[script]}")
    assert not run_example(script)[1]  # it calibrates, and may have to train first
    walk = pd.read_csv(tmp_path / "ccc_walk.csv")
    assert (len(walk), walk["start"].iloc[-1]) == (50, 49_000)
    target = walk["target"].iloc[0]
    pairs = [walk.iloc[place : place + 2] for place in range(0, 50, 2)]  # windows of 2,000 images
    near = [pair for pair in pairs if abs(pair["expected"].mean() - target) <= 0.05]
    assert len(near) >= 20
    assert all(abs(pair["accuracy"].mean() - target) <= 0.05 for pair in near)
    ends = [place + 1 for place in range(50) if walk["severity_1"][place] == 0]
    paths = [walk.iloc[start:end] for start, end in pairwise([0, *ends])]
    near = [path for path in paths if abs(path["expected"].mean() - target) <= 0.02]
    assert len(near) >= 3
    assert all(abs(path["accuracy"].mean() - target) <= 0.02 for path in near)


def test_scripts_are_short_enough_to_read_at_once():
    lengths = {script: len((EXAMPLES / script).read_text().splitlines()) for script in SCRIPTS}
    assert max(lengths.values()) <= 60, lengths


def test_study_file_runs_and_a_second_run_finds_everything_finished(haptera):
    command = ["run", EXAMPLES / "study.toml", "--out", "audit", "--json"]
    first, second = haptera(*command), haptera(*command)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    ran, found = json.loads(first.stdout), json.loads(second.stdout)
    assert ran["ran"] == ran["cells"] > 0
    assert (found["ran"], found["kept"], found["failed"]) == (0, ran["cells"], 0)
