"""The same shifts, streams and adapters as for classes: outputs, table, moved keypoints, statistics per individual."""

from copy import copy, deepcopy
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import linregress

from haptera.adapters import BatchNorm, NoAdaptation, Offline
from haptera.errors import HapteraError
from haptera.measures import keypoint_distances
from haptera.outputs import Outputs
from haptera.pose import PoseData, decode, error_trend, evaluate, moved_keypoints, predict, score
from haptera.shifts import Compose, Contrast, Diffeo, Fog, GaussianNoise
from haptera.streams import Corruptions
from haptera.table import COLUMNS


def test_outputs_are_the_predictions_with_labels_and_survive_their_file(animals, trained, tmp_path):
    outputs = evaluate(trained, animals)
    assert np.allclose(outputs.arrays["keypoints"], predict(trained, animals).keypoints, atol=1e-3)
    outputs.save(tmp_path / "cell.npz")
    read = Outputs.load(tmp_path / "cell.npz")
    assert np.array_equal(read.arrays["confidence"], outputs.arrays["confidence"])
    assert np.array_equal(read.targets, animals.keypoints, equal_nan=True)
    assert read.context["individual"].tolist() == animals.individuals.tolist()


def test_a_corruption_leaves_keypoints_and_is_the_shift_of_each_frame(animals, trained):
    shift = GaussianNoise(2)
    outputs = evaluate(trained, animals, shift=shift, seed=4)
    assert np.array_equal(outputs.targets, animals.keypoints, equal_nan=True)
    row = 13
    image = shift(animals.images(np.array([row])), [row], 4)
    with torch.no_grad():
        expected = decode(trained(image), trained.stride)[0][0]
    assert np.allclose(outputs.arrays["keypoints"][row], expected, atol=1e-3)


def test_a_deformation_moves_a_dot_and_its_keypoint_alike():
    images = np.zeros((5, 60, 80, 3), np.uint8)
    keypoints = np.empty((5, 1, 2))
    for row in range(5):
        x, y = 30 + 5 * row, 20 + 4 * row
        keypoints[row, 0] = x, y
        images[row, y - 1 : y + 2, x - 1 : x + 2] = 255
    data = PoseData(images, keypoints, ["dot"])
    shift = Diffeo(delta=3, cutoff=3)
    moved = moved_keypoints(data, Compose([shift, Contrast(0)]), seed=2)
    assert np.linalg.norm(moved - keypoints, axis=2).max() > 1
    shown = shift(data.images(np.arange(5)), data.rows, 2)[:, 0].numpy()
    grid = np.stack(np.meshgrid(np.arange(80), np.arange(60)), 2)
    for image, point in zip(shown, moved[:, 0], strict=True):
        centre = (grid * image[:, :, None]).sum((0, 1)) / image.sum()
        assert np.linalg.norm(centre - point) < 0.4
    assert np.array_equal(moved_keypoints(data, Fog(3)), keypoints)
    with pytest.raises(HapteraError, match="follow one deformation"):
        moved_keypoints(data, Compose([shift, shift]))


def test_statistics_are_those_of_each_individual_and_shift(animals, trained):
    """BatchNorm with N = 0, all frames of an individual in a batch: the network in train mode on these frames."""
    outputs = evaluate(trained, animals, adapter=partial(BatchNorm, prior=0), shift=Contrast(4))
    rows = np.flatnonzero(animals.individuals == animals.individuals[-1])
    by_hand = deepcopy(trained).train()
    with torch.no_grad():
        maps = by_hand(Contrast(4)(animals.images(rows), rows))
    assert np.allclose(outputs.arrays["keypoints"][rows], decode(maps, trained.stride)[0], atol=1e-2)


@pytest.mark.long
def test_offline_adaptation_needs_no_large_batch(animals, trained):
    one = evaluate(trained, animals, adapter=partial(BatchNorm, prior=0), shift=Contrast(4))
    several = evaluate(
        trained, animals, adapter=partial(Offline, method=partial(BatchNorm, prior=0)), shift=Contrast(4), batch_size=3
    )
    apart = keypoint_distances(several.arrays["keypoints"], one.arrays["keypoints"])
    assert np.median(apart) < 0.05
    assert (apart < 0.5).mean() > 0.98


def test_an_adapter_can_be_put_in_the_place_of_the_network(seen, trained):
    own = seen.select(np.flatnonzero(seen.individuals == seen.individuals[0]))
    adapted = predict(BatchNorm(trained, prior=0), own, batch_size=len(own))
    expected = evaluate(trained, own, adapter=partial(BatchNorm, prior=0)).arrays["keypoints"]
    assert np.allclose(adapted.keypoints, expected, atol=1e-3)
    assert not np.allclose(adapted.keypoints, predict(trained, own).keypoints, atol=0.1)


def test_an_individual_with_one_frame_can_be_adapted_to(animals, trained):
    one = animals.select(np.array([0]))
    outputs = evaluate(trained, one, adapter=partial(BatchNorm, prior=0))
    assert np.isfinite(outputs.arrays["keypoints"]).all()


def test_the_model_is_not_changed(animals, trained):
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    evaluate(trained, animals, adapter=BatchNorm, shift=Contrast(3))
    assert all(torch.equal(tensor, before[name]) for name, tensor in trained.state_dict().items())


def test_adaptation_mends_what_contrast_breaks(seen, trained):
    adapters = {"none": NoAdaptation, "batchnorm": partial(BatchNorm, prior=0)}
    table = score({"net": trained}, {"seen": seen}, shifts=(None, Contrast(4)), adapters=adapters).table()
    assert list(table.columns)[: len(COLUMNS)] == COLUMNS
    rows = table[(table["part"] == "") & (table["individual"] == "")]
    error = rows[rows["measure"] == "normalised_error"].set_index(["shift", "adapter"])["value"]
    assert error["contrast", "none"] > 1.5 * error["clean", "none"]
    assert error["contrast", "batchnorm"] < 0.9 * error["contrast", "none"]
    share = rows[rows["measure"] == "pck"].set_index(["shift", "adapter"])["value"]
    assert share["contrast", "batchnorm"] > 1.5 * share["contrast", "none"]
    assert set(table["individual"]) == {"", *seen.individuals}
    assert set(table["part"]) == {"", *seen.parts}
    assert (table["measure"] == "pck").sum() == (table["measure"] == "normalised_error").sum()


def test_streams_of_studies_take_pose_data(animals):
    stream = Corruptions(animals, [Contrast, Fog], [3], batch_size=16)
    batch = stream[0]
    assert batch.inputs.shape == (16, 3, 48, 64)
    assert animals.keypoints[batch.ids].shape == (16, 22, 2)


def test_models_for_other_parts_are_refused(animals, trained):
    other = PoseData(np.zeros((1, 48, 64, 3), np.uint8), np.ones((1, 1, 2)), ["nose"])
    with pytest.raises(HapteraError, match=r"the model has the parts .* is in one of them alone"):
        evaluate(trained, other)
    parts = list(animals.parts)
    data = PoseData(np.zeros((1, 48, 64, 3), np.uint8), np.ones((1, len(parts), 2)), ["snout", *parts[1:]])
    with pytest.raises(HapteraError, match=f"snout would have to be {parts[0]}"):
        evaluate(trained, data)


def test_labels_with_the_parts_in_another_order_get_the_same_scores(animals, trained, tmp_path):
    order = np.roll(np.arange(len(animals.parts)), 3)
    turned = copy(animals)
    turned.parts, turned.keypoints = tuple(animals.parts[k] for k in order), animals.keypoints[:, order]
    outputs, expected = evaluate(trained, turned), evaluate(trained, animals)
    for name in ("keypoints", "confidence"):
        assert np.array_equal(outputs.arrays[name], expected.arrays[name][:, order])
    assert np.array_equal(outputs.targets, expected.targets[:, order], equal_nan=True)
    both = score({"net": trained}, {"as trained": animals, "turned": turned}, out=tmp_path)
    index = ["part", "individual", "measure"]
    one, two = (rows.set_index(index)["value"] for _, rows in both.table().groupby("stream"))
    pd.testing.assert_series_equal(one, two.loc[one.index])
    half = len(both.frames) // 2
    for frame, other in zip(both.frames[:half], both.frames[half:], strict=True):
        assert np.array_equal(frame.labelled, other.labelled, equal_nan=True)  # a part has its colour in both
        assert np.array_equal(frame.predicted, other.predicted, equal_nan=True)


def test_a_network_that_names_its_maps_otherwise_is_another_network(animals, trained, tmp_path):
    """Finished cells of a folder are not taken for those of the same weights with other names."""
    before = score({"net": trained}, {"all": animals}, out=tmp_path).table()
    swapped = deepcopy(trained)
    swapped.parts = (animals.parts[1], animals.parts[0], *animals.parts[2:])
    after = score({"net": swapped}, {"all": animals}, out=tmp_path).table()
    error = [rows.set_index(["part", "individual", "measure"])["value"] for rows in (before, after)]
    assert (
        error[0].loc[animals.parts[0], "", "normalised_error"] != error[1].loc[animals.parts[0], "", "normalised_error"]
    )
    assert (
        error[0].loc[animals.parts[5], "", "normalised_error"] == error[1].loc[animals.parts[5], "", "normalised_error"]
    )


def test_the_line_of_errors_is_that_of_least_squares():
    random = np.random.default_rng(0)
    accuracy = random.uniform(60, 84, 13)
    error = 1 - 0.01 * accuracy + random.normal(0, 0.01, 13)
    line = error_trend(accuracy, error)
    expected = linregress(accuracy, error)
    assert (line.slope, line.r2, line.p_value) == pytest.approx((expected.slope, expected.rvalue**2, expected.pvalue))
    slope = ((accuracy - accuracy.mean()) * (error - error.mean())).sum() / ((accuracy - accuracy.mean()) ** 2).sum()
    assert line.slope == pytest.approx(slope)
    with pytest.raises(HapteraError, match="three finite numbers"):
        error_trend([1, 2], [3, 4])
    with pytest.raises(HapteraError, match="the same accuracy"):
        error_trend([1, 1, 1], [3, 4, 5])
