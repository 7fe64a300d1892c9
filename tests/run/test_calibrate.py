"""Calibration: counts that anybody can check, in files that a stopped run leaves whole, of one model and one data."""

import json
import logging
import random
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.streams.conftest import SCALE, SHIFTS

from haptera.catalog import find
from haptera.data import ArrayData, Classes, digits
from haptera.errors import HapteraError, Unfinished
from haptera.models import LeNet, ModelSource
from haptera.run.calibrate import Scale, calibrate, load_calibration
from haptera.shifts import Contrast, Fog, GaussianNoise
from haptera.streams.walk import flip_and_crop

COARSE = Scale(50, 2.5, flip=True, crop=0.25)


def subset(targets, samples):
    """Random places; the k-th of a class comes when a share of (k - 1/2) / size of every class has come."""
    places = np.random.default_rng([0, len(targets)]).permutation(len(targets))
    came, sizes, keys = {}, np.bincount(targets), []
    for place in places:
        label = int(targets[place])
        came[label] = came.get(label, 0) + 1
        keys.append((came[label] - 0.5) / sizes[label])
    return np.array([place for _, place in sorted(zip(keys, places, strict=True), key=lambda pair: pair[0])])[:samples]


def test_counts_are_those_of_the_model_by_hand(model, data, tmp_path):
    calibration = calibrate(model, data, tmp_path, SHIFTS[:2], COARSE)
    chosen, ids = subset(data.targets, 50), torch.arange(50)
    seen = flip_and_crop(data.images(chosen), ids, 0, flip=True, crop=0.25)
    noisy = torch.round(GaussianNoise(2.5)(seen, ids, 0) * 255) / 255
    with torch.no_grad():
        right = {
            name: int((model(images).argmax(1).numpy() == data.targets[chosen]).sum())
            for name, images in {"clean": seen, "both": Contrast(5)(noisy, ids, 0)}.items()
        }
    counts = calibration.counts["gaussian_noise", "contrast"]
    assert counts.shape == (3, 3)
    assert counts[1, 2] == right["both"]
    assert counts[0, 0] == calibration.clean == right["clean"]
    assert list(calibration.counts) == [("gaussian_noise", "contrast"), ("contrast", "gaussian_noise")]


def test_every_class_is_in_the_subset_in_proportion(model, tmp_path):
    targets = np.repeat([0, 1, 2], [600, 300, 100])
    data, shown = ArrayData(np.zeros((1000, 16, 16), np.uint8), targets), []
    data.images = lambda places: shown.append(places) or ArrayData.images(data, places)
    calibrate(model, data, tmp_path, SHIFTS[:2], Scale(50, 5, flip=False, crop=0))
    assert np.bincount(targets[np.unique(np.concatenate(shown))]).tolist() == [30, 15, 5]


@pytest.mark.long
def test_counts_do_not_depend_on_batches_or_processes(model, data, tmp_path):
    alone = calibrate(model, data, tmp_path / "alone", SHIFTS, COARSE)
    cut = calibrate(model, data, tmp_path / "cut", SHIFTS, COARSE, batch_size=7)
    many = calibrate(model, data, tmp_path / "many", SHIFTS, COARSE, jobs=2)
    assert alone.fingerprint() == cut.fingerprint() == many.fingerprint()


def test_the_model_stays_as_it_was(data, tmp_path):
    model = LeNet(size=16, width=2).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    calibrate(model, data, tmp_path, SHIFTS[:2], COARSE)
    assert model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_classes_of_the_data_are_mapped_to_those_of_the_model(model, data, tmp_path):
    def mapped(classes):
        other = ArrayData(data.images(np.arange(len(data))), data.targets % 2)
        other.classes = classes
        return calibrate(model, other, tmp_path / str(classes.restrict), SHIFTS[:2], COARSE)

    parity = Classes(((0, 2, 4, 6, 8), (1, 3, 5, 7, 9)))
    chosen = subset(data.targets % 2, 50)
    seen = flip_and_crop(data.images(chosen), torch.arange(50), 0, flip=True, crop=0.25)
    with torch.no_grad():
        logits = model(seen).numpy()
    targets = data.targets[chosen] % 2
    calibration = mapped(parity)
    assert calibration.clean == (logits.argmax(1) % 2 == targets).sum()
    assert calibration.classes == 10
    few = mapped(Classes(((0, 2), (1,)), restrict=True))
    assert few.clean == (logits[:, :3].argmax(1) % 2 == targets).sum()
    assert few.classes == 3


def test_a_stopped_calibration_goes_on_and_measures_no_pair_twice(model, data, calibrated, tmp_path):
    half = tmp_path / "half"
    shutil.copytree(calibrated, half)
    (half / "pairs" / "contrast gaussian_blur.npy").unlink()
    with pytest.raises(HapteraError, match="is not complete: contrast, gaussian_blur is missing"):
        load_calibration(half)
    stamps = {path: path.stat().st_mtime_ns for path in (half / "pairs").iterdir()}
    again = calibrate(model, data, half, SHIFTS, SCALE)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert again.fingerprint() == load_calibration(calibrated).fingerprint()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda content: content[:-1], "bytes, and had"),
        (lambda content: content[:-8] + bytes([content[-8] ^ 1]) + content[-7:], "is not what it was"),
    ],
)
def test_a_damaged_pair_is_named_refused_and_measured_again(
    model, data, calibrated, tmp_path, caplog, spoil, said, jobs
):
    folder = tmp_path / "damaged"
    shutil.copytree(calibrated, folder)
    damaged, other = (folder / "pairs" / f"{name}.npy" for name in ("contrast gaussian_blur", "gaussian_blur contrast"))
    damaged.write_bytes(spoil(damaged.read_bytes()))
    with pytest.raises(HapteraError, match=rf"contrast gaussian_blur\.npy .*{said}"):
        load_calibration(folder)
    stamp = other.stat().st_mtime_ns
    again = calibrate(model, data, folder, SHIFTS, SCALE, jobs=jobs)
    assert f"{damaged} " in caplog.text
    assert said in caplog.text
    assert other.stat().st_mtime_ns == stamp
    assert again.fingerprint() == load_calibration(calibrated).fingerprint()


def test_a_full_disk_leaves_what_is_finished_and_the_same_call_goes_on(model, data, tmp_path, monkeypatch):
    alone = calibrate(model, data, tmp_path / "alone", SHIFTS, COARSE)
    real, calls = np.save, []

    def full(file, counts):
        calls.append(file)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        real(file, counts)

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(Unfinished, match="No space left on device; 2 finished pairs are intact, the same command goes"):
        calibrate(model, data, tmp_path / "out", SHIFTS, COARSE)
    monkeypatch.undo()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pairs").iterdir()}
    assert len(kept) == 2
    assert calibrate(model, data, tmp_path / "out", SHIFTS, COARSE).fingerprint() == alone.fingerprint()
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())


def test_a_calibration_of_the_first_version_is_refused(tmp_path):
    (tmp_path / "calibration.json").write_text("{}")
    with pytest.raises(HapteraError, match=r"holds a calibration of version 0\.1"):
        load_calibration(tmp_path)


def test_it_says_how_much_is_ahead(model, data, tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="haptera"):
        calibrate(model, data, tmp_path, SHIFTS, COARSE)
    assert "to measure: 6 of 6 pairs, 2,700 forward passes, about" in caplog.text  # 6 x 9 x 50
    (tmp_path / "pairs" / "contrast gaussian_blur.npy").unlink()
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="haptera"):
        calibrate(model, data, tmp_path, SHIFTS, COARSE)
        calibrate(model, data, tmp_path, SHIFTS, COARSE)
    said = [record.message for record in caplog.records]
    assert said[0].endswith("contrast gaussian_blur.npy is missing; it is made again")
    assert [each.partition(" forward")[0] for each in said[1:]] == ["to measure: 1 of 6 pairs, 450"]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"model": LeNet(size=16, width=4)}, "model"),
        ({"data": ArrayData(np.zeros((400, 16, 16), np.uint8), np.zeros(400, int))}, "data"),
        ({"shifts": (*SHIFTS, Fog)}, "shifts"),
        ({"scale": replace(SCALE, step=2.5)}, "step"),
        ({"scale": replace(SCALE, samples=20)}, "samples"),
        ({"scale": replace(SCALE, flip=True)}, "flip"),
        ({"scale": replace(SCALE, seed=1)}, "seed"),
    ],
)
def test_a_calibration_of_something_else_is_not_continued(changed, what, model, data, calibrated):
    settings = {"model": model, "data": data, "out": calibrated, "shifts": SHIFTS, "scale": SCALE} | changed
    with pytest.raises(HapteraError, match=f"holds a calibration with another {what}; use another folder, or delete"):
        calibrate(**settings)


def test_difficulties_by_name_lie_between_chance_and_clean(calibrated):
    calibration = load_calibration(calibrated)
    clean = calibration.clean / calibration.samples
    targets = [calibration.target(name) for name in ("hard", "medium", "easy")]
    assert 0.1 < targets[0] < targets[1] < targets[2] < clean
    resnet = replace(calibration, clean=7610, samples=10000, classes=1000)
    assert [round(resnet.target(name), 2) for name in ("easy", "medium", "hard")] == [0.34, 0.17, 0.02]


def test_shifts_that_never_get_hard_enough_are_named(calibrated):
    calibration = load_calibration(calibrated)
    falls, stays = np.array([[9, 9], [2, 2]]), np.array([[9, 3], [7, 1]])
    made_up = replace(calibration, counts={("fog", "snow"): falls, ("snow", "fog"): stays}, samples=10)
    assert made_up.out_of_reach(0.6) == ["snow"]
    assert made_up.out_of_reach(0.66) == []  # near enough
    assert made_up.out_of_reach(0.1) == ["fog", "snow"]


def test_wrong_settings_are_named(model, data, tmp_path):
    unlabelled = ArrayData(data.images(np.arange(5)))
    few = LeNet(size=16, classes=3, width=2)
    for settings, message in (
        ({"shifts": SHIFTS[:1]}, "at least two shifts, each once; found gaussian_noise"),
        ({"shifts": (Contrast, Contrast)}, "each once; found contrast . contrast"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"jobs": 0}, "jobs is 0"),
        ({"data": unlabelled}, "needs labels; array has none"),
        ({"model": few}, "the data has 10 classes .* and the model 3 outputs"),
    ):
        with pytest.raises(HapteraError, match=message):
            calibrate(**{"model": model, "data": data, "out": tmp_path, "shifts": SHIFTS, "scale": COARSE} | settings)
    for settings, message in (
        ({"step": 0.3}, r"step is 0\.3; a number that divides 5"),
        ({"step": 0}, "step is 0"),
        ({"samples": 0}, "samples is 0"),
    ):
        with pytest.raises(HapteraError, match=message):
            Scale(**settings)
    with pytest.raises(HapteraError, match=r"there is no calibration in .*; make one with: haptera calib"):
        load_calibration(tmp_path / "none")


NAMES = ("contrast", "gaussian_noise", "impulse_noise")
COMMAND = ["calibrate", "--model", "lenet", "--data", "digits", "--out", "cal", "--step", "1", "--samples", "50"]
COMMAND += [word for name in NAMES for word in ("--shift", name)]


def finished(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cal" / "pairs").glob("*.npy")}


def stopped(haptera, how, *more):
    """Start, and end it with a signal once another pair is noted; its exit code, and what it said."""
    process = haptera.start_until("*/pairs/*.npy", *COMMAND, *more)
    process.send_signal(how)
    said = process.communicate()[1]
    return process.returncode, said


@pytest.mark.long
def test_killed_and_interrupted_it_goes_on_to_the_same_counts(tmp_path, haptera):
    assert stopped(haptera, signal.SIGKILL)[0] == -signal.SIGKILL
    kept = finished(tmp_path)
    for how in (signal.SIGINT, signal.SIGTERM):
        code, said = stopped(haptera, how)
        assert code == 130
        assert f"stopped after {len(finished(tmp_path))} of 6 pairs; the same command goes on from there" in said
    assert kept.items() <= finished(tmp_path).items(), "a finished pair was measured again"
    done = haptera(*COMMAND, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pairs"] == 6
    assert kept.items() <= finished(tmp_path).items()
    shifts = [find("shifts", name) for name in NAMES]
    alone = calibrate(ModelSource("lenet")(), digits(), tmp_path / "alone", shifts, Scale(50, 1))
    assert load_calibration(tmp_path / "cal").fingerprint() == alone.fingerprint()


@pytest.mark.long
def test_killed_at_a_random_moment_with_two_processes_it_goes_on(tmp_path, haptera):
    moments = random.Random(0)
    for _ in range(3):
        process = haptera.start(*COMMAND, "--jobs", 2)
        time.sleep(moments.uniform(0.5, 5))
        process.kill()
        process.communicate()
    assert haptera(*COMMAND, "--jobs", 2).returncode == 0
    shifts = [find("shifts", name) for name in NAMES]
    alone = calibrate(ModelSource("lenet")(), digits(), tmp_path / "alone", shifts, Scale(50, 1))
    assert load_calibration(tmp_path / "cal").fingerprint() == alone.fingerprint()
