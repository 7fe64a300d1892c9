"""Training learns, repeats, and goes on from a checkpoint as if it had never stopped; models and files."""

import os
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from haptera.errors import HapteraError, Unfinished
from haptera.measures import keypoint_distances
from haptera.pose import PoseModel, Training, fit, predict
from haptera.pose.checkpoints import check_result
from haptera.pose.training import batch_rows, schedule


def build(parts, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PoseModel(parts, "small", settings={"width": 4})


def test_training_finds_the_parts_of_animals_it_has_seen(seen, trained):
    fresh, learnt = predict(build(seen.parts).eval(), seen), predict(trained, seen)
    before, after = (np.nanmedian(keypoint_distances(said.keypoints, seen.keypoints)) for said in (fresh, learnt))
    assert after < 0.2 * before
    assert learnt.confidence.mean() > 2 * fresh.confidence.mean()


def test_a_stopped_training_ends_as_one_that_was_not(animals, tmp_path):
    training = Training(steps=8, batch_size=4, seed=5)
    straight = build(animals.parts)
    history = fit(straight, animals, training, every=3)

    class StopError(Exception):
        pass

    def stop(step):
        if step == 6:
            raise StopError

    first = build(animals.parts)
    with pytest.raises(StopError):
        fit(first, animals, training, every=3, out=tmp_path, watch=stop)
    second = build(animals.parts, seed=9)  # whatever it was, the checkpoint replaces it
    seen = []
    again = fit(second, animals, training, every=3, out=tmp_path, watch=seen.append)
    assert seen == [8]
    pd.testing.assert_frame_equal(history, again)
    assert same_weights(straight, second)
    assert same_weights(straight, PoseModel.load(tmp_path / "model.safetensors"))
    pd.testing.assert_frame_equal(history, pd.read_csv(tmp_path / "history.csv"))


def same_weights(one, two):
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))


TRAINING = Training(steps=9, batch_size=4, seed=5)


@pytest.fixture(scope="module")
def straight(animals, tmp_path_factory):
    """A training that nothing disturbed, with checkpoints after 3, 6 and 9 steps, and its folder."""
    model, folder = build(animals.parts), tmp_path_factory.mktemp("straight")
    fit(model, animals, TRAINING, every=3, out=folder, texts={"note.txt": "mine alone"})
    return model, folder


@pytest.mark.parametrize("spoil", [cut_short, flip_a_bit, Path.unlink])
@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["checkpoint-1"], [9]),  # the last one: it goes on from the one before
        (["checkpoint-2"], []),
        (["checkpoint-1", "checkpoint-2"], [3, 6, 9]),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_last_whole_one_is_taken(
    animals, straight, tmp_path, caplog, names, steps, spoil
):
    model, before = straight
    folder = tmp_path / "net"
    shutil.copytree(before, folder)
    for name in names:
        spoil(folder / f"{name}.safetensors")
    again, seen = build(animals.parts, seed=9 if len(names) == 1 else 0), []
    fit(again, animals, TRAINING, every=3, out=folder, texts={"note.txt": "mine alone"}, watch=seen.append)
    assert seen == steps
    assert all(f"{folder / name}.safetensors " in caplog.text for name in names)
    assert ("training begins again from the start" in caplog.text) == (len(names) == 2)
    assert same_weights(model, again)
    assert (folder / "model.safetensors").read_bytes() == (before / "model.safetensors").read_bytes()


@pytest.mark.parametrize("spoil", [cut_short, flip_a_bit, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "history.csv", "note.txt"])
def test_a_damaged_result_is_named_refused_and_written_again(animals, straight, tmp_path, caplog, name, spoil):
    folder = tmp_path / "net"
    shutil.copytree(straight[1], folder)
    content = (folder / name).read_bytes()
    spoil(folder / name)
    with pytest.raises(HapteraError, match=re.escape(name)):
        check_result(folder / name)
    stamp = (folder / "checkpoint-1.safetensors").stat().st_mtime_ns
    seen = []
    arguments = {"out": folder, "texts": {"note.txt": "mine alone"}, "watch": seen.append}
    fit(build(animals.parts, seed=9), animals, TRAINING, every=3, **arguments)
    assert f"{folder / name} " in caplog.text
    assert (folder / name).read_bytes() == content
    assert seen == []
    assert (folder / "checkpoint-1.safetensors").stat().st_mtime_ns == stamp
    check_result(folder / name)


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_a_full_disk_loses_what_came_after_the_last_checkpoint(animals, straight, tmp_path, monkeypatch, after):
    real, calls = os.fsync, []

    def full(handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            calls.append(handle)
            if len(calls) > 2 + 2 * after:  # the plan and the journal, then each file and its line in the journal
                raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unfinished, match=r"No space left on device; .*the same command goes on"):
        fit(build(animals.parts), animals, TRAINING, every=3, out=tmp_path)
    monkeypatch.undo()
    again, seen = build(animals.parts, seed=9 if after else 0), []
    fit(again, animals, TRAINING, every=3, out=tmp_path, watch=seen.append)
    assert seen == [3, 6, 9][after:]
    assert same_weights(straight[0], again)
    assert (tmp_path / "model.safetensors").read_bytes() == (straight[1] / "model.safetensors").read_bytes()
    assert not list(tmp_path.glob(".*.part"))


def test_a_checkpoint_of_other_settings_is_refused(animals, tmp_path):
    fit(build(animals.parts), animals, Training(2, batch_size=2), out=tmp_path)
    with pytest.raises(HapteraError, match=r"holds a training with another steps; .*\(steps was 2, is 3\)"):
        fit(build(animals.parts), animals, Training(3, batch_size=2), out=tmp_path)
    with pytest.raises(HapteraError, match="holds a training with another data; use another folder"):
        fit(build(animals.parts), animals.select(np.arange(4)), Training(2, batch_size=2), out=tmp_path)
    other = PoseModel(animals.parts, "small", settings={"width": 8})
    with pytest.raises(HapteraError, match="holds a training with another width"):
        fit(other, animals, Training(2, batch_size=2), out=tmp_path)


def test_a_training_of_the_first_version_is_refused(animals, tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"")
    with pytest.raises(HapteraError, match=r"holds a training of version 0\.1"):
        fit(build(animals.parts), animals, Training(2), out=tmp_path)


def test_training_leaves_the_global_generator_alone(animals):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit(build(animals.parts), animals, Training(1, batch_size=2))
    assert torch.equal(torch.rand(2), expected)


def test_every_pass_takes_each_frame_once_whatever_the_batches():
    rows = np.concatenate([batch_rows(10, step, 4, seed=1) for step in range(5)])
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()
    assert len(batch_rows(2, 0, 8, seed=1)) == 8  # fewer frames than a batch


def test_the_rate_falls_along_a_cosine_and_restarts():
    rates = [schedule(step, 100, 1e-2, 1e-4, cycles=2) for step in range(100)]
    assert rates[0] == rates[50] == 1e-2
    assert rates[25] == pytest.approx((1e-2 + 1e-4) / 2)
    assert min(rates) > 1e-4
    assert rates[:50] == sorted(rates[:50], reverse=True)


@pytest.mark.long
def test_a_part_without_labels_ends_with_little_confidence(animals):
    blind = animals.select(np.arange(len(animals)))
    blind.keypoints = blind.keypoints.copy()
    blind.keypoints[:, 3] = np.nan
    model = build(blind.parts)
    fit(model, blind, Training(30, lr=5e-3))
    confidence = predict(model, blind).confidence.mean(0)
    assert confidence[3] < 0.05
    assert confidence[3] < 0.5 * np.median(np.delete(confidence, 3))


def test_bad_settings_are_refused(animals):
    with pytest.raises(HapteraError, match="the same were expected"):
        fit(build(["a"]), animals)
    with pytest.raises(HapteraError, match="steps is 0"):
        Training(steps=0)
    with pytest.raises(HapteraError, match="loss is not finite"):
        fit(build(animals.parts), animals, Training(30, lr=1e30, batch_size=2))


def test_a_model_survives_its_file(animals, trained, tmp_path):
    trained.save(tmp_path / "net.safetensors")
    read = PoseModel.load(tmp_path / "net.safetensors")
    assert (read.parts, [tuple(pair) for pair in read.skeleton]) == (trained.parts, list(trained.skeleton))
    images = animals.images(np.arange(3))
    with torch.no_grad():
        assert torch.equal(read(images), trained(images))
    with pytest.raises(HapteraError, match="there is no file"):
        PoseModel.load(tmp_path / "gone.safetensors")


def test_a_model_with_a_backbone_of_ones_own_is_loaded_with_that_backbone(animals, tmp_path):
    def own():
        return torch.nn.Conv2d(3, 4, 3, 2, 1)

    model = PoseModel(["a"], own(), origin="net.py:own").eval()
    for _ in range(2):  # what was loaded can be saved again
        model.save(tmp_path / "own.safetensors")
        with pytest.raises(HapteraError, match=r"a backbone of its owner's, 'net.py:own'.*name it again: --backbone"):
            PoseModel.load(tmp_path / "own.safetensors")
        model = PoseModel.load(tmp_path / "own.safetensors", own())
    with pytest.raises(HapteraError, match="do not fit the model"):
        PoseModel.load(tmp_path / "own.safetensors", torch.nn.Conv2d(3, 5, 3, 2, 1))
    images = animals.images(np.arange(2))
    with torch.no_grad():
        assert torch.equal(PoseModel.load(tmp_path / "own.safetensors", own())(images), model(images))


def test_prediction_of_arrays_files_and_data_sets_is_the_same(animals, trained, tmp_path):
    pixels = (animals.images(np.arange(5)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    for row, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{row}.png")
    one, two = predict(trained, pixels, batch_size=2), predict(trained, tmp_path)
    three = predict(trained, animals.select(np.arange(5)))
    for other in (two, three):
        assert np.allclose(one.keypoints, other.keypoints, atol=1e-3)
        assert np.allclose(one.confidence, other.confidence, atol=1e-5)


def test_files_of_different_sizes_are_each_predicted_as_they_are(trained, tmp_path):
    random = np.random.default_rng(0)
    shapes = [(48, 64), (40, 50), (48, 64), (33, 47)]
    alone = []
    for row, shape in enumerate(shapes):
        image = random.integers(0, 255, (*shape, 3), dtype=np.uint8)
        Image.fromarray(image).save(tmp_path / f"{row}.png")
        alone.append(predict(trained, image[None]).keypoints[0])
    assert np.allclose(predict(trained, tmp_path).keypoints, np.stack(alone), atol=1e-3)


def test_what_cannot_be_predicted_says_why(trained, tmp_path):
    with pytest.raises(HapteraError, match="there are no images"):
        predict(trained, tmp_path)
    with pytest.raises(HapteraError, match="there is no image"):
        predict(trained, [tmp_path / "gone.png"])
    with pytest.raises(HapteraError, match="a PoseModel, or an adapter around one"):
        predict(torch.nn.Flatten(), tmp_path)


def test_frozen_statistics_stay_and_scales_learn(animals, seen):
    model = PoseModel(animals.parts, settings={"width": 4})
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fit(model, seen, Training(steps=2, batch_size=2, frozen_statistics=True))
    after = model.state_dict()
    assert all(bool((after[name] == before[name]).all()) for name in before if "running" in name)
    assert any(bool((after[name] != before[name]).any()) for name in before if name.endswith("weight"))
