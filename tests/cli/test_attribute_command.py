"""`holdfast attribute` as a user runs it, after `holdfast embed`."""

import json

import numpy as np
import pandas as pd
import pytest

from holdfast.cli import main

EMBED = ("--label", "heading", "--no-controls", "--steps", 120, "--batch-size", 256, "--architecture", "offset1-model",
         "--time-offset", 5, "--learning-rate", 3e-3, "--quiet")  # fmt: skip
QUICK = ("--fits", 2, "--copies", 3, "--quiet")


def call(*arguments):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0


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
    assert lines[0].endswith("carry heading (shuffle test, FDR 5 %): 0 1 2 3 4 5 6 7")
    assert lines[0].startswith("8 of 12 channels")
    table = pd.read_csv(embedded / "hd" / "attribution.csv")
    assert table["carries"].tolist() == [True] * 8 + [False] * 4
    assert table[["dimension 1", "dimension 2", "dimension 3"]].max().tolist() == [1, 1, 1]
    page = (embedded / "hd" / "attribution.html").read_text("utf-8")
    assert "8 of 12 channels" in page


def test_json_is_one_object(embedded, capsys):
    assert call("attribute", embedded / "hd", "--json", "--method", "gradient", *QUICK) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["what"] == "heading"
    assert content["decoys"] == 2 * 3 * 12
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
        ((tmp_path,), "a folder that `holdfast embed --out` wrote"),
        ((embedded / "hd", "--method", "gradent"), "did you mean 'gradient'"),
        ((embedded / "hd", "--fits", 0), "at least 1"),
        ((embedded / "hd", "--jacobian-weight", -1), "at least 0"),
    ):
        assert call("attribute", *arguments) == 2
        assert message in capsys.readouterr().err
