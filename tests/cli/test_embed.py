"""`haptera embed` as a user runs it: text, JSON, files, and mistakes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.commands import call

from haptera.cli.embed import _seconds

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
QUICK = ("--steps", 40, "--batch-size", 128, "--seeds", 1, "--shuffles", 0, "--baseline", "pca")
SHORT = ("--steps", 3, "--batch-size", 32, "--seeds", 2, "--shuffles", 1, "--baseline", "pca")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    angle = np.mod(np.cumsum(generator.normal(0, 0.15, 1200)), 2 * np.pi)
    rates = 0.1 + 4 * np.exp(3 * (np.cos(angle[:, None] - np.arange(10) * 0.628) - 1))
    np.savez("mouse.npz", spikes=generator.poisson(rates), heading=angle, still=np.ones(1200), short=angle[100:])
    return tmp_path


@pytest.mark.long
def test_text_says_what_was_found_and_files_are_written(here, capsys):
    assert call("embed", "mouse.npz", "--signal", "spikes", "--label", "heading", "--out", "hd", *SHORT) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0] == "10 channels, 1,200 samples; heading is an angle"
    assert [line.split()[0] for line in lines[1:-1] if "read better from" not in line] == [
        "mode", "fit", "decoding", "topology",
    ]  # fmt: skip
    names = ["report.html", "table.parquet", "result.json", "embedding.npz", "model.safetensors"]
    assert lines[-1].split() == [f"hd/{name}" for name in names]
    with np.load("hd/embedding.npz") as file:
        assert file["embedding"].shape == (1200, 3)
        assert file["label_heading"].shape == file["part"].shape == (1200,)
    assert 1_000_000 < (here / "hd" / "report.html").stat().st_size < 3_000_000  # all of plotly is inside, compressed
    kept = ["baselines", "fits", "journal.jsonl", "plan.json"]
    assert sorted(path.name for path in (here / "hd").iterdir() if path.name != ".lock") == sorted([*names, *kept])


@pytest.mark.long
def test_awkward_recordings_are_embedded_with_notes_and_folds(here, capsys):
    generator = np.random.default_rng(0)
    spikes = generator.poisson(2.0, (300, 4))
    spikes[:200, 1] = 0
    place = np.arange(300) % 120
    speed = generator.normal(size=300)
    speed[5:9] = np.nan
    np.savez("rat.npz", spikes=spikes, place=place, speed=speed, trial=np.arange(300) // 15)
    quick = ("--no-controls", "--steps", 3, "--batch-size", 32, "--architecture", "offset1-model-mse")
    arguments = ("--label", "place", "--label", "speed", "--trials", "trial", "--folds", 3, "--out", "hd")
    assert call("embed", "rat.npz", *arguments, *quick) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 channels, 296 samples; place is continuous; speed is continuous"
    assert [line.removeprefix("note").strip() for line in lines if line.startswith("note")] == [
        "4 of 300 samples left out: 4 without speed",
        "1 of 4 channels left out, which never change in the training part: 1",
        "place has 120 different whole numbers and is taken as continuous; place:discrete takes them as classes, "
        "place:degrees as an angle",
    ]
    assert sum("over 3 folds of whole trials" in line for line in lines) == 2
    content = json.loads((here / "hd" / "result.json").read_text())
    assert content["settings"]["distance"] == "euclidean"
    assert len(content["labels"]["speed"]["folds"]["values"]) == 3
    assert call("attribute", "hd", "--fits", 1, "--copies", 2, "--quiet", "--json") == 0  # leaves out the same
    assert [row["channel"] for row in json.loads(capsys.readouterr().out)["channels"]] == ["0", "2", "3"]


def test_times_in_milliseconds_are_warned_of_before_anything_is_fitted(here, capsys):
    rows = [f"{100 * place},{place % 2}" for place in range(20)]
    (here / "cells.csv").write_text("\n".join(["spike_times,unit", *rows]))
    # The last spike is at the end of the last bin, and so in none: 19 of 2 units in 1,900 s.
    quick = ("--mode", "time", "--bin", 1, "--no-controls", "--steps", 2, "--batch-size", 32)
    assert call("embed", "cells.csv", *quick) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("warning: cells.csv: units fire 0.005 times a second on average; are times")
    assert told[1].startswith("embedding by time")


@pytest.mark.long
def test_the_saved_model_gives_the_saved_embedding(here, capsys):
    from haptera.contrastive.estimator import ContrastiveEmbedding

    arguments = ("--label", "heading", "--out", "hd", "--no-controls", "--steps", 20, "--json")
    assert call("embed", "mouse.npz", *arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["shuffles"] == 0
    assert content["topology"] is None
    model = ContrastiveEmbedding.load("hd/model.safetensors")
    with np.load("mouse.npz") as file, np.load("hd/embedding.npz") as saved:
        again = model.transform(file["spikes"].astype(np.float32))
        assert np.allclose(again[20:600], saved["embedding"][20:600], atol=1e-5)  # but for windows at cuts


@pytest.mark.long
def test_json_is_one_object_with_the_errors_in_degrees(here, capsys):
    assert (
        call(
            "embed",
            "mouse.npz",
            "--label",
            "heading:angle",
            "--out",
            "hd",
            "--json",
            "--quiet",
            "--no-topology",
            *QUICK,
        )
        == 0
    )
    content = json.loads(capsys.readouterr().out)
    assert content["decoding"]["median_error"] < 25
    assert content["shuffled"]["median_error"] > 55
    assert content["files"]["report"] == "hd/report.html"
    assert content["settings"]["max_iterations"] == 40
    kept = json.loads((here / "hd" / "result.json").read_text())
    assert kept["decoding"] == content["decoding"]
    assert kept["read"]["labels"] == ["heading:angle"]  # enough to read it again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mose.npz", "--out", "x"], "did you mean 'mouse.npz'"),
        (["mouse.npz", "--label", "haeding", "--out", "x"], "did you mean 'heading'"),
        (["mouse.npz", "--signal", "spike", "--out", "x"], "did you mean 'spikes'"),
        (["mouse.npz", "--label", "still", "--out", "x"], "the same in every sample"),
        (["mouse.npz", "--label", "short", "--out", "x"], "1,100 samples"),
        (["mouse.npz", "--bin", "100ms", "--out", "x"], "bin is for .nwb files"),
        (["mouse.npz", "--bin", "wide", "--out", "x"], "a width such as 100ms"),
        (["mouse.npz", "--units", "adn", "--out", "x"], "COLUMN=VALUE was expected"),
        (["mouse.npz", "--mode", "hybird", "--label", "heading", "--out", "x"], "did you mean 'hybrid'"),
        (["mouse.npz", "--label", "heading", "--baseline", "umpa", "--out", "x"], "did you mean 'umap'"),
        (["mouse.npz", "--label", "heading", "--baseline-samples", 20, "--out", "x"], "100 or more, or 0 for all"),
        (["mouse.npz", "--label", "heading", "--jobs", 0, "--out", "x"], "jobs is 0"),
        (["mouse.npz", "mouse.npz", "--label", "heading", "--jobs", 2, "--out", "x"], "--jobs is for one recording"),
        (["mouse.npz", "--label", "heading", "--architecture", "offset11-model", "--out", "x"], "did you mean"),
        (["mouse.npz", "--label", "heading", "--out", "mouse.npz"], "it is a file"),
        (["mouse.npz", "--label", "heading", "--folds", "3", "--out", "x"], "folds hold out whole trials"),
        (["mouse.npz", "--label", "heading", "--folds", "trail", "--out", "x"], "did you mean 'trial'"),
        (["mouse.npz", "--part", "heading", "--out", "x"], "LABEL:FIRST-LAST was expected"),
        (["mouse.npz", "--part", "heading:2-0", "--out", "x"], "the first dimension is after the last"),
        (["mouse.npz", "--part", "haeding:0-1", "--out", "x"], "did you mean 'heading'"),
        (["mouse.npz", "--part", "time:0-1", "--out", "x"], "every label once, and at least one"),
        (["mouse.npz", "--part", "heading:0-1", "--mode", "time", "--out", "x"], "leave one of them out"),
        (["mouse.npz", "--label", "heading", "--distance", "cosin", "--out", "x"], "did you mean 'cosine'"),
        (["mouse.npz", "--label", "heading", "--jacobian-weight", -1, "--out", "x"], "jacobian_weight"),
        (["mouse.npz", "--label", "heading", "--folds", "2", "--out", "x"], "folds is 2; at least 3"),
        (["mouse.npz", "--label", "heading", "--device", "gpu", "--out", "x"], "device is 'gpu'"),
        (["mouse.npz", "--label", "heading", "--behaviour", "mose.npz", "--out", "x"], "did you mean 'mouse.npz'"),
        (["mouse.npz", "--label", "haeding", "--behaviour", "mouse.npz", "--out", "x"], "did you mean 'heading'"),
    ],
)
def test_a_mistake_is_one_message_and_2(here, arguments, message, capsys):
    assert call("embed", *arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


@pytest.mark.long
def test_parts_with_a_jacobian_term_are_embedded_and_attributed(here, capsys):
    parts = ("--part", "heading:0-2", "--part", "time:3-4", "--jacobian-weight", 0.01, "--device", "cpu")
    quick = ("--no-controls", "--steps", 8, "--batch-size", 64, "--out", "hd", "--json", "--quiet")
    assert call("embed", "mouse.npz", "--signal", "spikes", *parts, *quick) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["settings"]["hybrid"] == {"0": [0, 1, 2], "time": [3, 4]}
    assert (content["settings"]["output_dimension"], content["settings"]["jacobian_weight"]) == (5, 0.01)
    assert content["prepared"]["parts"] == {"heading": [0, 1, 2], "time": [3, 4]}
    assert "median_error" in content["labels"]["heading"]["decoding"]
    assert call("attribute", "hd", "--fits", 1, "--copies", 2, "--quiet", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jacobian_weight"] == 0.01  # that of the embedding
    assert found["part_dimensions"] == [3, 2]
    assert found["what"] == "heading"
    assert call("attribute", "hd", "--part", "haeding") == 2
    assert "did you mean 'heading'" in capsys.readouterr().err


@pytest.mark.long
def test_each_trial_is_a_fold(here, capsys):
    generator = np.random.default_rng(0)
    np.savez(
        "rat.npz", spikes=generator.poisson(2.0, (200, 4)), place=np.arange(200) % 40 / 40, trial=np.arange(200) // 40
    )
    quick = ("--no-controls", "--steps", 3, "--batch-size", 32, "--json", "--quiet", "--distance", "dot")
    assert call("embed", "rat.npz", "--label", "place", "--trials", "trial", "--folds", "trial", *quick) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["folds"]["values"]) == 5
    assert content["settings"]["distance"] == "dot"


def test_widths_have_units():
    assert (_seconds("25ms"), _seconds("1s"), _seconds("0.5")) == (0.025, 1.0, 0.5)


@pytest.mark.real
@pytest.mark.slow
def test_head_direction_is_read_from_the_recording(tmp_path, capsys):
    path = DATA / "head-direction.nwb"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    arguments = ("--signal", "spikes", "--label", "head_direction", "--out", tmp_path / "hd", "--json")
    assert call("embed", path, *arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["decoding"]["median_error"] <= 8.0
    assert 60 < content["shuffled"]["median_error"] < 100
    assert abs(content["fit"]["held_out_shuffled"]["nats"]) < 0.05
    assert content["topology"]["betti"] == [1, 1, 0]
