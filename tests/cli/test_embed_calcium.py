"""`haptera embed` on calcium recordings that nothing was tuned on: no units, no behaviour, by time alone."""

import json
import os
from pathlib import Path

import pytest
from tests.commands import call

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "calcium"
FEW = ("--steps", 30, "--seeds", 1, "--shuffles", 1, "--baseline", "pca", "--no-topology", "--jobs", 1)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "samples", "cells", "note"),
    [
        ("A0634-210127.nwb", 35_743, 10, "Fluorescence/RoiResponseSeries, as there are no units"),
        ("A6512-210915.nwb", 35_790, 10, "Fluorescence/RoiResponseSeries, as there are no units"),
        ("2022_08_08.nwb", 2_000, 219, "Deconvolved is (219, 2000), cells by samples, and was turned"),
    ],
)
def test_a_calcium_recording_without_behaviour_is_embedded_by_time(name, samples, cells, note, tmp_path, capsys):
    if not (DATA / name).is_file():
        pytest.skip(f"there is no {DATA / name}")
    assert call("embed", DATA / name, "--out", tmp_path / "out", "--json", *FEW) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["recording"]["samples"] == samples
    assert any(note in each for each in content["notes"])
    silent = next((each for each in content["notes"] if "never change" in each), "0 of")
    assert content["recording"]["channels"] + int(silent.split()[0]) == cells
    assert content["fit"]["held_out"]["bits"] > 0.3  # samples that follow one another are told from others
    assert content["mode"].startswith("time")
    assert content["decoding"] is None  # there is no behaviour to decode
    assert (tmp_path / "out" / "report.html").stat().st_size > 100_000
