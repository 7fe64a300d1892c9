"""CCC: calibrated on a small model, generated while it is read, and as hard as it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conftest import CommandLine

from holdfast.adapters import NoAdaptation
from holdfast.data import ArrayData, digits
from holdfast.errors import HoldfastError
from holdfast.loop import evaluate
from holdfast.models import LeNet
from holdfast.models.training import fit
from holdfast.shifts import Contrast, GaussianBlur, GaussianNoise
from holdfast.streams import CCC, Calibration, calibrate
from holdfast.streams.augment import augmented
from holdfast.testing.streams import STREAM_LAWS

SHIFTS = (GaussianNoise, Contrast, GaussianBlur)
SETTINGS = {"samples": 1000, "step": 1.0, "flip": False, "crop": 0.0}


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LeNet(width=4)
    fit(model, digits("train"), epochs=6)
    return model


@pytest.fixture(scope="module")
def data():
    return digits("test")


@pytest.fixture(scope="module")
def folder(model, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    calibrate(model, data, folder, SHIFTS, **SETTINGS)
    return folder


@pytest.fixture
def stream(data, folder):
    return CCC(data, Calibration.load(folder), difficulty=0.7, speed=40, length=1000, batch_size=64)


@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream, data):
    law(stream, data)


def test_counts_are_those_of_the_model_by_hand(folder, model, data):
    calibration = Calibration.load(folder)
    chosen = np.random.default_rng([0, len(data)]).permutation(len(data))
    ids = torch.arange(len(data))
    images = Contrast(2)(GaussianNoise(3)(data.images(chosen), ids, 0), ids, 0)
    with torch.no_grad():
        right = int((model(images).argmax(1).numpy() == data.targets[chosen]).sum())
    assert calibration.counts["gaussian_noise", "contrast"][3, 2] == right
    assert len(calibration.counts) == 6
    assert calibration.counts["contrast", "gaussian_noise"][0, 0] == calibration.clean


def test_a_stopped_calibration_goes_on_and_measures_no_pair_twice(model, data, folder, tmp_path, monkeypatch):
    import shutil

    shutil.copytree(folder, tmp_path / "half")
    (tmp_path / "half" / "pairs" / "contrast gaussian_blur.npy").unlink()
    with pytest.raises(HoldfastError, match="is not complete: contrast, gaussian_blur is missing"):
        Calibration.load(tmp_path / "half")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "half" / "pairs").iterdir()}
    again = calibrate(model, data, tmp_path / "half", SHIFTS, **SETTINGS)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert again.fingerprint() == Calibration.load(folder).fingerprint()


def test_a_calibration_of_another_model_or_setting_is_not_continued(data, folder):
    with pytest.raises(HoldfastError, match="calibration with another model"):
        calibrate(LeNet(width=4), data, folder, SHIFTS, **SETTINGS)
    with pytest.raises(HoldfastError, match="calibration with another step"):
        calibrate(LeNet(width=4), data, folder, SHIFTS, **SETTINGS | {"step": 2.5})


def test_a_calibration_of_other_data_is_refused(folder):
    other = ArrayData(np.zeros((5, 32, 32), np.uint8), np.zeros(5, int))
    with pytest.raises(HoldfastError, match="made on other data"):
        CCC(other, Calibration.load(folder))


def test_walk_moves_by_one_step_and_hands_over_to_the_next_pair(stream):
    walk = stream.walk()
    assert len(walk) == 25
    for _, one, two in zip(range(len(walk)), walk.itertuples(), walk.iloc[1:].itertuples(), strict=False):
        if (one.first, one.second) == (two.first, two.second):
            assert (one.severity_1 - two.severity_1, two.severity_2 - one.severity_2) in {(1, 0), (0, 1)}
        else:
            assert one.severity_1 == 0
            assert two.first == one.second
            assert two.severity_2 == 0


def test_a_batch_is_made_as_the_walk_says(stream, data):
    batch, walk = stream[10], stream.walk()
    for row in (0, 30, 63):
        position = int(batch.ids[row])
        stage = walk.iloc[position // 40]
        by_name = {shift.name: shift for shift in SHIFTS}
        image = data.images(np.flatnonzero(data.rows == batch.context["sample"][row]))
        ids = batch.ids[row : row + 1]
        image = by_name[stage["first"]](stage["severity_1"])(image, ids, stream.seed)
        image = by_name[stage["second"]](stage["severity_2"])(image, ids, stream.seed)
        assert torch.equal(batch.inputs[row : row + 1], image)
        assert batch.context["shift"][row] == f"{stage['first']} > {stage['second']}"


def test_accuracy_stays_near_what_the_walk_expects(stream, model):
    long = replace(stream, length=8000, speed=100, rule="steady")
    outputs, walk = evaluate(NoAdaptation(model), long), long.walk()
    right = outputs.correct().reshape(-1, 1000).mean(1)
    expected = walk["expected"].to_numpy().reshape(-1, 10).mean(1)
    assert np.abs(right - expected).max() < 0.05  # 3 standard errors of 1,000 images


def test_a_position_far_away_is_read_without_those_before_it(data, folder, monkeypatch):
    stream = CCC(data, Calibration.load(folder), difficulty=0.7, length=7_500_000, speed=1000)
    read = []
    images = type(data).images
    monkeypatch.setattr(type(data), "images", lambda self, places: read.append(len(places)) or images(self, places))
    batch = stream[len(stream) - 1]
    assert int(batch.ids[-1]) == 7_499_999
    assert read == [len(batch)]


def test_difficulties_by_name_lie_between_chance_and_clean(folder):
    calibration = Calibration.load(folder)
    clean = calibration.clean / calibration.samples
    targets = [calibration.target(name) for name in ("hard", "medium", "easy")]
    assert 0.1 < targets[0] < targets[1] < targets[2] < clean
    resnet = replace(calibration, clean=7610, samples=10000, classes=1000)
    assert [round(resnet.target(name), 2) for name in ("easy", "medium", "hard")] == [0.34, 0.17, 0.02]


def test_wrong_settings_are_named(data, folder, model):
    calibration = Calibration.load(folder)
    for settings, message in (
        ({"difficulty": "midium"}, "unknown difficulty 'midium'; did you mean 'medium'"),
        ({"difficulty": 1.5}, "difficulty is 1.5"),
        ({"rule": "txt"}, "unknown rule 'txt'; did you mean 'text'"),
        ({"speed": 0}, "speed is 0"),
        ({"length": 2.5}, "length is 2.5"),
    ):
        with pytest.raises(HoldfastError, match=message):
            CCC(data, calibration, **settings)
    with pytest.raises(HoldfastError, match=r"step is 0\.3"):
        calibrate(model, data, folder, SHIFTS, step=0.3)
    with pytest.raises(HoldfastError, match="at least two shifts"):
        calibrate(model, data, folder, SHIFTS[:1])
    with pytest.raises(HoldfastError, match="is no calibration"):
        Calibration.load(folder / "pairs")


def test_flips_and_crops_depend_on_the_id_alone():
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(6)
    together = augmented(images, ids, 3, flip=True, crop=0.25)
    assert torch.equal(together[4:5], augmented(images[4:5], ids[4:5], 3, flip=True, crop=0.25))
    assert not torch.equal(together, images)
    assert torch.equal(augmented(images, ids, 3, flip=False, crop=0.0), images)
    flipped = augmented(images, torch.arange(6), 3, flip=True, crop=0.0)
    kinds = [
        torch.equal(one, two) or 2 * torch.equal(one, two.flip(-1)) for one, two in zip(flipped, images, strict=True)
    ]
    assert all(kinds)
    assert len(set(kinds)) == 2


CALIBRATE = ["--shift", "contrast", "--shift", "gaussian_noise", "--samples", 60, "--step", 2.5, "--quiet"]


def test_from_the_command_line(tmp_path):
    holdfast = CommandLine(tmp_path)
    done = holdfast("calibrate", "--model", "lenet", "--data", "digits", "--out", "cal", *CALIBRATE)
    assert done.returncode == 0, done.stderr
    assert "use it with" in done.stdout
    run = ["run", "--model", "lenet", "--data", "digits", "--out", "out", "--json", "--quiet"]
    done = holdfast(*run, "--stream", "ccc:calibration=cal,difficulty=0.2,speed=50,length=500")
    assert done.returncode == 0, done.stderr
    wrong = holdfast("calibrate", "--model", "mlp", "--data", "digits", "--out", "cal", *CALIBRATE)
    assert wrong.returncode == 2
    assert "another model" in wrong.stderr
