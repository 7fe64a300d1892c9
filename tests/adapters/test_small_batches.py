"""Small batches: unless a prior is given, their statistics move along the stream, and a note says so once."""

import logging

import pytest
import torch
from torch import nn

from haptera.adapters import BatchNorm, RDumb, Tent
from haptera.adapters.norm import REACH, SMALL, Once, blends_of, once
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import GaussianNoise
from haptera.streams import Shifted
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def batch_of(n, seed=0):
    return torch.rand(n, 1, 16, 16, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("prior", [None, "sized"])
def test_statistics_move_along_a_stream_of_small_batches(prior):
    layer = nn.BatchNorm1d(3)
    layer.running_mean.copy_(torch.tensor([0.5, -1.0, 0.0]))
    layer.running_var.copy_(torch.tensor([2.0, 0.25, 1.0]))
    adapter, mean, var = BatchNorm(nn.Sequential(layer), prior=prior), layer.running_mean, layer.running_var
    generator = torch.Generator().manual_seed(0)
    for n in (3, 1, 15, 2):
        inputs = torch.randn(n, 3, generator=generator) * 2 + 1
        share = n / (n + 32)
        mean = (1 - share) * mean + share * inputs.mean(0)
        var = (1 - share) * var + share * inputs.var(0, correction=0)
        assert torch.allclose(adapter(inputs), (inputs - mean) / (var + layer.eps).sqrt(), atol=1e-5)
    assert (SMALL, REACH) == (16, 32)


def test_batches_of_sixteen_have_statistics_of_their_own(model):
    inputs = batch_of(16)
    assert torch.equal(BatchNorm(model)(inputs), BatchNorm(model, prior=16)(inputs))
    assert torch.equal(BatchNorm(model, prior="sized")(inputs), BatchNorm(model, prior=0)(inputs))
    assert torch.equal(Tent(model)(inputs), Tent(model, prior=0)(inputs))
    assert not torch.equal(Tent(model)(inputs[:15]), Tent(model, prior=0)(inputs[:15]))


def test_a_step_of_several_passes_moves_statistics_once(model):
    once, twice = Tent(model, lr=0.0), Tent(model, lr=0.0, predictions="after")
    for inputs in example_batches():
        assert torch.allclose(once(inputs), twice(inputs), atol=1e-6)
    for one, two in zip(blends_of(once), blends_of(twice), strict=True):
        assert torch.allclose(one.mean, two.mean, atol=1e-6)


def test_a_single_image_is_adapted_to():
    net = nn.Sequential(nn.BatchNorm1d(3))
    assert torch.isfinite(BatchNorm(net)(torch.rand(1, 3))).all()


def test_the_note_is_logged_once_and_not_with_a_prior(model, caplog, monkeypatch):
    monkeypatch.setattr(once(), "filters", [Once()])
    with caplog.at_level(logging.WARNING, "haptera"):
        Tent(model, prior=0)(batch_of(4))
        Tent(model)(batch_of(16))
        assert "too few images" not in caplog.text
        for _ in range(2):
            Tent(model)(batch_of(4))
    assert caplog.text.count("a batch of 4 has too few images") == 1


@pytest.mark.parametrize(("sizes", "label"), [((4, 8), "batchnorm:prior=sized"), ((64, 1), "batchnorm:prior=0")])
def test_the_parent_in_a_study_is_that_of_the_batches_it_met(model, sizes, label):
    adapter = RDumb(model)
    for n in sizes:
        adapter(batch_of(n))
    assert adapter.parent_label == label


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4, 8])
def test_small_batches_of_noisy_digits_no_longer_lose_to_no_adaptation(size):
    torch.manual_seed(0)
    network = ResNet(width=8, stem=2)
    fit(network, digits("train"), epochs=6)
    stream = Shifted(digits("test"), GaussianNoise(4), batch_size=size)

    def accuracy(adapter):
        right = [(adapter(batch.inputs).argmax(1) == batch.targets).float() for batch in stream]
        return float(torch.cat(right).mean())

    network.eval()
    moving, alone, plain = accuracy(RDumb(network)), accuracy(RDumb(network, prior=0)), accuracy(BatchNorm(network))
    assert moving > alone + 0.02
    assert moving > plain - 0.05
