"""Diagnosis on a small trained network: a known shift is found, named, and its cost predicted; no shift is no alarm."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy.stats import t
from torch import nn

from haptera import diagnose
from haptera.analyses.diagnosis.known_shifts import change_of_statistics
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.models import LeNet, ResNet
from haptera.models.training import fit
from haptera.observe import batchnorm_statistics, observe_moments
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean

TEST = digits("test", size=16)


def part(first, last, shift=None):
    images = TEST.images(np.arange(first, last))
    images = images if shift is None else shift(images)
    return ArrayData((images.numpy() * 255).round().astype(np.uint8), TEST.targets[first:last])


def words(found):
    """Word -> the sentence, with short names for the data."""
    named = replace(found, data="new", reference=found.reference and "old")
    return {finding.word: finding.sentence for finding in named.findings()}


def pixels(data):
    return (data.images(np.arange(len(data))).numpy() * 255).round().astype(np.uint8)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    model = ResNet(width=8, stem=2)
    fit(model, digits("train", size=16), epochs=4)
    return model


@pytest.fixture(scope="module")
def found(net):
    return diagnose(net, part(250, 500, GaussianNoise(4)), part(0, 250), known_samples=128)


def test_a_shift_is_found_and_named(found):
    assert found.test.p_value < 0.01
    assert found.test.ratio > 2
    assert found.nearest["family"] == "noise"


def test_its_cost_is_predicted_near_the_truth(net, found):
    shifted = part(250, 500, GaussianNoise(4))
    with torch.no_grad():
        right = net(shifted.images(np.arange(250))).argmax(1).numpy() == shifted.targets
    guess = found.predicted
    assert abs(guess.error - (1 - right.mean())) < 0.15
    assert guess.low <= 1 - right.mean() <= guess.high
    assert guess.high - guess.low < 0.5 * t.ppf(0.975, 19) / t.ppf(0.95, 19)  # half of everything, if it were 90 %


def test_the_interval_holds_for_corruptions_that_the_prediction_never_saw(found):
    assert found.predicted.corruptions == 19
    assert found.predicted.held >= 0.85


def test_every_estimator_and_when_to_believe_it_is_said(found):
    said = words(found)
    listed = {row["method"] for row in found.json()["prediction"]["methods"]}
    assert {"optimal transport", "MaNo", "nuclear norm", "line of size of the shift"} <= listed
    assert all(name in said["methods"] for name in ("optimal transport", "MaNo", "nuclear norm", "size of the shift"))
    assert said["believe"].startswith("yes, if this shift is like them: its size is within theirs")
    assert "Accuracy without labels" in found.page()


@pytest.mark.long
def test_labels_of_the_data_serve_for_nothing_but_the_measured_error(net, found):
    data, images = part(250, 500, GaussianNoise(4)), np.arange(250)
    with torch.no_grad():
        wrong = net(data.images(images)).argmax(1).numpy() != data.targets
    assert found.measured_error == pytest.approx(wrong.mean())
    without = diagnose(net, ArrayData(pixels(data), None), part(0, 250), known_samples=128)
    assert without.measured_error is None
    assert without.predicted == found.predicted
    assert words(found)["accuracy"].startswith(
        f"old {1 - found.reference_error:.1%}; new {1 - found.measured_error:.1%} measured, "
    )


def test_the_best_prior_of_the_network_lies_among_those_of_its_layers(found):
    layers = found.priors[found.profile["layer"]]
    assert (found.priors["prior"] >= layers.min(axis=1)).all()
    assert (found.priors["prior"] <= layers.max(axis=1)).all()


class WithDeadChannels(nn.Module):
    """The net, and beside it a branch of ReLUs, dead but for the first few, or for a few images; it changes nothing."""

    def __init__(self, net):
        super().__init__()
        self.net, self.norm = net, nn.BatchNorm2d(8)
        self.norm.running_var.copy_(torch.tensor([0.05] * 3 + [1e-20] * 5))
        self.thresholds = nn.Parameter(torch.tensor([0.1, 0.2, 0.3, 0.45, 0.5, 0.9, 0.9, 0.9])[:, None, None])

    def forward(self, images):
        rare = (images.mean((2, 3), keepdim=True) - self.thresholds).relu() + 0 * images
        return self.net(images) + 0 * self.norm(rare).sum((1, 2, 3))[:, None]


@pytest.mark.long
@pytest.mark.parametrize("with_reference", [True, False])
def test_dead_channels_hide_no_shift(net, with_reference):
    model, data = WithDeadChannels(net).eval(), part(250, 500, Contrast(3))
    found = diagnose(model, data, part(0, 250) if with_reference else None, known_samples=0)
    assert np.isfinite([found.test.size, found.test.chance, found.test.ratio]).all()
    assert found.test.p_value < 0.01
    assert int(found.profile["dead"].sum()) > 0
    said = words(found)
    assert said["shift"].startswith("clear")
    assert "dead" in said["compared"]
    assert not found.priors["prior"].isna().any()


@pytest.mark.parametrize("wrong", [{"size": np.inf}, {"chance": np.nan}, {"chance": np.inf, "p_value": 0.5}])
def test_no_verdict_comes_from_a_number_that_is_not_finite(found, wrong):
    broken = replace(found, test=replace(found.test, **wrong))
    assert words(broken)["shift"].startswith("cannot say")


def test_activations_that_are_not_finite_are_told(net):
    images = pixels(part(0, 40)).astype(np.float32) / 255
    with pytest.raises(HapteraError, match="not finite for 40 of 40 images"):
        diagnose(nn.Sequential(Overflow(), *net), ArrayData(images, None))


class Overflow(nn.Module):
    def forward(self, images):
        return images / 0


@pytest.mark.long
def test_the_same_kind_of_data_raises_no_alarm(net):
    images, labels = pixels(TEST), TEST.targets  # neighbours are by one writer: take every other one
    one, two = (ArrayData(images[start::2], labels[start::2]) for start in (0, 1))
    found = diagnose(net, one, two, known_samples=0)
    assert found.test.p_value > 0.05
    assert found.known.empty
    assert found.predicted is None


@pytest.mark.long
def test_without_a_reference_the_models_own_statistics_serve(net):
    found = diagnose(net, part(250, 500, Contrast(3)))
    assert found.test.p_value < 0.01
    assert found.reference_error is None
    assert list(found.priors["n"]) == [1, 8, 64, 256]


@pytest.mark.long
def test_without_labels_nothing_is_predicted(net):
    reference = ArrayData(pixels(part(0, 250)), None)
    found = diagnose(net, part(250, 400), reference, known_samples=32)
    assert found.reference_error is None
    assert found.predicted is None
    assert f"{1 - found.measured_error:.1%} measured" in words(found)["accuracy"]
    assert not found.known.empty


def test_two_folders_of_one_name_are_told_apart_in_sentences(net):
    old, new = part(0, 250), part(250, 500, Contrast(3))
    old.name = new.name = "val"  # as `old/val` and `new/val` are called
    found = diagnose(net, new, old, known_samples=0)
    said = " ".join(finding.sentence for finding in found.findings())
    assert "two random parts of the reference and the data together" in said
    assert "val" not in said
    assert found.title == "Diagnosis of val"


def test_any_layer_can_be_watched(net):
    found = diagnose(net, part(250, 500, Contrast(3)), part(0, 250), layers=["4.*", "9"], known_samples=0)
    assert "9" in set(found.profile["layer"])
    assert found.priors.empty


def test_moments_are_those_of_the_activations_themselves(net):
    data = part(0, 60)
    seen = observe_moments(net, Clean(data, batch_size=16), ["4.conv1"], covariance=True)
    with torch.no_grad():
        images = torch.cat([batch.inputs for batch in Clean(data, batch_size=16)])
        inner = images
        for layer in list(net)[:4]:
            inner = layer(inner)
        values = net[4].conv1(inner).double().transpose(0, 1).flatten(1).numpy()
    mean, var = seen.moments.pool()
    assert mean == pytest.approx(values.mean(1), abs=1e-5)
    assert var == pytest.approx(values.var(1), rel=1e-4)
    assert seen.moments.covariance["4.conv1"] == pytest.approx(np.cov(values, ddof=0), abs=1e-4)


def test_the_model_is_left_as_it_was(net):
    before = {key: value.clone() for key, value in net.state_dict().items()}
    net.train()
    observe_moments(net, Clean(part(0, 20)))
    assert net.training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
    net.eval()


def test_a_model_in_evaluation_on_its_own_training_statistics_has_little_shift(net):
    known = batchnorm_statistics(net)
    seen = observe_moments(net, Clean(digits("train", size=16))).moments
    other = observe_moments(net, Clean(part(0, 300, Contrast(4)))).moments
    assert np.linalg.norm(change_of_statistics(known, seen)) < 0.3 * np.linalg.norm(change_of_statistics(known, other))


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (LeNet(size=16), {}, "no BatchNorm"),
        (ResNet(width=4, stem=2), {"layers": ["layer9"]}, "need a reference"),
    ],
)
def test_what_cannot_be_compared_is_said(model, settings, message):
    with pytest.raises(HapteraError, match=message):
        diagnose(model, part(0, 20), **settings)


def test_a_layer_that_does_not_exist_is_named():
    with pytest.raises(HapteraError, match="no layer fits 'layer9'"):
        observe_moments(nn.Sequential(nn.Linear(2, 2)), [], ["layer9"])


@pytest.mark.long
def test_classes_can_be_mapped_from_the_command_line(net, folder, haptera):
    """The net's outputs are digits; the data calls them by names, in another order, and knows three of them."""
    save_file(net.state_dict(), folder / "net.safetensors")
    names = ["two", "seven", "one"]
    for name, data in (("old", part(0, 200)), ("new", part(200, 400))):
        kept = np.isin(data.targets, (2, 7, 1))
        labels = np.array([[2, 7, 1].index(digit) for digit in data.targets[kept]])
        np.savez(folder / f"{name}.npz", images=pixels(data)[kept], labels=labels, classes=names)
    (folder / "classes.csv").write_text("class,accepted\ntwo,2\nseven,7\none,1\n")
    flags = ["diagnose", "--model", "resnet:width=8,stem=2", "--weights", "net.safetensors", "--data", "new.npz"]
    flags += ["--reference", "old.npz", "--known-samples", "0", "--json", "--device", "cpu"]
    refused = haptera(*flags)
    assert refused.returncode == 2
    assert "3 classes ('two', 'seven', 'one') and the model 10 outputs" in refused.stderr
    assert "--mapping" in refused.stderr
    answer = json.loads(haptera(*flags, "--mapping", "classes.csv").stdout)
    assert answer["reference_error"] < 0.2
    assert answer["measured_error"] < 0.2
    assert "cuda:7" in haptera(*flags[:-1], "cuda:7").stderr


@pytest.mark.long
def test_from_the_command_line(net, folder, haptera):
    save_file(net.state_dict(), folder / "net.safetensors")
    for name, data in (("old", part(0, 200)), ("new", part(200, 400, GaussianNoise(5)))):
        np.savez(folder / f"{name}.npz", images=pixels(data), labels=data.targets)
    flags = ["diagnose", "--model", "resnet:width=8,stem=2", "--weights", "net.safetensors", "--data", "new.npz"]
    flags += ["--reference", "old.npz", "--known-samples", "32"]
    answer = json.loads(haptera(*flags, "--json").stdout)
    assert answer["p_value"] < 0.01
    assert answer["nearest"]["shift"].endswith("noise")
    assert len(answer["layers"]) == 9
    assert answer["prediction"]["low"] <= answer["prediction"]["error"] <= answer["prediction"]["high"]
    text = haptera(*flags, "--out", "found").stdout
    assert text.startswith("shift            clear: ")
    assert "predicted without labels" in text
    assert (folder / "found" / "report.html").stat().st_size > 10_000
