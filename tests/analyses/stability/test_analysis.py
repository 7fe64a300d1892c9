"""The analysis of stability: networks, ranges of deformations, layers, errors and their law."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from haptera import stability
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.models import MLP, LeNet, Linear, ResNet
from haptera.models.training import fit
from haptera.shifts import Diffeo
from haptera.statistics.power_law import over_seeds, power_law

TEST = digits("test", size=16)


@pytest.fixture(scope="module")
def nets():
    torch.manual_seed(0)
    found = {"mlp": MLP(size=16, width=32), "lenet": LeNet(size=16, width=4), "resnet": ResNet(width=4, stem=2)}
    for net in found.values():
        fit(net, digits("train", size=16), epochs=4)
    return found


@pytest.fixture(scope="module")
def found(nets):
    fresh = {"resnet, init": ResNet(width=4, stem=2)}
    return stability(nets, TEST, initial=fresh, delta=(1.0, 2.0), interpolation=("bilinear", "gaussian"), samples=151)


def test_every_network_has_every_index_at_every_setting(found):
    assert len(found.indices) == 4 * 4 * 6
    assert not found.indices["value"].isna().any()
    assert ((found.indices["low"] <= found.indices["value"]) & (found.indices["value"] <= found.indices["high"])).all()
    assert list(found.deformations["delta"]) == [1.0, 1.0, 2.0, 2.0]
    assert found.deformations["temperature"].iloc[0] == pytest.approx(1 / 15**2)  # δ² / ((n − 1)² T) is 1 at c = 3
    assert (found.deformations["norm_median"] < found.deformations["norm_mean"]).all()


def test_residual_networks_are_more_stable_than_dense_ones(found):
    assert found.value("R", model="resnet") < found.value("R", model="mlp") / 3
    assert 0.3 < found.value("R", model="resnet, init") < 2


def test_errors_are_those_of_the_images_used_and_follow_a_law(found, nets):
    places = np.sort(np.random.default_rng(0).permutation(len(TEST))[:151])
    with torch.no_grad():
        wrong = nets["lenet"](TEST.images(places)).argmax(1).numpy() != TEST.targets[places]
    errors = found.errors.set_index("model")["error"]
    assert errors["lenet"] == pytest.approx(wrong.mean())
    law = found.laws["R"]
    points = found.against_error
    assert list(points["model"]) == ["mlp", "lenet", "resnet"]  # networks before training are no part of the law
    assert law == power_law(points["R"].to_numpy(), points["error"].to_numpy())


def test_values_at_another_setting_can_be_asked_for(found):
    one, two = found.value("D", model="mlp"), found.value("D", model="mlp", delta=2.0)
    assert two > 2 * one
    with pytest.raises(HapteraError, match="there is no median R of mlp at"):
        found.value("R", model="mlp", delta=3.0)


def test_without_labels_there_are_no_errors(nets):
    images = (TEST.images(np.arange(40)).numpy() * 255).astype(np.uint8)
    found = stability(nets["lenet"], ArrayData(images, None), layers=["1"], samples=40)
    assert found.errors.empty
    assert found.laws == {}
    assert found.models == ["lenet"]
    assert list(found.indices["layer"].unique()) == ["pixels", "1", "output"]
    pixels = found.indices[(found.indices["layer"] == "pixels") & (found.indices["index"] == "R")]
    assert pixels.set_index("aggregate")["value"]["median"] == pytest.approx(1, abs=1e-3)


def test_the_same_seed_gives_the_same_numbers(nets):
    one, two, other = (stability(nets["mlp"], TEST, samples=60, seed=seed) for seed in (0, 0, 1))
    assert one.indices.equals(two.indices)
    assert one.value("R") != other.value("R")


def test_seeds_are_averaged_in_logarithms():
    frame = pd.DataFrame({"net": ["a", "a", "b"], "error": [0.1, 0.4, 0.3], "R": [1.0, 4.0, 3.0], "D": 1.0, "G": 1.0})
    means = over_seeds(frame, ["net"]).set_index("net")
    assert means.loc["a", "error"] == pytest.approx(0.2)
    assert means.loc["a", "R"] == pytest.approx(2)
    assert means["seeds"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 1}, "samples is 1"),
        ({"delta": ()}, "at least one value each"),
        ({"cutoff": 15}, "cutoff of diffeo is 15, on 16 x 16 pixels"),
        ({"layers": ["conv9"]}, "no layer fits 'conv9'"),
    ],
)
def test_what_cannot_be_measured_is_said(settings, message):
    with pytest.raises(HapteraError, match=message):
        stability(LeNet(size=16), TEST, **settings)


def test_models_are_needed_and_must_give_classes_for_labelled_images():
    with pytest.raises(HapteraError, match="at least one model"):
        stability({}, TEST)
    with pytest.raises(HapteraError, match=r"10 classes .* and the model 3 outputs"):
        stability(Linear(size=16, classes=3), TEST, samples=10)


def test_deltas_are_those_of_the_fields_that_were_used(nets):
    settings = {"delta": 3.0, "samples": 60, "draws": 0}
    plain, again = (stability(nets["mlp"], TEST, resample=resample, **settings) for resample in (False, True))
    assert plain.deformations["delta_used"].item() == pytest.approx(3)
    rows = TEST.rows[np.sort(np.random.default_rng(0).permutation(len(TEST))[:60])]
    fields = Diffeo(3, 3, resample=True).fields(rows, 0, 16, 16)
    used = again.deformations["delta_used"].item()
    assert used == pytest.approx(fields.centres.square().sum(1).mean().sqrt().item())
    assert used < 0.85 * again.deformations["delta"].item() == 0.85 * 3
    assert ("deformation", f"δ {used:.3g} (asked for δ 3), c 3, bilinear") in [
        (finding.word, finding.sentence.partition(":")[0]) for finding in again.findings()
    ]


@pytest.mark.parametrize("interpolation", ["bilinear", "gaussian"])
def test_images_of_one_colour_have_no_r(interpolation):
    grey = np.full((30, 1, 16, 16), 1 / 3, np.float32) * np.random.default_rng(0).uniform(0.1, 1, (30, 1, 1, 1))
    with pytest.raises(
        HapteraError, match=r"R is undefined: .* but for rounding, as they do with images of one colour"
    ):
        stability(LeNet(size=16), ArrayData(grey.astype(np.float32), None), samples=30, interpolation=interpolation)


def test_a_network_that_noise_does_not_move_has_no_r_and_the_text_says_so():
    class Deaf(nn.Module):
        def forward(self, images):
            return 1e4 + 1e-6 * images.mean((1, 2, 3))[:, None].expand(-1, 10)

    found = stability({"deaf": Deaf(), "line": Linear(size=16)}, TEST, samples=30)
    assert np.isnan(found.value("R", model="deaf"))
    assert {finding.word: finding.sentence for finding in found.findings()}["deaf"].startswith("R undefined")
    assert np.isfinite(found.value("R", model="line"))


class Sum(nn.Module):
    """One number for each image, in any shape."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, images):
        return (images.mean((1, 2, 3)) - 0.4).reshape(-1, *self.shape)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_networks_with_one_logit_have_r_and_for_two_classes_an_error(shape):
    images = TEST.images(np.arange(60)).numpy()
    ten = stability({"sum": Sum(*shape)}, TEST, samples=60)
    assert ten.errors.empty
    assert "sum has no error" in ten.notes[0]
    bright = images.mean((1, 2, 3)) > 0.4
    labels = np.where(np.arange(60) < 15, ~bright, bright).astype(int)  # a quarter is wrong
    two = stability({"sum": Sum(*shape)}, ArrayData(images, labels), samples=60)
    assert two.errors["error"].item() == 0.25
    assert two.notes == ()
    assert two.value("R") > 0


def test_dense_outputs_have_r_and_no_error():
    found = stability(nn.Conv2d(1, 2, 3), TEST, samples=10)
    assert found.errors.empty
    assert "its outputs, (images, 2, 14, 14), are no decisions" in found.notes[0]


def test_images_that_a_model_does_not_take_are_one_sentence():
    with pytest.raises(HapteraError, match=r"net: the model fails on images of shape \(1, 16, 16\): RuntimeError: "):
        stability({"net": LeNet(size=16, channels=3)}, TEST, samples=10)


def test_a_function_that_builds_a_network_will_do():
    assert stability({"line": lambda: Linear(size=16)}, TEST, samples=20).models == ["line"]
