"""`haptera gate` as the operator types it, and as a build does."""

import json
import subprocess
import sys

import numpy as np
import pytest

from recorded_studies import answers, change, plant, record

STUDY = """
data = "data.npz"
[[models]]
build = "net.py:build"
[[streams]]
use = "corruptions"
shifts = ["contrast"]
severities = [1, 5]
"""


@pytest.fixture
def studies(folder):
    """In the folder: `released`, `same` and `worse`."""
    generator = np.random.default_rng(0)
    before = answers(generator, images=600)
    record(folder / "released", before)
    record(folder / "same", change(generator, before, 0.02))
    record(folder / "worse", plant(generator, before, [("contrast", 4), ("contrast", 5)], 0.1))
    return folder


def test_what_fell_is_said_and_the_build_fails(haptera, studies):
    done = haptera("gate", "worse", "--baseline", "released", "--out", "gate", "--junit", "junit.xml")
    assert done.returncode == 1
    verdict = next(line for line in done.stdout.splitlines() if line.startswith("FAIL"))
    assert verdict.startswith("FAIL        contrast 4-5: accuracy .")
    assert "(paired difference -.10, -." in verdict
    assert verdict.endswith("after correction for 10 comparisons); all others within noise")
    for name in ("gate/report.html", "gate/table.parquet", "gate/result.json", "junit.xml"):
        assert (studies / name).is_file()


def test_a_candidate_that_is_as_good_ends_with_0(haptera, studies):
    done = haptera("gate", "same", "--baseline", "released")
    assert done.returncode == 0
    assert "PASS        all 10 comparisons within noise" in done.stdout


def test_with_json_annotations_leave_stdout_alone(haptera, studies, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(studies / "summary.md"))
    done = haptera("gate", "worse", "--baseline", "released", "--json")
    content = json.loads(done.stdout)
    assert content["passed"] is False
    assert content["falls"]["contrast 4-5"]["difference"] == pytest.approx(-0.1)
    assert done.stderr.startswith("::error title=haptera gate::contrast 4-5: ")
    assert "worse fails against released" in (studies / "summary.md").read_text(encoding="utf-8")


def test_elsewhere_than_on_github_there_are_no_annotations(haptera, studies, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert "::" not in haptera("gate", "worse", "--baseline", "released").stderr


@pytest.mark.long
def test_a_folder_with_a_study_file_is_run_within_the_budget(haptera, folder):
    (folder / "study.toml").write_text(STUDY)
    assert haptera("run", "study.toml", "--out", "released", "--no-check").returncode == 0
    done = haptera("gate", ".", "--baseline", "released", "--minutes", "5", "--drop", "0.5", "--json")
    content = json.loads(done.stdout)
    assert content["comparisons"] == 2
    assert content["answers"] <= 80
    whole = haptera("gate", "study.toml", "--baseline", "released")
    assert whole.returncode == 2
    assert "has not been run; run it (haptera run study.toml --out FOLDER)" in whole.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--baseline", "released"], "there is no folder nowhere"),
        (["same", "--baseline", "nowhere"], "there is no folder nowhere"),
        (["same"], "give a baseline, or bars such as accuracy=0.8"),
        (["same", "--baseline", "net.py"], "there is no folder net.py"),
        (["same", "--baseline", "empty"], "empty is not a folder of a study: it has no plan.json"),
        (["empty", "--baseline", "released", "--quick"], "it has neither plan.json nor study.toml"),
        (["nowhere.toml", "--baseline", "released", "--quick"], "there is no such file"),
        (["same", "--baseline", "released", "--bar", "accuracy>0.8"], "the bar 'accuracy>0.8' cannot be read"),
        (["same", "--baseline", "released", "--tolerance", "2"], "tolerance is 2.0; a number from 0 to 1 was expected"),
        (["same", "--baseline", "released", "--data", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(haptera, studies, arguments, message):
    (studies / "empty").mkdir()
    done = haptera("gate", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_does_not_import_torch():
    code = (
        "import sys; from haptera.cli import app_for; app_for('gate'); print(*({'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
