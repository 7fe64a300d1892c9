"""`haptera tune`: what is printed and written, the same again, and refusals with their exit codes."""

import json
import tomllib

import pandas as pd
import pytest
from tests.commands import call

from haptera.files.toml import write_toml

TUNE = ["tune", "--model", "net.py:build", "--data", "data.npz", "--out", "tuned", "--severities", "5"]
GRID = ["--adapter", "tent", "--grid", "lr=1e-2,10", "--grid", "momentum=0,0.9"]


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.long
def test_tune_then_the_same_again_then_run_what_was_chosen(folder, capsys):
    assert call(*TUNE, *GRID, "--seeds", "0,1", "--json", "--quiet") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["ran"], said["kept"], said["failed"]) == (5 * 4 * 2, 0, 0)
    tried = pd.read_csv(folder / "tuned" / "tried.csv")
    assert len(tried) == len(said["tried"]) == 5
    ranked = tried.dropna(subset="rank")
    best = ranked.loc[ranked["error"].idxmin()]
    assert said["best"] == {"lr": best["lr"], "momentum": best["momentum"]}
    assert said["error"] == pytest.approx(ranked["error"].min())
    assert {row["left_out"] for row in said["leave_one_out"]} == {
        "speckle_noise",
        "gaussian_blur",
        "spatter",
        "saturate",
    }

    assert call(*TUNE, *GRID, "--seed", "0", "--seed", "1") == 0
    again = capsys.readouterr().out
    assert "0 cells run, 40 found finished, 0 failed; see them with: haptera report tuned" in again
    assert f"chosen        {best['setting']}: mean error {best['error']:.4f}" in again
    assert "test it with: haptera run tuned/chosen.toml --out DIR" in again

    content = tomllib.loads((folder / "tuned" / "chosen.toml").read_text())
    assert content["adapters"][1] == {"use": "tent", **said["best"]}
    assert content["streams"] == [{"use": "clean"}, {"use": "corruptions"}]
    write_toml(folder / "tuned" / "brief.toml", content | {"streams": [{"use": "clean"}]})
    assert call("run", "tuned/brief.toml", "--out", "test", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["ran"] == 2 * 2


@pytest.mark.long
def test_a_study_file_finds_an_adapter_of_ones_own_and_names_what_stays(folder, capsys):
    (folder / "mine.py").write_text("from haptera.adapters import BatchNorm\nclass Mine(BatchNorm):\n    pass\n")
    chosen = ["--adapter", "mine.py:Mine:statistics=batch", "--grid", "prior=0,8", "--shift", "spatter"]
    assert call(*TUNE, *chosen, "--batch-size", "8", "--quiet") == 0
    assert "Mine:statistics=batch on spatter at severity 5; seed 0, batches of 8" in capsys.readouterr().out
    content = tomllib.loads((folder / "tuned" / "chosen.toml").read_text())
    assert content["adapters"][1]["use"] == "../mine.py:Mine"
    assert content["adapters"][1]["statistics"] == "batch"
    assert content["models"] == [{"build": "../net.py:build", "arguments": {}}]
    assert content["data"] == {"path": "../data.npz"}


@pytest.mark.long
def test_leave_one_out_is_shown_in_full(capsys):
    arguments = ["--adapter", "batchnorm", "--grid", "prior=0,8", "--recipe", "leave-one-out"]
    assert call(*TUNE, *arguments, "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("left out"))
    assert {line.split()[0] for line in lines[first + 1 : first + 5]} == {
        "speckle_noise",
        "gaussian_blur",
        "spatter",
        "saturate",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--adapter", "tent", "--grid", "lrr=1,2"], "did you mean 'lr'"),
        (["--adapter", "tnt", "--grid", "lr=1,2"], "did you mean 'tent'"),
        (["--adapter", "tent", "--grid", "lr=1"], "the grid has one point"),
        (["--adapter", "tent", "--grid", "lr=fast,slow"], "lr of adapter tent is 'fast'"),
        (["--adapter", "tent", "--grid", "lr=1,-2"], "lr is -2"),
        (["--adapter", "tent", "--range", "lr=1..2"], "--random"),
        (["--adapter", "tent", "--random", "3", "--range", "lr=2..1"], "the smaller first"),
        ([*GRID, "--shift", "contrast"], "contrast is a test corruption"),
        ([*GRID, "--shift", "contrst"], "did you mean 'contrast'"),
        ([*GRID, "--seeds", "a"], "--seeds is 'a'; whole numbers"),
        ([*GRID, "--severities", "1,x"], "--severities is '5,1,x'; numbers"),
        (["--grid", "lr=1,2"], "no adapter to tune: give --adapter"),
        (["--adapter", "tent"], "nothing to choose from"),
        (["--recipe", "resets"], "did you mean 'reset'"),
        ([*GRID, "--data", "dat.npz"], "did you mean 'data.npz'"),
        ([*GRID, "--model", "net.py:buid"], "did you mean 'build'"),
        ([*GRID, "--keep", "top0"], "keep is 'top0'"),
    ],
)
def test_bad_input_is_one_clear_message(folder, capsys, arguments, message):
    assert call(*TUNE, *arguments, "--quiet") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len([line for line in error.splitlines() if line.startswith("error:")]) == 1
    assert not (folder / "tuned").exists()
