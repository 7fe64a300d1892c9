"""`haptera pose` with several animals in a frame, one video, and two networks."""

import json

import numpy as np
import pytest
from PIL import Image

from haptera.cli import main
from haptera.files.deeplabcut import read_deeplabcut
from haptera.files.keypoints import KeypointTable
from haptera.pose import PoseModel

PARTS = ("nose", "tail")


@pytest.fixture
def pose(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["pose", *map(str, arguments)])
        told = capsys.readouterr()
        return end.value.code or 0, told.out, told.err

    return run


@pytest.fixture
def project(tmp_path):
    """Four frames of one video with two animals each, and a network that learnt nothing."""
    names = [f"labeled-data/clip/img{k:02d}.png" for k in range(4)]
    keypoints = np.random.default_rng(0).uniform(4, 44, (8, 2, 2))
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48), (90, 60, 30)).save(tmp_path / name)
    animals = np.tile(["ina", "rex"], 4)
    table = KeypointTable(keypoints, PARTS, np.repeat(names, 2), "me", animals=animals)
    table.write(tmp_path / "labeled-data/clip/CollectedData_me.csv")
    PoseModel(PARTS, "small", settings={"width": 4}, size=(32, 32)).save(tmp_path / "net.safetensors")
    return tmp_path


def test_animals_are_predicted_from_crops_and_scored(pose, project):
    table = project / "labeled-data/clip/CollectedData_me.csv"
    code, out, _ = pose("predict", project, "--model", "net.safetensors", "--around", table, "--out", "said.csv")
    assert code == 0
    assert "4 frames, 8 animals, 2 parts" in out
    assert read_deeplabcut(project / "said.csv").animals.tolist() == ["ina", "rex"] * 4
    code, out, _ = pose(
        "score", table, "--predictions", "said.csv", "--match", "name", "--normalise", "pixels", "--json"
    )
    told = json.loads(out)
    assert {"rmse", "oks", "average_precision", "confidence_error"} <= {row["measure"] for row in told["scores"]}
    code, _, error = pose("score", table, "--predictions", "said.csv", "--match", "nmae")
    assert (code, "did you mean 'name'" in error) == (2, True)


def test_one_video_is_split_by_time(pose, project):
    code, out, error = pose(
        "train", project, "--steps", 2, "--backbone", "small:width=4", "--size", "32x32", "--out", "net"
    )
    assert code == 0
    assert "learnt from 4 frames" in out  # two animals in each of two frames
    assert "nothing of other animals, cameras or days" in error
    code, _, error = pose("train", project, "--individual-by", "who.csv", "--out", "other")
    assert (code, "there is no table of individuals who.csv" in error) == (2, True)


def test_a_network_is_like_itself(pose, project):
    same = ("net.safetensors", "net.safetensors", "--data", "drawn:individuals=2,frames=6,height=32,width=32")
    code, out, error = pose("similarity", *same)
    assert (code, error) == (0, "")
    assert "CKA of 1.000 on average" in out
