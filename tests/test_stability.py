"""The analysis of stability: networks, ranges of deformations, layers, errors and their law."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from holdfast.data import ArrayData, digits
from holdfast.errors import HoldfastError
from holdfast.measures.power_law import over_seeds, power_law
from holdfast.models import MLP, LeNet, Linear, ResNet
from holdfast.models.training import fit
from holdfast.stability import stability

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
    with pytest.raises(HoldfastError, match="there is no median R of mlp at"):
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
    with pytest.raises(HoldfastError, match=message):
        stability(LeNet(size=16), TEST, **settings)


def test_models_are_needed_and_must_give_classes_for_labelled_images():
    with pytest.raises(HoldfastError, match="at least one model"):
        stability({}, TEST)
    with pytest.raises(HoldfastError, match=r"\(images, classes\) was expected"):
        stability(nn.Conv2d(1, 2, 3), TEST, samples=10)
    with pytest.raises(HoldfastError, match=r"10 classes .* and the model 3 outputs"):
        stability(Linear(size=16, classes=3), TEST, samples=10)


def test_a_function_that_builds_a_network_will_do():
    assert stability({"line": lambda: Linear(size=16)}, TEST, samples=20).models == ["line"]
