"""`haptera pose predict` of a video and `haptera pose audit` from the command line, with mistakes and interruptions."""

import json
import signal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from PIL import Image

from haptera.files.deeplabcut import KeypointTable
from haptera.files.video import Video, write_video
from haptera.pose import PoseModel, drawn_animals

pytest.importorskip("av")
ANIMALS = drawn_animals(2, 18, height=48, width=64)
PREDICT = ("pose", "predict", "clip.mp4", "--model", "net.safetensors")


@pytest.fixture
def lab(tmp_path, haptera):
    """A command line beside a network, a video of 36 frames, and a project of both animals."""
    images = (ANIMALS.images(np.arange(36)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    write_video(tmp_path / "clip.mp4", images, Fraction(10))
    for name in ("a", "b"):
        rows = np.arange(6) + 18 * (name == "b")
        files = np.array([f"labeled-data/{name}/img{row:02d}.png" for row in rows])
        (tmp_path / "project" / "labeled-data" / name).mkdir(parents=True)
        for file, row in zip(files, rows, strict=True):
            Image.fromarray(images[row]).save(tmp_path / "project" / file)
        table = KeypointTable(ANIMALS.keypoints[rows], ANIMALS.parts, files, "me")
        table.write(tmp_path / "project" / "labeled-data" / name / "CollectedData_me.csv")
    config = {"Task": "drawn", "scorer": "me", "bodyparts": list(ANIMALS.parts)}
    (tmp_path / "project" / "config.yaml").write_text(yaml.safe_dump(config))
    torch.manual_seed(0)
    PoseModel(ANIMALS.parts, settings={"width": 4}, skeleton=ANIMALS.skeleton).save(tmp_path / "net.safetensors")
    return haptera


def test_a_video_becomes_a_table_and_a_clip(lab, tmp_path):
    adapter = ("--adapter", "batchnorm:prior=auto", "--clip", "shown.mp4", "--clip-frames", 4)
    done = lab(*PREDICT, "--out", "said.csv", *adapter, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["frames"], said["adapter"], said["clip"]) == (36, "batchnorm:prior=auto", "shown.mp4")
    assert said["mean_confidence_unadapted"] != said["mean_confidence"]
    frame = pd.read_csv(tmp_path / "said.csv", header=[0, 1, 2], index_col=0)
    assert frame.shape == (36, 66)
    assert len(Video(tmp_path / "shown.mp4")) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PREDICT, "--out", "y.csv", "--adapter", "tent"], "learns from probabilities of classes"),
        ([*PREDICT, "--out", "y.csv", "--adapter", "batchnrom"], "did you mean 'batchnorm'"),
        ([*PREDICT, "--out", "y.txt"], ".analysis.h5 for SLEAP"),
        ([*PREDICT, "--out", "y.csv", "--clip", "y.gif"], "a name ending in .mp4 was expected"),
        (["pose", "predict", "clip.mp4", "--out", "y.csv"], "give the network as --model"),
        (["pose", "predict", "gone.mp4", "--model", "net.safetensors", "--out", "y.csv"], "there is no video gone.mp4"),
        (["pose", "predict", "clip.mp4", "--model", "gone.pt", "--out", "y.csv"], "there is no snapshot gone.pt"),
        (["pose", "predict", "project", "--model", "net.safetensors", "--out", "y.csv", "--adapter", "batchnorm"],
         "--adapter and --clip are for a video"),
        (["pose", "audit", "gone.yaml", "--model", "net.safetensors"], "there is no file gone.yaml"),
        (["pose", "audit", "project", "--model", "net.safetensors", "--new", "c"], "there is no individual 'c'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(lab, arguments, message):
    done = lab(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_video_that_was_stopped_ends_with_the_same_table(lab, tmp_path, stop):
    command = (*PREDICT, "--adapter", "batchnorm:prior=4", "--batch-size", 1, "--out")
    process = lab.start_until("*/frames/*.npz", *command, "said.csv", after=2)
    process.send_signal(stop)
    process.communicate()
    assert not (tmp_path / "said.csv").exists()
    again = lab(*command, "said.csv")
    assert again.returncode == 0, again.stderr
    assert "found finished" in again.stderr
    assert lab(*command, "undisturbed.csv").returncode == 0
    assert (tmp_path / "said.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.long
def test_an_audit_answers_and_leaves_its_files(lab, tmp_path):
    command = ("pose", "audit", "project/config.yaml", "--model", "net.safetensors", "--new", "b")
    done = lab(*command, "--video", "clip.mp4", "--shift", "contrast:5", "--sample", 8, "--out", "audit")
    assert done.returncode == 0, done.stderr
    words = [line.split(" ")[0] for line in done.stdout.splitlines()]
    assert {"known", "new", "corruptions", "adaptation", "domain", "label"} <= set(words)
    names = {path.name for path in (tmp_path / "audit").iterdir()}
    assert {"report.html", "table.parquet", "result.json", "label_next.csv"} <= names
