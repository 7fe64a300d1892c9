"""Mistakes of `haptera pose` are told before any work is done: one sentence, exit code 2, nothing written or lost."""

from fractions import Fraction

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from commands import call
from haptera.files.deeplabcut import KeypointTable
from haptera.files.video import write_video
from haptera.pose import PoseModel, drawn_animals

pytest.importorskip("av")
PREDICT = ("pose", "predict", "clip.mp4", "--model", "net.safetensors", "--out")
AUDIT = ("pose", "audit", "project", "--model", "net.safetensors", "--out", "audit")


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with a network, one of other parts, a video, one that is damaged, and a project."""
    animals = drawn_animals(1, 6, height=48, width=64)
    images = (animals.images(np.arange(6)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    write_video(tmp_path / "clip.mp4", images, Fraction(10))
    (tmp_path / "damaged.mp4").write_bytes((tmp_path / "clip.mp4").read_bytes()[:200])
    files = np.array([f"labeled-data/a/img{row}.png" for row in range(6)])
    (tmp_path / "project" / "labeled-data" / "a").mkdir(parents=True)
    for file, image in zip(files, images, strict=True):
        Image.fromarray(image).save(tmp_path / "project" / file)
    KeypointTable(animals.keypoints, animals.parts, files, "me").write(
        tmp_path / "project" / "labeled-data" / "a" / "CollectedData_me.csv"
    )
    config = {"Task": "drawn", "scorer": "me", "bodyparts": list(animals.parts)}
    (tmp_path / "project" / "config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "without.yaml").write_text(yaml.safe_dump({"scorer": "me"}))
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "other.csv").write_text("file,set\nimg.png,train\n")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    torch.manual_seed(0)
    PoseModel(animals.parts, settings={"width": 4}).save(tmp_path / "net.safetensors")
    PoseModel(("snout", "tail"), settings={"width": 4}).save(tmp_path / "others.safetensors")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*AUDIT, "--video", "gone.mp4"], "there is no video gone.mp4"),
        ([*AUDIT, "--video", "damaged.mp4"], "cannot read the video damaged.mp4"),
        ([*AUDIT, "--frames", "0"], "frames is 0; a whole number of at least 1 was expected"),
        ([*AUDIT, "--sample", "0"], "sample is 0; a whole number of at least 1 was expected"),
        ([*AUDIT, "--split", "other.csv"], "it has no column 'part'"),
        (["pose", "audit", "without.yaml", *AUDIT[3:]], "without.yaml has no 'bodyparts'"),
        (["pose", "audit", "bare", *AUDIT[3:]], "there is no CollectedData*.csv or .h5 in bare"),
        (["pose", "audit", "other.csv", *AUDIT[3:]], "other.csv is not a project; its config.yaml"),
        (["pose", "audit", "project", "--model", "others.safetensors", "--out", "audit"], "('snout', 'tail')"),
        ([*AUDIT[:-1], "mine"], "cannot write into mine: it is a file, a folder was expected"),
        ([*PREDICT, "folder.csv"], "cannot write folder.csv: it is a folder, a file was expected"),
        ([*PREDICT, "mine/said.csv"], "cannot write into mine: it is a file, a folder was expected"),
        ([*PREDICT, "mine/said.analysis.h5"], "cannot write into mine: it is a file, a folder was expected"),
        ([*PREDICT, "said.csv", "--clip", "mine/shown.mp4"], "cannot write into mine: it is a file"),
        ([*PREDICT, "said.csv", "--clip", "shown.mp4", "--clip-frames", "0"], "--clip-frames is 0"),
        ([*PREDICT, "said.csv", "--batch-size", "0"], "--batch-size is 0; a whole number of at least 1"),
        (["pose", "predict", "damaged.mp4", *PREDICT[3:], "said.csv"], "cannot read the video damaged.mp4"),
        (["pose", "predict", "mine", *PREDICT[3:], "said.csv"], "mine is neither a video nor an image"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_before_any_work(lab, capsys, monkeypatch, arguments, message):
    def refuse(*_, **__):
        raise AssertionError("the network ran before the mistake was told")

    monkeypatch.setattr(PoseModel, "forward", refuse)
    assert call(*arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("error: ") == 1
    assert (lab / "mine").read_text() == "mine"
    assert not (lab / "said.csv").exists()
    assert not (lab / "audit" / "result.json").exists()
