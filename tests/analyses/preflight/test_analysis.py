"""The preflight catches what people get wrong, and is silent where everything is right."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import haptera
from haptera.analyses.preflight.check import ERROR, FINE, UNKNOWN, WARNING
from haptera.data import ArrayData, FolderData, digits
from haptera.data.mapping import MappedData
from haptera.errors import HapteraError
from haptera.models import LeNet


def check(model, data, *others, **settings):
    return haptera.check_model(model, data, *others, **{"samples": 200, "seconds": 30.0} | settings)


def verdicts(preflight):
    return {each.word: each.verdict for each in preflight.checks}


def only(preflight, *words):
    """The words of the checks that complain."""
    return {each.word for each in preflight.complaints} == set(words)


@pytest.fixture
def data(arrays):
    return ArrayData(*arrays, "digits")


def correct_setups(batch_net, group_net, arrays, files):
    """Ten that are right, each in its own way."""
    images, labels = arrays
    data, mapping = ArrayData(images, labels, "digits"), {str(label): (label,) for label in range(10)}
    yield "statistics", batch_net.right, data
    yield "no labels", batch_net.right, ArrayData(images, None, "digits")
    yield "no statistics", group_net.right, data
    yield "no statistics, no labels", group_net.right, ArrayData(images, None, "digits")
    yield "DataParallel", nn.DataParallel(batch_net.right), data
    yield "double precision", batch_net.right.double(), data
    batch_net.body.float()
    yield "floats in place of bytes", batch_net.right, ArrayData(images / np.float32(255), labels, "digits")
    yield "files", batch_net.right, FolderData(files, size=16)
    yield "a mapping", batch_net.right, MappedData(data, mapping)
    yield "few images", batch_net.right, ArrayData(images[:30], labels[:30], "digits")


@pytest.mark.long
def test_ten_correct_setups_are_silent(batch_net, group_net, arrays, files):
    setups = list(correct_setups(batch_net, group_net, arrays, files))
    assert len(setups) == 10
    loud = {name: [c.sentence for c in check(*setup).complaints] for name, *setup in setups}
    assert not {name: told for name, told in loud.items() if told}


@pytest.mark.parametrize("scale", ["none", "half", "bytes"])
def test_a_wrong_scale_is_named_with_the_right_one(batch_net, data, scale):
    preflight = check(batch_net.behind(scale), data)
    assert only(preflight, "scale")
    found = next(each for each in preflight.checks if each.word == "scale")
    assert found.numbers["likeliest"].startswith("mean and std of ImageNet")
    assert found.numbers["likeliest_distance"] < 0.15 < found.numbers["distance"]
    assert "imagenet" in found.sentence or "ImageNet" in found.sentence


def test_statistics_tell_the_scale_without_labels(batch_net, arrays):
    assert only(check(batch_net.behind("none"), ArrayData(arrays[0], None)), "scale")


def test_a_scale_that_ruins_the_answers_is_an_error(batch_net, data):
    preflight = check(batch_net.behind("bytes"), data)
    assert preflight.verdict == ERROR
    assert preflight.objections


@pytest.mark.long
def test_labels_tell_the_scale_of_a_network_without_statistics(group_net, data):
    assert only(check(group_net.behind("bytes"), data), "scale")


def test_without_statistics_and_labels_the_scale_is_unknown(group_net, arrays):
    found = verdicts(check(group_net.behind("bytes"), ArrayData(arrays[0], None)))
    assert found["scale"] == found["colour"] == UNKNOWN


def test_images_in_bytes_are_caught(batch_net, arrays):
    class Bytes(ArrayData):
        def images(self, positions):
            return super().images(positions) * 255

    found = next(each for each in check(batch_net.right, Bytes(*arrays)).checks if each.word == "scale")
    assert found.verdict == ERROR
    assert "divide the images by 255" in found.sentence


@pytest.mark.parametrize("labelled", [True, False])
def test_colours_in_the_other_order_are_caught(batch_net, arrays, labelled):
    images, labels = arrays
    turned = ArrayData(np.ascontiguousarray(images[..., ::-1]), labels if labelled else None)
    assert only(check(batch_net.right, turned), "colour")


def test_wrong_scale_and_colours_are_both_named(batch_net, arrays):
    images, labels = arrays
    turned = ArrayData(np.ascontiguousarray(images[..., ::-1]), labels)
    assert only(check(batch_net.behind("half"), turned), "colour", "scale")


def test_labels_in_another_order_are_found_and_their_mapping_is_written(batch_net, arrays, tmp_path):
    images, labels = arrays
    order = np.random.default_rng(1).permutation(10)
    preflight = check(batch_net.right, ArrayData(images, order[labels]))
    assert only(preflight, "labels")
    assert preflight.verdict == ERROR
    preflight.save(tmp_path)
    pairs = [line.split(",") for line in (tmp_path / "mapping.csv").read_text().splitlines()[1:]]
    assert all(order[int(output)] == int(label) for label, output in pairs)
    mapped = haptera.data.with_mapping(
        ArrayData(images, order[labels]), haptera.data.mapping.read_mapping(tmp_path / "mapping.csv")
    )
    assert not check(batch_net.right, mapped).complaints


def test_two_exchanged_classes_are_found(batch_net, arrays):
    images, labels = arrays
    order = np.array([0, 1, 2, 8, 4, 5, 6, 7, 3, 9])
    assert "label 3 is output 8" in check(batch_net.right, ArrayData(images, order[labels])).complaints[0].sentence


def test_training_mode_is_caught_and_the_model_stays_in_it(batch_net, data):
    model = batch_net.right.train()
    preflight = check(model, data)
    model_mode, modes = model.training, {module.training for module in model.modules()}
    batch_net.body.eval()
    assert only(preflight, "mode")
    assert model_mode
    assert modes == {True}


def test_a_wrapper_in_training_mode_that_does_nothing_there_is_fine(batch_net, data):
    model = batch_net.right
    model.training = True
    assert not check(model, data).complaints


def test_training_mode_inside_forward_is_caught(batch_net, data):
    class Forces(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, images):
            return self.inner.train()(images)

    found = verdicts(check(Forces(batch_net.right), data))
    batch_net.body.eval()
    assert (found["mode"], found["batch"], found["repeatable"]) == (WARNING, WARNING, FINE)


def test_a_model_that_draws_is_caught(batch_net, data):
    class Drops(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, images):
            return F.dropout(self.inner(images), 0.3, training=True)

    before = torch.random.get_rng_state()
    found = verdicts(check(Drops(batch_net.right), data))
    assert found["repeatable"] == WARNING
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.long
def test_another_crop_than_in_training_is_caught(batch_net, files):
    preflight = check(batch_net.right, FolderData(files, size=16, crop=0.7))
    assert "crop" in {each.word for each in preflight.complaints}
    assert next(each for each in preflight.checks if each.word == "crop").numbers["likeliest"] == 0.875


def test_probabilities_and_answers_that_are_not_finite_are_caught(batch_net, data):
    class After(nn.Module):
        def __init__(self, inner, function):
            super().__init__()
            self.inner, self.function = inner, function

        def forward(self, images):
            return self.function(self.inner(images))

    assert verdicts(check(After(batch_net.right, lambda logits: logits.softmax(1)), data))["outputs"] == WARNING
    assert verdicts(check(After(batch_net.right, lambda logits: logits * float("nan")), data))["outputs"] == ERROR
    assert verdicts(check(After(batch_net.right, lambda logits: logits * 0), data))["outputs"] == ERROR


def test_a_network_without_its_weights_is_noticed(data):
    torch.manual_seed(0)
    untrained = haptera.models.ResNet(3, width=4, stem=2).eval()
    preflight = check(untrained, data)
    assert only(preflight, "scale")
    assert "were the weights loaded" in preflight.complaints[0].sentence


def test_the_first_classes_of_a_sorted_set_are_noticed(batch_net, arrays):
    images, labels = arrays
    first = np.flatnonzero(labels < 4)
    preflight = check(batch_net.right, ArrayData(images[first], labels[first]))
    assert only(preflight, "subset")
    assert "first 4" in preflight.complaints[0].sentence


def test_copies_are_counted_within_the_data_and_in_the_reference(batch_net, arrays):
    images, labels = arrays
    data = ArrayData(np.concatenate([images[:100], images[:20]]), np.concatenate([labels[:100], labels[:20]]))
    preflight = check(batch_net.right, data, ArrayData(images[90:300], None, "train"))
    numbers = next(each for each in preflight.checks if each.word == "duplicates").numbers
    assert (numbers["read"], numbers["copies"], numbers["in_reference"]) == (120, 20, 10)
    assert only(preflight, "duplicates")


def test_parts_of_a_slow_model_are_left_out_to_keep_the_time(batch_net, data):
    assert check(batch_net.right, data, seconds=1e-6).images == 32


def test_bad_settings_and_data_are_refused(batch_net, data):
    with pytest.raises(HapteraError, match="sampels"):
        haptera.check_model(batch_net.right, data, sampels=3)
    with pytest.raises(HapteraError, match="one data set was expected"):
        haptera.check_model(batch_net.right, [data])
    with pytest.raises(HapteraError, match="10 classes"):
        haptera.check_model(LeNet(size=16, classes=3), digits("test", size=16))
