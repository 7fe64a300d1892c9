"""Several recordings, a new one, and a saved model from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.commands import call

QUICK = ("--steps", 5, "--batch-size", 32, "--seeds", 1, "--shuffles", 1, "--quiet")


def write(name, units, seed, samples=400, **more):
    """A head that turns, and units that each fire around a direction of their own."""
    generator = np.random.default_rng(seed)
    heading = np.mod(np.cumsum(generator.normal(0, 0.2, samples)), 2 * np.pi)
    rates = 0.1 + 4 * np.exp(3 * (np.cos(heading[:, None] - generator.uniform(0, 2 * np.pi, units)) - 1))
    spikes = generator.poisson(rates)
    np.savez(name, spikes=spikes, heading=heading, times=np.arange(samples) / 10, **more)
    return spikes


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, units in enumerate((8, 10, 12)):
        write(f"rat{place}.npz", units, place)
    return tmp_path


@pytest.mark.long
def test_three_files_are_one_page_and_the_model_embeds_and_adapts(here, capsys):
    files = ("rat0.npz", "rat1.npz", "rat2.npz")
    assert call("embed", *files, "--label", "heading", "--out", "rats", "--no-controls", *QUICK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 sessions: rat0 8 channels, 400 samples; rat1 10 channels")
    assert [line.split()[0] for line in lines[1:5]] == ["mode", "fit", "consistency", "decoding"]
    content = json.loads((here / "rats" / "result.json").read_text())
    assert list(content["recordings"]) == ["rat0", "rat1", "rat2"]
    assert set(content["labels"]["heading"]["sessions"]["rat1"]) == {"embedding", "other sessions"}
    assert "Consistency of sessions" in (here / "rats" / "report.html").read_text()

    assert call("transform", "rats/model.safetensors", "rat1.npz", "--out", "rat1.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out) | {"columns": 0} == {
        "file": "rat1.parquet", "samples": 400, "dimensions": 3, "columns": 0,
    }  # fmt: skip
    frame = pd.read_parquet("rat1.parquet")
    with np.load("rats/embedding.npz") as saved:
        inner = slice(20, 200)  # inside the training part, where windows are the same
        assert np.allclose(frame.iloc[inner, -3:], saved["rat1/embedding"][inner], atol=1e-5)

    write("new.npz", 9, 7)
    more = ("--label", "heading", "--out", "new", "--session", "rat1", "--json", "--seeds", 1, "--quiet")
    assert call("embed", "--adapt", "rats/model.safetensors", "new.npz", *more) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["adapt_steps"], content["model_steps"]) == (1, 5)
    assert content["settings"]["session"] == "rat1"
    assert content["labels"]["heading"]["error_ratio"] > 0


@pytest.mark.long
def test_one_network_reads_the_units_of_all_files(here, capsys):
    more = ("--label", "heading", "--architecture", "offset5-model-unified", "--out", "rats", "--no-controls")
    assert call("embed", "rat0.npz", "rat1.npz", *more, *QUICK) == 0
    assert "one network for the units of all sessions" in capsys.readouterr().out
    assert call("transform", "rats/model.safetensors", "rat1.npz", "--out", "rat1.parquet", "--json") == 0


@pytest.mark.long
def test_a_stopped_command_goes_on_and_ends_the_same(here, capsys):
    command = ("embed", "rat0.npz", "rat1.npz", "--label", "heading", "--out", "rats", "--json", *QUICK)
    assert call(*command) == 0
    first = json.loads(capsys.readouterr().out)
    pieces = sorted((here / "rats" / "fits").iterdir())
    (pieces[0] / "fit.npz").unlink()
    before = {path: path.stat().st_mtime_ns for path in pieces[1].iterdir()}
    assert call(*command) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["labels"] == first["labels"]
    assert before == {path: path.stat().st_mtime_ns for path in pieces[1].iterdir()}  # not made again


def test_labels_of_a_tracking_table_are_joined_by_time(here, capsys):
    stamps = np.arange(900) / 30
    pd.DataFrame({"time": stamps, "x": np.sin(stamps)}).to_csv("tracking.csv", index=False)
    arguments = ("--label", "x", "--behaviour", "tracking.csv", "--no-controls", "--steps", 3, "--batch-size", 32)
    assert call("embed", "rat0.npz", *arguments) == 0
    told = capsys.readouterr().out
    assert told.startswith("8 channels, 301 samples of 100 ms; x is continuous")
    assert "99 of 400 samples left out: tracking.csv has no label there" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rat0.npz", "rat9.npz", "--label", "heading"], "did you mean 'rat"),
        (["rat0.npz", "rat1.npz", "--label", "heading", "--folds", 3], "--folds is for one recording"),
        (["rat0.npz", "rat1.npz", "--label", "heading", "--baseline", "pca"], "--baseline is for one recording"),
        (["rat0.npz", "--session", "rat1", "--label", "heading"], "--session is for --adapt"),
        (["rat0.npz", "rat1.npz", "--adapt", "x.safetensors"], "one new recording at a time"),
        (["rat0.npz", "--adapt", "x.safetensors", "--dimensions", 5], "--dimensions is set, and with --adapt"),
        (["rat0.npz", "--adapt", "x.safetensors"], "x.safetensors"),
        (["rat0.npz", "rat1.npz", "--behaviour", "a.csv"], "--behaviour is given 1 times for 2 recordings"),
    ],
)
def test_a_mistake_is_one_message_and_2(here, arguments, message, capsys):
    assert call("embed", *arguments, "--out", "x") == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err


@pytest.mark.long
def test_transform_says_which_sessions_there_are(here, capsys):
    assert call("embed", "rat0.npz", "rat1.npz", "--label", "heading", "--out", "rats", "--no-controls", *QUICK) == 0
    capsys.readouterr()
    assert call("transform", "rats/model.safetensors", "rat2.npz") == 2
    assert "has the sessions rat0, rat1, and none is called 'rat2'" in capsys.readouterr().err
    assert call("transform", "rats/model.safetensors", "rat2.npz", "--session", "rat0") == 2
    assert "rat2.npz has 12 channels, session 'rat0' of the model had 8" in capsys.readouterr().err
    assert call("transform", "rats/model.safetensors", "rat0.npz", "--session", "rat4") == 2
    assert "did you mean 'rat" in capsys.readouterr().err
    assert call("transform", "rats/model.safetensors", "rat0.npz", "--out", "x.txt") == 2
    assert "ending" in capsys.readouterr().err


@pytest.mark.long
def test_attribute_says_that_it_takes_one_recording(here, capsys):
    assert call("embed", "rat0.npz", "rat1.npz", "--label", "heading", "--out", "rats", "--no-controls", *QUICK) == 0
    capsys.readouterr()
    assert call("attribute", "rats") == 2
    assert "attribute takes the embedding of one recording" in capsys.readouterr().err
