"""`haptera trends` as a user runs it."""

import json

import numpy as np
import pytest

from haptera.cli import main
from haptera.theory.known_models import ProbitModels

NAMES = [f"net-{place}" for place in range(9)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """This folder, with `a.npz` and `b.npz` with correctness, `a.csv` and `b.csv` with accuracies, and wrong ones."""
    monkeypatch.chdir(tmp_path)
    for name, right in zip("ab", ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400), strict=True):
        np.savez(tmp_path / f"{name}.npz", models=NAMES, correct=right)
        rows = [f"{model},{accuracy}" for model, accuracy in zip(NAMES, right.mean(1), strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["model,accuracy", *rows]))
    np.savez(tmp_path / "few.npz", models=NAMES[:2], correct=right[:2])
    np.savez(tmp_path / "twice.npz", models=[*NAMES[:8], NAMES[0]], correct=right)
    (tmp_path / "text.txt").write_text("no")
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command in this process: exit code, stdout and stderr."""

    def call(*arguments):
        code = 0
        try:
            main(["trends", *map(str, arguments)])
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return call


def test_a_summary_that_can_be_read(files, run):
    code, out, _ = run("a.npz", "b.npz", "--draws", 100)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "9 models, 600 and 400 examples"
    assert [line.split()[0] for line in lines if not line.startswith(" ")][1:5] == [
        "line",
        "fit",
        "similar",
        "close",
    ]


def test_the_number_of_examples_is_asked_for_and_can_be_given(files, run):
    code, out, _ = run("a.csv", "b.csv", "--draws", 100)
    assert code == 0
    assert "robustness has no interval" in out
    assert "--n REFERENCE SHIFTED" in out
    code, out, _ = run("a.csv", "b.csv", "--draws", 100, "--n", 600, 400)
    assert code == 0
    assert out.splitlines()[0] == "9 models, 600 and 400 examples"
    code, _, err = run("a.npz", "b.csv", "--n", 500, 400)
    assert code == 2
    assert "a.npz itself says 600" in err


def test_one_json_object_and_nothing_else(files, run):
    _, out, err = run("a.npz", "b.npz", "--json", "--wedge", 0.3, 0.4, 0.01, 0.02, "--draws", 100)
    content = json.loads(out)
    assert content["models"] == 9
    assert content["events"]["wedge"] == [0.3, 0.4, 0.01, 0.02]
    assert content["events"]["count"] == 504
    assert err == ""


def test_a_page_is_written(files, run):
    code, out, _ = run("a.csv", "b.csv", "--out", "found", "--draws", 100, "--json")
    assert code == 0
    assert json.loads(out)["files"]["report"] == "found/report.html"
    assert "</html>" in (files / "found" / "report.html").read_text()


def test_left_over_models_are_named(files, run):
    (files / "fewer.csv").write_text("\n".join((files / "b.csv").read_text().splitlines()[:-1]))
    _, out, _ = run("a.csv", "fewer.csv", "--draws", 50)
    assert "1 left out, which only a.csv has: net-8" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.npz", "few.npz"], "2 models in common"),
        (["a.npz", "twice.npz"], "'net-0' comes 2 times"),
        (["a.npz", "c.npz"], "there is no file or folder c.npz"),
        (["a.npz", "text.txt"], "text.txt is not an .npz file"),
        (["a.npz", "b.npz", "--fit", "probbit"], "did you mean 'probit'"),
        (["a.npz", "b.npz", "--model", "net-12"], "unknown model 'net-12'"),
        (["a.npz", "b.npz", "--switch", "1"], "the switch is at model 1 of 9"),
        (["a.npz", "b.npz", "--wedge", "0.1", "0.1", "-1", "0"], "none below 0"),
        (["a.npz", "b.npz", "--out", "text.txt"], "cannot write"),
    ],
)
def test_a_mistake_is_one_clear_message(files, run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
