"""A study from the command line: what is printed, what is written, and the same again."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest
from PIL import Image

RUN = ["run", "--model", "net.py:build", "--data", "data.npz", "--out", "out"]
STREAMS = ["--stream", "clean", "--stream", "corruptions:shifts=gaussian_noise,contrast,gaussian_blur"]


@pytest.mark.long
def test_run_measure_report_and_the_same_again(folder, haptera):
    run = [*RUN, *STREAMS, "--adapter", "none", "--adapter", "batchnorm:prior=4"]
    done = haptera(*run, "--json")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["cells"], counts["ran"], counts["kept"], counts["failed"]) == (32, 32, 0, 0)
    table = pd.read_parquet(folder / "out" / "table.parquet")
    again = haptera(*run)
    assert "0 cells run, 32 found finished, 0 failed" in again.stdout
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "out" / "table.parquet"), table)
    measured = json.loads(haptera("measure", "out", "--json").stdout)
    assert len(measured["rows"]) == len(table)
    reported = json.loads(haptera("report", "out", "--json").stdout)
    assert (folder / reported["files"]["report"]).is_file()
    assert reported["findings"]
    assert reported == json.loads((folder / "out" / "result.json").read_text()) | {"files": reported["files"]}


@pytest.mark.long
def test_one_measure_alone_is_printed_and_the_table_stays(folder, haptera):
    haptera(*RUN, "--stream", "clean")
    table = (folder / "out" / "table.parquet").read_bytes()
    rows = json.loads(haptera("measure", "out", "--measure", "error", "--json").stdout)["rows"]
    assert {row["measure"] for row in rows} == {"error"}
    assert "mean error" in haptera("measure", "out", "--measure", "error").stdout
    assert (folder / "out" / "table.parquet").read_bytes() == table


@pytest.mark.long
def test_a_table_that_is_older_than_the_cells_is_not_reported(folder, haptera):
    haptera(*RUN, "--stream", "clean", "--quiet")
    table = (folder / "out" / "table.parquet").read_bytes()
    haptera(*RUN, "--stream", "clean", "--stream", "continual", "--quiet")
    (folder / "out" / "table.parquet").write_bytes(table)  # as if the second run had been stopped before measuring
    os.utime(folder / "out" / "table.parquet", (0, 0))
    assert haptera("report", "out").returncode == 0
    assert "continual" in set(pd.read_parquet(folder / "out" / "table.parquet")["stream"])


@pytest.mark.long
def test_an_adapter_of_ones_own_file_runs_here_and_in_processes(folder, haptera):
    (folder / "mine.py").write_text(
        "from haptera.adapters import Adapter\n"
        "class Mine(Adapter):\n"
        "    def __init__(self, model, shift=0.0, *, frozen=False):\n"
        "        super().__init__(model, frozen=frozen)\n"
        "        self.shift = shift\n"
        "    def step(self, inputs):\n"
        "        return self.predict(inputs) + self.shift\n"
    )
    run = [*RUN, "--stream", "clean", "--seed", 0, "--seed", 1, "--adapter", "mine.py:Mine:shift=1.5", "--json"]
    done = haptera(*run, "--jobs", 2)
    assert json.loads(done.stdout)["ran"] == 2, done.stderr
    assert json.loads(haptera(*run).stdout)["kept"] == 2
    wrong = haptera(*RUN, "--stream", "clean", "--adapter", "mine.py:Mine:shfit=1.5")
    assert "did you mean 'shift'" in wrong.stderr


@pytest.mark.long
def test_import_stands_beside_a_run(folder, haptera):
    haptera(*RUN, "--stream", "clean")
    labels = np.load(folder / "data.npz")["labels"]
    np.savez(folder / "preds.npz", labels=labels, targets=labels)
    done = haptera("import", "preds.npz", "--model", "oracle", "--stream", "clean", "--out", "out")
    assert done.returncode == 0, done.stderr
    table = pd.read_parquet(folder / "out" / "table.parquet")
    accuracy = table[table["measure"] == "accuracy"].set_index("model")["value"]
    assert accuracy["oracle"] == 1.0
    assert set(accuracy.index) == {"net", "oracle"}


@pytest.mark.long
def test_two_processes_and_two_seeds(folder, haptera):
    done = haptera(*RUN, "--stream", "clean", "--seed", 0, "--seed", 5, "--jobs", 2, "--json")
    assert json.loads(done.stdout)["ran"] == 2


@pytest.mark.long
@pytest.mark.parametrize("layout", ["class folders", "imagenet-c", "cifar-10-c"])
def test_data_on_disk_in_every_layout(folder, haptera, layout):
    generator = np.random.default_rng(0)
    root = folder / "images"
    if layout == "cifar-10-c":
        root.mkdir()
        np.save(root / "labels.npy", np.tile(np.arange(6) % 3, 5))
        for name in ("fog", "snow"):
            np.save(root / f"{name}.npy", generator.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8))
    else:
        below = [""] if layout == "class folders" else ["fog/1", "fog/3", "snow/1", "snow/3"]
        for place in below:
            for name in ("ant", "bee", "cow"):
                (root / place / name).mkdir(parents=True)
                for i in range(2):
                    Image.fromarray(generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
                        root / place / name / f"{i}.png"
                    )
    streams = ["--stream", "clean"] if layout == "class folders" else []
    done = haptera("run", "--model", "net.py:build:channels=3", "--data", "images", "--out", "out", *streams)
    assert done.returncode == 0, done.stderr
    table = pd.read_parquet(folder / "out" / "table.parquet")
    rows = table[table["measure"] == "accuracy"]
    expected = {
        "class folders": {("clean", 0.0)},
        "imagenet-c": {("fog", 1.0), ("fog", 3.0), ("snow", 1.0), ("snow", 3.0)},
        "cifar-10-c": {(name, severity) for name in ("fog", "snow") for severity in (1.0, 2.0, 3.0, 4.0, 5.0)},
    }[layout]
    assert set(zip(rows["shift"], rows["severity"], strict=True)) == expected
    assert set(rows["n"]) == {6}


def test_classes_are_mapped_restricted_and_dropped(folder, haptera):
    (folder / "map.csv").write_text("class,accepted\n0,1 4\n2,7\n")
    run = [
        "run",
        "--model",
        "net.py:build:classes=9",
        "--data",
        "data.npz",
        "--stream",
        "clean",
        "--mapping",
        "map.csv",
    ]
    assert haptera(*run, "--restrict", "--out", "out").returncode == 0
    table = pd.read_parquet(folder / "out" / "table.parquet")
    kept = np.isin(np.load(folder / "data.npz")["labels"], [0, 2]).sum()
    assert table[table["measure"] == "accuracy"]["n"].tolist() == [kept]
    cell = np.load(next((folder / "out" / "cells").glob("*.npz")))
    assert cell["logits"].shape == (kept, 3)
    assert cell["columns"].tolist() == [1, 4, 7]
    assert json.loads(cell["provenance"].tobytes())["dropped"] == 40 - kept


def test_quiet_says_nothing_but_the_result_and_json_is_one_object(folder, haptera):
    done = haptera(*RUN, "--stream", "clean", "--quiet", "--json")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    json.loads(done.stdout)


@pytest.mark.long
def test_interrupted_it_says_how_to_go_on(folder, haptera):
    run = [*RUN, *STREAMS]
    process = haptera.start_until("*/cells/*.npz", *run, after=2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert "stopped after 2 of 16 cells; the same command goes on from there" in error
    assert "Traceback" not in error
    assert haptera(*run).returncode == 0
