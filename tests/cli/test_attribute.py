"""`haptera attribute` as a user runs it, after `haptera embed`."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
from tests.commands import call

EMBED = ("--label", "heading", "--no-controls", "--steps", 120, "--batch-size", 256, "--architecture", "offset1-model",
         "--time-offset", 5, "--learning-rate", 3e-3, "--quiet")  # fmt: skip
QUICK = ("--fits", 2, "--copies", 3, "--quiet")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Eight cells that turn with the head and four that do not, embedded by where it points."""
    folder = tmp_path_factory.mktemp("attribute")
    generator = np.random.default_rng(0)
    angle = np.mod(np.cumsum(generator.normal(0, 0.3, 1200)), 2 * np.pi)
    rates = 0.2 + 3 * np.exp(np.cos(angle[:, None] - np.arange(8) * np.pi / 4) - 1)
    spikes = generator.poisson(np.hstack([rates, np.full((1200, 4), 1.5)]))
    np.savez(folder / "mouse.npz", spikes=spikes, heading=angle)
    assert call("embed", folder / "mouse.npz", "--out", folder / "hd", *EMBED) == 0
    return folder


def test_it_names_the_channels_that_carry_the_label(embedded, capsys):
    assert call("attribute", embedded / "hd", *QUICK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("carry heading (shuffle test, FDR 5 %): 0 1 2 3 4 5 6 7")
    assert lines[1].startswith("carriers    8 of 12 channels")
    table = pd.read_parquet(embedded / "hd" / "attribution" / "table.parquet").dropna(subset="channel")
    assert table["carries"].tolist() == [True] * 8 + [False] * 4
    assert table[["axis 1", "axis 2"]].max().tolist() == [1, 1]
    page = (embedded / "hd" / "attribution" / "report.html").read_text("utf-8")
    assert "8 of 12 channels" in page
    assert "Theorem 2 of chapter 8 covers which entries of the map are zero" in page
    assert "not of the model in the folder" in page


def write_units(path, ids, locations):
    """The cells of `embedded` as units of an NWB file: spikes within bins of 100 ms, a compass in every bin."""
    generator = np.random.default_rng(0)
    angle = np.mod(np.cumsum(generator.normal(0, 0.3, 1200)), 2 * np.pi)
    rates = 0.2 + 3 * np.exp(np.cos(angle[:, None] - np.arange(8) * np.pi / 4) - 1)
    counts = generator.poisson(np.hstack([rates, np.full((1200, 4), 1.5)])).T
    trains = [np.repeat(0.1 * np.arange(1200), cell) + generator.uniform(0.02, 0.08, cell.sum()) for cell in counts]
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.concatenate([np.sort(train) for train in trains])
        file["units/spike_times_index"] = np.cumsum([len(train) for train in trains])
        file["units/id"] = ids
        file.create_dataset("units/location", data=locations, dtype=h5py.string_dtype())
        data = file.create_dataset("processing/behavior/heading/data", data=angle)
        data.attrs["unit"] = "radians"
        file["processing/behavior/heading/timestamps"] = 0.1 * np.arange(1200) + 0.05


@pytest.mark.long
def test_units_go_by_their_ids_also_if_only_some_were_embedded(tmp_path, capsys):
    ids = [40, 41, 42, 43, 50, 51, 52, 53, 7, 8, 9, 10]
    write_units(tmp_path / "mouse.nwb", ids, ["adn", "ca1"] * 6)
    embed = (*EMBED, "--bin", "100ms", "--units", "location=ca1", "--out", tmp_path / "hd")
    assert call("embed", tmp_path / "mouse.nwb", *embed) == 0
    capsys.readouterr()
    assert call("attribute", tmp_path / "hd", "--fits", 2, "--copies", 6, "--quiet") == 0
    said = capsys.readouterr().out.splitlines()[1]
    assert said == "carriers    4 of 6 units carry heading (shuffle test, FDR 5 %): 41 43 51 53"
    table = pd.read_parquet(tmp_path / "hd" / "attribution" / "table.parquet").dropna(subset="channel")
    assert table["channel"].tolist() == ["41", "43", "51", "53", "8", "10"]


def test_json_is_one_object(embedded, capsys):
    assert call("attribute", embedded / "hd", "--json", "--method", "gradient", *QUICK) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["what"] == "heading"
    assert content["decoys"] == 3 * 12
    assert content["promise"].startswith("No theorem covers a map by gradient")
    assert len(content["channels"]) == 12
    assert set(map(str, range(8))) <= set(content["carriers"])


def test_a_recording_that_has_moved_can_be_named(embedded, capsys):
    (embedded / "mouse.npz").rename(embedded / "rat.npz")
    assert call("attribute", embedded / "hd", *QUICK) == 2
    assert "--recording" in capsys.readouterr().err
    moved = embedded / "rat.npz"
    assert call("attribute", embedded / "hd", "--recording", moved, "--fits", 1, "--copies", 2, "--quiet") == 0
    moved.rename(embedded / "mouse.npz")


def test_mistakes_are_named(embedded, tmp_path, capsys):
    for arguments, message in (
        ((tmp_path,), "a folder that `haptera embed --out` wrote"),
        ((embedded / "hd", "--method", "gradent"), "did you mean 'gradient'"),
        ((embedded / "hd", "--fits", -1), "at least 1 fit, or 0"),
        ((embedded / "hd", "--fits", 0), "say --jacobian-weight 0 here"),
        ((embedded / "hd", "--jacobian-weight", -1), "at least 0"),
    ):
        assert call("attribute", *arguments) == 2
        assert message in capsys.readouterr().err


def test_a_map_is_scored_by_what_is_known(embedded, tmp_path, capsys):
    np.save(tmp_path / "known.npy", [1] * 8 + [0] * 4)
    assert call("attribute", embedded / "hd", "--truth", tmp_path / "known.npy", *QUICK, "--json") == 0
    scores = json.loads(capsys.readouterr().out)["truth"]
    assert scores["channels_auroc"] == 1.0
    assert 0.8 < scores["auroc"] <= 1.0
    assert scores["chance"] == pytest.approx(8 / 12)
    (tmp_path / "known.txt").write_text("1\n0\n")
    assert call("attribute", embedded / "hd", "--truth", tmp_path / "known.txt", *QUICK) == 2
    assert "known.txt has 2 values; 12 were expected" in capsys.readouterr().err


def test_without_fits_there_is_the_map_of_the_model_and_no_test(embedded, tmp_path, capsys):
    np.save(tmp_path / "known.npy", [1] * 8 + [0] * 4)
    alone = ("--fits", 0, "--jacobian-weight", 0, "--truth", tmp_path / "known.npy", "--out", tmp_path / "map")
    assert call("attribute", embedded / "hd", *alone, "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("carriers    not tested for heading")
    assert not (tmp_path / "map" / "fits").exists()
    table = pd.read_parquet(tmp_path / "map" / "table.parquet").dropna(subset="channel")
    assert "q" not in table
    found, known = table[["axis 1", "axis 2"]].sum(axis=1), np.arange(len(table)) < 8
    assert found[known].min() > found[~known].max()
    page = (tmp_path / "map" / "report.html").read_text("utf-8")
    assert "Attribution map" in page
    assert "below nan" not in page
