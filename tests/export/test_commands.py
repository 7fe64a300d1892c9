"""`haptera export`: the same from the command line, and what is missing in one sentence."""

import sys

import pytest
from tests.commands import call
from tests.export.conftest import forget_last_cell

COMMANDS = [
    ("mlflow", "mlflow", []),
    ("wandb", "wandb", []),
    ("tensorboard", "tensorboardX", ["--out", "events"]),
    ("card", "yaml", []),
]


@pytest.mark.long
@pytest.mark.parametrize(("command", "package", "options"), COMMANDS)
def test_a_missing_package_is_one_sentence(study, monkeypatch, tmp_path, capsys, command, package, options):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert call("export", command, study, *options) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == f"error: export {command} needs {package}, which is not installed: pip install 'haptera[export]'"


@pytest.mark.long
def test_events_are_written_and_a_stopped_study_is_said(own_study, tmp_path, capsys):
    forget_last_cell(own_study)
    out = tmp_path / "events"
    assert call("export", "tensorboard", own_study, "--out", out, "--measure", "accuracy", "--no-steps") == 0
    said = capsys.readouterr()
    assert said.out == f"3 runs written: {out}\n"
    assert "warning: 1 of 6 cells have not been run yet" in said.err
    assert call("export", "tensorboard", own_study, "--out", out, "--measure", "accuracy", "--no-steps", "--quiet") == 0
    said = capsys.readouterr()
    assert said.out == f"0 runs written, 3 there already: {out}\n"
    assert said.err == ""


@pytest.mark.long
def test_a_card_is_printed_written_and_updated(study, tmp_path, capsys):
    assert call("export", "card", study) == 0
    printed = capsys.readouterr().out
    path = tmp_path / "README.md"
    assert call("export", "card", study, "--out", path) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text() == printed
    assert call("export", "card", study, "--update", path) == 0
    assert path.read_text() == printed
    assert call("export", "card", study, "--update", path, "--out", path) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mlflow", "nothing"], "there is no folder nothing"),
        (["wandb", "{study}", "--mode", "on"], "unknown mode 'on'"),
        (["tensorboard", "{study}", "--out", "{study}/plan.json"], "it is a file, a folder was expected"),
        (["tensorboard", "{study}", "--out", "x", "--measure", "acuracy"], "did you mean 'accuracy'?"),
    ],
)
def test_wrong_words_are_refused(study, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert call("export", *(word.replace("{study}", str(study)) for word in words)) == 2
    assert message in capsys.readouterr().err
