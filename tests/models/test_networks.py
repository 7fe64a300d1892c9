"""The small networks: shapes, training that learns, and repeatability."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.catalog import entries, find
from haptera.data import digits
from haptera.errors import HapteraError
from haptera.models import LeNet, ResNet, ViT
from haptera.models.training import fit


@pytest.mark.parametrize("name", entries("models"))
def test_every_network_gives_logits_for_grey_and_colour(name):
    assert find("models", name)()(torch.rand(2, 1, 32, 32)).shape == (2, 10)
    assert find("models", name)(channels=3, classes=7)(torch.rand(2, 3, 32, 32)).shape == (2, 7)


@pytest.mark.long
def test_training_learns_and_is_repeatable_without_touching_the_global_generator():
    data = digits("train")
    before = torch.random.get_rng_state()
    weights = []
    for _ in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = LeNet(width=4)
        fit(model, data, epochs=2)
        weights.append(model[1].weight)
    assert torch.equal(*weights)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not model.training
    with torch.no_grad():
        right = model(data.images(np.arange(len(data)))).argmax(1).numpy() == data.targets
    assert right.mean() > 0.5


def test_wrong_settings_are_refused():
    with pytest.raises(HapteraError, match="unknown norm 'btch'; did you mean 'batch'"):
        ResNet(norm="btch")
    with pytest.raises(HapteraError, match="not a multiple of patch"):
        ViT(size=30)


@pytest.mark.parametrize(("patch", "size"), [(2, 8), (4, 16), (8, 16)])
def test_a_residual_stem_gives_a_token_for_each_patch(patch, size):
    net = ViT(3, size, width=32, depth=1, patch=patch, stem="residual")
    assert net.patches(torch.rand(2, 3, size, size)).shape == (2, 32, size // patch, size // patch)
    assert net(torch.rand(2, 3, size, size)).shape == (2, 10)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in net.modules())


@pytest.mark.parametrize("settings", [{"patch": 3, "size": 12}, {"patch": 1}, {"width": 36}])
def test_a_residual_stem_halves_a_power_of_two(settings):
    with pytest.raises(HapteraError, match="a residual stem needs a patch of 2, 4, 8"):
        ViT(**settings, stem="residual")


def test_a_stem_that_is_not_known_is_refused():
    with pytest.raises(HapteraError, match="stem"):
        ViT(stem="residuals")
