"""The small networks: shapes, training that learns, and repeatability."""

import numpy as np
import pytest
import torch

from haptera.catalog import entries, find
from haptera.data import digits
from haptera.errors import HapteraError
from haptera.models import LeNet, ResNet, ViT
from haptera.models.training import fit


@pytest.mark.parametrize("name", entries("models"))
def test_every_network_gives_logits_for_grey_and_colour(name):
    assert find("models", name)()(torch.rand(2, 1, 32, 32)).shape == (2, 10)
    assert find("models", name)(channels=3, classes=7)(torch.rand(2, 3, 32, 32)).shape == (2, 7)


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
