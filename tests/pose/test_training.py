"""Training learns, repeats, and goes on from a checkpoint as if it had never stopped; models and files."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from haptera.errors import HapteraError
from haptera.measures import keypoint_distances
from haptera.pose import PoseModel, fit, predict
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
    settings = {"steps": 8, "every": 3, "batch_size": 4, "seed": 5}
    straight = build(animals.parts)
    history = fit(straight, animals, **settings)

    class StopError(Exception):
        pass

    def stop(step):
        if step == 6:
            raise StopError

    first = build(animals.parts)
    with pytest.raises(StopError):
        fit(first, animals, **settings, checkpoint=tmp_path / "c.safetensors", watch=stop)
    second = build(animals.parts, seed=9)  # whatever it was, the checkpoint replaces it
    seen = []
    again = fit(second, animals, **settings, checkpoint=tmp_path / "c.safetensors", watch=seen.append)
    assert seen == [8]
    pd.testing.assert_frame_equal(history, again)
    for one, two in zip(straight.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def test_a_checkpoint_of_other_settings_is_refused(animals, tmp_path):
    path = tmp_path / "c.safetensors"
    fit(build(animals.parts), animals, steps=2, batch_size=2, checkpoint=path)
    with pytest.raises(HapteraError, match="of other data or settings"):
        fit(build(animals.parts), animals, steps=3, batch_size=2, checkpoint=path)


def test_training_leaves_the_global_generator_alone(animals):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit(build(animals.parts), animals, steps=1, batch_size=2)
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


def test_a_part_without_labels_ends_with_little_confidence(animals):
    blind = animals.select(np.arange(len(animals)))
    blind.keypoints = blind.keypoints.copy()
    blind.keypoints[:, 3] = np.nan
    model = build(blind.parts)
    fit(model, blind, steps=30, lr=5e-3)
    confidence = predict(model, blind).confidence.mean(0)
    assert confidence[3] < 0.05
    assert confidence[3] < 0.5 * np.median(np.delete(confidence, 3))


def test_bad_settings_are_refused(animals):
    with pytest.raises(HapteraError, match="the same were expected"):
        fit(build(["a"]), animals)
    with pytest.raises(HapteraError, match="steps is 0"):
        fit(build(animals.parts), animals, steps=0)
    with pytest.raises(HapteraError, match="loss is not finite"):
        fit(build(animals.parts), animals, steps=30, lr=1e30, batch_size=2)


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
