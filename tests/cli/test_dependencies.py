"""`haptera dependencies` as a user runs it: text, JSON, report, and mistakes."""

import json

import numpy as np
import pytest
from tests.commands import call


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 6, 400)
    logits = generator.standard_normal((400, 6)) + 2 * np.eye(6)[targets]
    logits[:, 5] = logits[:, 0] + logits[:, 1]
    names = ["cat", "dog", "eel", "fox", "gnu", "hen"]
    np.savez("net.npz", logits=logits, targets=targets, classes=names)
    np.savez("other.npz", logits=logits[:, ::-1] + generator.standard_normal((400, 6)), targets=targets)
    return tmp_path


def test_text_says_what_was_found(here, capsys):
    assert call("dependencies", "net.npz") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("400 examples, 6 classes of net.npz; fitted on one half, evaluated on the other")
    assert [line.split()[0] for line in lines if not line.startswith(" ")][1:] == [
        "verdict", "few", "strongest", "edges", "rank", "redundant", "lasso", "cost", "cutting", "theorems",
        "conjecture",
    ]  # fmt: skip
    assert any("5 of 6: the null space has 1 direction" in line for line in lines)


def test_json_is_one_object_and_nothing_else(here, capsys):
    assert call("dependencies", "net.npz", "--alpha", "0.1", "--json", "--out", "found") == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content) >= {
        "rank", "precision", "fitted_on", "notes", "kkt_violation", "dependencies", "accuracy", "names", "files",
    }  # fmt: skip
    assert (content["precision"], content["fitted_on"], content["notes"]) == ("float64", "half", [])
    assert content["rank"] == 5
    assert len(content["dependencies"]) == 6
    hen = content["dependencies"][5]
    assert {content["names"][on] for on, _ in hen["on"][:2]} == {"cat", "dog"}
    assert hen["redundancy"] == 0
    assert {"images", "own_accuracy", "own_accuracy_derived", "accuracy_derived"} <= set(hen)
    assert sum(row["images"] for row in content["dependencies"]) == 200
    assert (here / "found" / "report.html").stat().st_size > 10_000


def test_per_class_and_onto(here, capsys):
    assert call("dependencies", "net.npz", "--onto", "other.npz", "--per-class", "2", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert {len(row["on"]) for row in content["dependencies"]} == {2}
    assert all(row["class"] not in [on for on, _ in row["on"]] for row in content["dependencies"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.npz", "--alpha", "1", "--per-class", "3"], "give one of them"),
        (["net.npz", "--alpha", "0"], "alpha is 0"),
        (["net.npz", "--per-class", "0"], "per_class is 0"),
        (["net.npz", "--fit-on", "al"], "did you mean 'all'"),
        (["nett.npz"], "did you mean 'net.npz'"),
        (["net.npz", "--onto", "otter.npz"], "did you mean 'other.npz'"),
        (["net.npz", "--out", "net.npz/found"], "cannot write"),
    ],
)
def test_a_mistake_is_one_message_and_2(here, arguments, message, capsys):
    assert call("dependencies", *arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


@pytest.mark.long
def test_torch_is_not_imported(here):
    import subprocess
    import sys

    code = (
        "import sys; from haptera.cli import main\n"
        "try: main(['dependencies', 'net.npz', '--json'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here)
    assert done.stdout.splitlines()[-1] == "[]"
