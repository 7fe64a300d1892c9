"""`haptera pose`: train, predict, score, and what is said about bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from haptera.cli import main
from haptera.files.deeplabcut import KeypointTable
from haptera.pose import PoseModel, drawn_animals


class Done:
    """What a command in this process printed, and how it ended."""

    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


@pytest.fixture
def pose(tmp_path, monkeypatch, capsys):
    """Runs `haptera pose` in a folder, in this process, for starting one costs more than what is tested."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["pose", *map(str, arguments)])
        return Done(end.value.code or 0, *capsys.readouterr())

    return run


SMALL = "drawn:individuals=3,frames=6,height=48,width=64"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of DeepLabCut with drawn animals."""
    root = tmp_path_factory.mktemp("project")
    data = drawn_animals(3, 6, seed=1, height=48, width=64)
    for file, image in zip(data.files, data.images(np.arange(18)), strict=True):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0).numpy() * 255).astype(np.uint8)).save(root / file)
    KeypointTable(data.keypoints, data.parts, data.files, "me").write(root / "CollectedData_me.csv")
    return root


@pytest.mark.long
def test_train_predict_and_score(pose, project, tmp_path):
    trained = pose(
        "train", project, "--out", "net", "--individuals", 2, "--steps", 12, "--every", 6, "--json",
        "--backbone", "small:width=4", "--quiet",
    )  # fmt: skip
    said = json.loads(trained.stdout)
    assert said["frames"] == {"train": 6, "within": 6, "out": 6}
    again = pose(
        "train", project, "--out", "net", "--individuals", 2, "--steps", 12, "--every", 6, "--quiet",
        "--backbone", "small:width=4",
    )  # fmt: skip
    assert f"loss {said['loss']:.4f} after 12 steps" in again.stdout  # found finished
    predicted = pose("predict", "net/model.safetensors", project / "labeled-data", "--out", "said.csv")
    assert "18 frames, 22 parts" in predicted.stdout
    frame = pd.read_csv(tmp_path / "said.csv", header=[0, 1, 2], index_col=0)
    assert frame.shape == (18, 66)
    scored = pose("score", project, "--predictions", "said.csv", "--json")
    by_table = {(row["measure"], row["part"], row["individual"]): row for row in json.loads(scored.stdout)["scores"]}
    now = pose("score", project, "--model", "net/model.safetensors", "--adapter", "none", "--json")
    for row in json.loads(now.stdout)["scores"]:
        other = by_table[row["measure"], row["part"], row["individual"]]
        assert row["value"] == pytest.approx(other["value"], abs=1e-3)
    whole = pose(
        "score", project, "--model", "net/model.safetensors", "--split", "net/split.csv",
        "--shift", "contrast:5", "--out", "scores",
    )  # fmt: skip
    assert whole.returncode == 0, whole.stderr
    files = ("report.html", "table.parquet", "result.json", "calibration.json")
    assert whole.stdout.splitlines()[-1] == "  ".join(f"scores/{name}" for name in files)
    assert "out · contrast 5 · batchnorm:prior=0" in whole.stdout
    assert set(pd.read_parquet(tmp_path / "scores" / "table.parquet")["stream"]) == {"within", "out"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "gone.csv", "--out", "x"], "there is no table of keypoints gone.csv"),
        (["train", SMALL, "--out", "x", "--individuals", "9"], "9 of 3 individuals"),
        (["train", SMALL, "--out", "x", "--leave-out", "cow"], "unknown species 'cow'"),
        (
            ["train", "drawn:individual=3", "--out", "x"],
            "did you mean 'individuals'",
        ),
        (["train", SMALL, "--out", "x", "--backbone", "smal"], "did you mean 'small'"),
        (["train", "drawn", "--size", "40", "--out", "x"], "HEIGHTxWIDTH was expected"),
        (["predict", "net.py", "x", "--out", "y.csv"], "cannot read the model net.py"),
        (["predict", "gone", "x", "--out", "y.csv"], "there is no file gone"),
        (["predict", "gone", "x", "--out", "y.txt"], "a name ending in .csv or .h5 was expected"),
        (["score", "drawn"], "give either --predictions, a table, or --model"),
        (["score", "drawn", "--predictions", "p.csv", "--shift", "fog:1"], "need --model"),
        (["score", SMALL, "--predictions", "p.csv"], "there is no table of keypoints p.csv"),
        (["score", SMALL, "--model", "net.safetensors", "--shift", "fog"], "'fog' has no severity; fog:5 or fog:sev"),
        (["score", SMALL, "--model", "net.safetensors", "--shift", "fgo:3"], "did you mean 'fog'"),
        (["score", SMALL, "--model", "net.safetensors", "--shift", "fog:table=cifar"], "has no severity"),
        (["score", SMALL, "--model", "net.safetensors", "--shift", "fog:severty=3"], "did you mean 'severity'"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_was_expected(pose, tmp_path, arguments, message):
    (tmp_path / "net.py").write_text("")
    PoseModel(drawn_animals(1, 1).parts, settings={"width": 4}).save(tmp_path / "net.safetensors")
    done = pose(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_the_three(haptera):
    said = haptera("pose", "--help").stdout
    assert all(word in said for word in ("train", "predict", "score"))


def test_a_backbone_of_ones_own_is_named_again_by_who_loads_the_model(pose, project, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "net.py").write_text(
        "import torch\n\n\ndef build(width=4):\n    return torch.nn.Conv2d(3, width, 16, 16)\n"
    )
    backbone = ("--backbone", "own/net.py:build:width=3")
    trained = pose("train", project, "--out", "net", "--individuals", 1, "--steps", 2, "--quiet", *backbone)
    assert trained.returncode == 0, trained.stderr
    refused = pose("predict", "net/model.safetensors", project / "labeled-data", "--out", "said.csv")
    assert refused.returncode == 2
    assert "'net.py:build', which a file cannot bring along" in refused.stderr
    assert pose("predict", "net/model.safetensors", project, "--out", "said.csv", *backbone).returncode == 0
    assert pose("score", project, "--model", "net/model.safetensors", "--adapter", "none", *backbone).returncode == 0
    assert pose("score", project, "--model", "net/model.safetensors", "--backbone", "small").returncode == 2


@pytest.mark.long
def test_predict_and_score_bring_images_to_the_size_of_training(pose, project, tmp_path):
    train = (
        "train",
        project,
        "--out",
        "net",
        "--individuals",
        1,
        "--steps",
        2,
        "--quiet",
        "--backbone",
        "small:width=8",
    )
    assert pose(*train, "--size", "24x32").returncode == 0
    said = json.loads(pose("predict", "net/model.safetensors", project, "--out", "said.csv", "--json").stdout)
    assert said["size"] == [24, 32]
    as_trained = pose("score", project, "--predictions", "said.csv", "--json")
    for more in ((), ("--size", "24x32")):  # pixels of the images as they are, whatever the size
        again = pose("score", project, "--predictions", "said.csv", "--json", *more)
        assert json.loads(again.stdout) == json.loads(as_trained.stdout)
    now = pose("score", project, "--model", "net/model.safetensors", "--adapter", "none", "--json")
    by_table, by_model = (json.loads(done.stdout)["scores"] for done in (as_trained, now))
    for one, two in zip(by_table, by_model, strict=True):
        assert one["value"] == pytest.approx(two["value"], abs=2e-2)
    other = pose("predict", "net/model.safetensors", project, "--out", "other.csv", "--size", "48x64")
    assert "as in training" not in other.stdout
    assert (tmp_path / "said.csv").read_text() != (tmp_path / "other.csv").read_text()


def test_perfect_predictions_score_zero_with_a_size_too(pose, project):
    labels = project / "CollectedData_me.csv"
    for more in ((), ("--size", "24x32")):
        scores = json.loads(pose("score", project, "--predictions", labels, "--json", *more).stdout)["scores"]
        assert {row["value"] for row in scores if row["measure"] == "normalised_error"} == {0}
        assert {row["value"] for row in scores if row["measure"] == "pck"} == {1}


def test_what_errors_are_divided_by_and_missing_predictions_are_said(pose, tmp_path):
    files = np.array([f"v/{k}.png" for k in range(3)])
    labels = np.array([[[k, k], [k + 10.0, k + 10.0]] for k in range(3)])
    KeypointTable(labels, ("snout", "tail"), files, "me").write(tmp_path / "labels.csv")
    labels[1, 0] = np.nan
    KeypointTable(labels, ("snout", "tail"), files, "net").write(tmp_path / "said.csv")
    said = pose("score", "labels.csv", "--predictions", "said.csv").stdout
    assert "the box around the labels; there are no parts named nose and eye, --normalise takes two others" in said
    assert "1 of 6 labelled keypoints have no prediction" in said
    assert "PCK@0.3 0.833" in said
    chosen = pose("score", "labels.csv", "--predictions", "said.csv", "--normalise", "snout,tail").stdout
    assert "errors are over the distance from snout to tail of each individual" in chosen
    KeypointTable(labels[:, :1], ("snout",), files, "me").write(tmp_path / "one.csv")
    one = pose("score", "one.csv", "--predictions", "said.csv")
    assert one.returncode == 0, one.stderr
    assert "errors are in pixels, as one part alone" in one.stdout


@pytest.mark.parametrize("adapter", ["tent", "rpl", "memo", "lame", "rdumb", "cotta", "tent:reset=5", "eta:epochs=1"])
def test_adapters_for_classes_are_refused(pose, project, adapter):
    PoseModel(drawn_animals(1, 1).parts, settings={"width": 8}).save(project / "net.safetensors")
    done = pose("score", project, "--model", project / "net.safetensors", "--adapter", adapter)
    assert done.returncode == 2
    assert "learns from probabilities of classes, which keypoints do not have" in done.stderr


def test_a_split_survives_names_with_commas(pose, tmp_path):
    data = drawn_animals(2, 3, seed=1, height=48, width=64)
    files = np.array([f'frames/{name}, "left"/{k % 3}.png' for k, name in enumerate(data.individuals)])
    for file, image in zip(files, data.images(np.arange(6)), strict=True):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0).numpy() * 255).astype(np.uint8)).save(tmp_path / file)
    KeypointTable(data.keypoints, data.parts, files, "me").write(tmp_path / "CollectedData_me.csv")
    train = pose(
        "train", "CollectedData_me.csv", "--out", "net", "--steps", 1, "--backbone", "small:width=8", "--quiet"
    )
    assert train.returncode == 0, train.stderr
    score = ("score", "CollectedData_me.csv", "--model", "net/model.safetensors", "--adapter", "none")
    assert pose(*score, "--split", "net/split.csv").returncode == 0


@pytest.mark.parametrize("given", ["contrast:5", "contrast:severity=5", "contrast:5,table=imagenet"])
def test_a_shift_has_its_severity_as_a_word_or_by_name(pose, project, given):
    PoseModel(drawn_animals(1, 1).parts, settings={"width": 8}).save(project / "net.safetensors")
    done = pose("score", project, "--model", project / "net.safetensors", "--adapter", "none", "--shift", given)
    assert "data · contrast 5 · none" in done.stdout


def test_a_model_that_was_damaged_after_training_is_refused(pose, tmp_path):
    train = ("train", SMALL, "--out", "net", "--steps", 2, "--backbone", "small:width=4")
    assert pose(*train, "--quiet").returncode == 0
    path = tmp_path / "net" / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    refused = pose("score", SMALL, "--model", path)
    assert refused.returncode == 2
    assert "model.safetensors is not what it was when it was finished" in refused.stderr
    again = pose(*train)
    assert "model.safetensors is not what it was when it was finished; it is made again" in again.stderr
    assert path.read_bytes() == content
    assert pose("score", SMALL, "--model", path, "--adapter", "none").returncode == 0
