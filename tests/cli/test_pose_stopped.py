"""`haptera pose`, stopped or on a full disk, ends the same when the command is given again."""

import random
import signal
import time

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from haptera.pose import PoseModel, drawn_animals

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

SMALL = "drawn:individuals=3,frames=6,height=48,width=64"
TRAIN = ("pose", "train", SMALL, "--steps", 60, "--every", 10, "--backbone", "small:width=4", "--seed", 3, "--out")


def results(folder):
    return {name: (folder / name).read_bytes() for name in ("model.safetensors", "history.csv", "split.csv")}


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_a_training_that_was_stopped_ends_with_the_same_weights(tmp_path, haptera, stop):
    process = haptera.start_until("*/checkpoint-*.safetensors", *TRAIN, "net", after=3)
    process.send_signal(stop)
    _, said = process.communicate()
    if stop == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert said.endswith("error: stopped after 30 of 60 steps; the same command goes on from there\n")
    again = haptera(*TRAIN, "net")
    assert again.returncode == 0, again.stderr
    assert "training goes on from step 30" in again.stderr
    assert haptera(*TRAIN, "undisturbed").returncode == 0
    assert results(tmp_path / "net") == results(tmp_path / "undisturbed")
    assert not list((tmp_path / "net").glob(".*.part"))


def test_a_training_killed_at_random_moments_ends_with_the_same_weights(tmp_path, haptera):
    moments = random.Random(1)
    more = ("--every", 1, "--steps", 300)
    for _ in range(4):
        process = haptera.start(*TRAIN, "net", *more)
        time.sleep(moments.uniform(0.5, 5))
        process.kill()
        process.communicate()
    assert haptera(*TRAIN, "net", *more).returncode == 0
    assert haptera(*TRAIN, "undisturbed", *more).returncode == 0
    assert results(tmp_path / "net") == results(tmp_path / "undisturbed")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_scores_that_were_stopped_end_with_the_same_table(tmp_path, haptera, stop):
    PoseModel(drawn_animals(1, 1).parts, settings={"width": 4}).save(tmp_path / "net.safetensors")
    command = ("pose", "score", SMALL, "--model", "net.safetensors", "--shift", "fog:3", "--shift", "contrast:5")
    process = haptera.start_until("*/cells/*.npz", *command, "--out", "scores", after=2)
    process.send_signal(stop)
    _, said = process.communicate()
    assert process.returncode == (-signal.SIGKILL if stop == signal.SIGKILL else 130)
    if stop == signal.SIGINT:
        assert said.endswith("error: stopped after 2 of 6 cells; the same command goes on from there\n")
    assert haptera(*command, "--out", "scores").returncode == 0
    assert haptera(*command, "--out", "undisturbed").returncode == 0
    tables = [pd.read_parquet(tmp_path / name / "table.parquet") for name in ("scores", "undisturbed")]
    pd.testing.assert_frame_equal(*tables)


PREDICT = ("pose", "predict", "net.safetensors", "labeled-data", "--batch-size", 1, "--out")


@pytest.fixture
def images(tmp_path, haptera):
    """A command line beside a model and 18 images, which are three pieces with batches of 1."""
    data = drawn_animals(3, 6, seed=1, height=48, width=64)
    for file, image in zip(data.files, data.images(np.arange(18)), strict=True):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0).numpy() * 255).astype(np.uint8)).save(tmp_path / file)
    torch.manual_seed(0)
    PoseModel(drawn_animals(1, 1).parts, settings={"width": 4}).save(tmp_path / "net.safetensors")
    return haptera


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_predictions_that_were_stopped_end_with_the_same_table(images, tmp_path, stop):
    process = images.start_until("*/frames/*.npz", *PREDICT, "said.csv", after=2)
    process.send_signal(stop)
    _, said = process.communicate()
    assert process.returncode == (-signal.SIGKILL if stop == signal.SIGKILL else 130)
    if stop != signal.SIGKILL:
        assert said.endswith("error: stopped after 2 of 3 pieces; the same command goes on from there\n")
    assert not (tmp_path / "said.csv").exists()
    damaged = sorted((tmp_path / "said.csv.unfinished" / "frames").glob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    again = images(*PREDICT, "said.csv")
    assert again.returncode == 0, again.stderr
    assert f"{damaged.name} has " in again.stderr
    assert "2 pieces run, 1 found finished" in again.stderr
    assert images(*PREDICT, "undisturbed.csv", "--quiet").returncode == 0
    assert (tmp_path / "said.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (2_000, "0 finished pieces are intact, the same command goes on"),
        (3_000, "what is predicted is kept in said.csv.unfinished, the same command goes on"),
    ],
)
def test_predictions_on_a_full_disk_go_on_when_there_is_room(images, tmp_path, most, message):
    full = images.apart(*PREDICT, "said.csv", largest_file=most)  # a piece or the table
    assert full.returncode == 1
    assert message in full.stderr
    assert images(*PREDICT, "said.csv").returncode == 0
    assert images(*PREDICT, "undisturbed.csv").returncode == 0
    assert (tmp_path / "said.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()
