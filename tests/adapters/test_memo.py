"""MEMO against a loop over images with torch's autograd, and that it forgets."""

import copy
from math import log

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import MEMO, Augment, BatchNorm, NoAdaptation
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


class Small(nn.Module):
    """One convolution, one BatchNorm layer; with N of the statistics, an image counts as one, whatever its views."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Linear(3, 4)
        self.norm.running_mean.copy_(torch.tensor([0.1, -0.2, 0.3]))
        self.norm.running_var.copy_(torch.tensor([0.5, 1.5, 0.2]))

    def forward(self, images):
        return self.last(self.norm(self.conv(images)).relu().mean((2, 3)))

    def by_hand(self, images, prior):
        hidden = self.conv(images)
        mean = (prior * self.norm.running_mean + hidden.mean((0, 2, 3))) / (prior + 1)
        var = (prior * self.norm.running_var + hidden.var((0, 2, 3), correction=0)) / (prior + 1)
        hidden = (hidden - mean[:, None, None]) / (var[:, None, None] + self.norm.eps).sqrt()
        hidden = hidden * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]
        return self.last(hidden.relu().mean((2, 3)))


def alone(model, image, generator, forward, lr, views):
    """One image: views, a step on the entropy of their mean prediction, a prediction."""
    net = copy.deepcopy(model).eval()
    p = forward(net, Augment()(image.expand(views, *image.shape[1:]), generator)).softmax(1).mean(0)
    loss = -(p * p.log()).sum()
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter -= lr * gradient
        return forward(net, image), loss.item()


@pytest.mark.parametrize("norm", ["layer", "none"])
def test_every_image_goes_as_in_a_loop_by_hand(norm):
    model, batches = example_models()[norm], example_batches()[:2]
    adapter, generator = MEMO(model, lr=0.2, augmentations=5, seed=7), generator_of(7)
    for inputs in batches:
        found = adapter(inputs)
        expected = [alone(model, image, generator, lambda net, x: net(x), 0.2, 5) for image in inputs.split(1)]
        assert torch.allclose(found, torch.cat([logits for logits, _ in expected]), atol=1e-4)
        assert adapter.record["loss"] == pytest.approx(sum(loss for _, loss in expected) / len(expected), abs=1e-5)
        assert adapter.record["change"] > 1e-3


@pytest.mark.parametrize("prior", [16.0, 1.0])
def test_views_count_as_one_image_in_the_statistics(prior):
    torch.manual_seed(0)
    model, inputs = Small().eval(), example_batches()[0]
    found, generator = MEMO(model, lr=0.2, augmentations=4, prior=prior)(inputs), generator_of(0)
    for index, image in enumerate(inputs.split(1)):
        expected, _ = alone(model, image, generator, lambda net, x: net.by_hand(x, prior), 0.2, 4)
        assert torch.allclose(found[index], expected[0], atol=1e-4)


def test_without_learning_it_is_batchnorm_on_single_images():
    model, inputs = example_models()["batch"], example_batches()[0]
    single = BatchNorm(model, prior=16)
    expected = torch.cat([single(image) for image in inputs.split(1)])
    assert torch.allclose(MEMO(model, lr=0.0, augmentations=2)(inputs), expected, atol=1e-5)


def test_predictions_do_not_depend_on_how_the_stream_is_cut():
    model, inputs = example_models()["batch"], example_batches()[0]
    whole, parts = MEMO(model, lr=0.1, augmentations=3), MEMO(model, lr=0.1, augmentations=3)
    cut = torch.cat([parts(part) for part in inputs.split([1, 3, 2])])
    assert torch.allclose(whole(inputs), cut, atol=1e-5)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_nothing_is_left_of_an_image_but_the_place_of_the_random_numbers(optimiser):
    model, inputs = example_models()["batch"], example_batches()[0]
    adapter = MEMO(model, lr=0.1, augmentations=2, optimiser=optimiser)
    before = {key: value.clone() for key, value in adapter.state_dict().items() if isinstance(value, torch.Tensor)}
    adapter(inputs)
    after = adapter.state_dict()
    assert all(torch.equal(value, after[key]) for key, value in before.items())
    assert not adapter.optimiser.state
    assert adapter.memory == {"pending": 0}


def test_the_loss_is_the_entropy_of_the_mean_prediction():
    adapter, image = MEMO(example_models()["none"]), example_batches()[0][:1]
    opposite = torch.tensor([[50.0, 0.0], [0.0, 50.0]])
    assert float(adapter.loss(opposite, image)) == pytest.approx(log(2), abs=1e-6)
    alike = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(3, 1)
    assert float(adapter.loss(alike, image)) == pytest.approx(0.947537, abs=1e-6)


def test_a_step_makes_the_mean_prediction_surer():
    model, image = example_models()["none"], example_batches()[0][:1]
    adapter = MEMO(model, lr=0.5, augmentations=8)
    surer = adapter(image).softmax(1).amax()
    assert surer > model(image).softmax(1).amax()


def test_only_chosen_parameters_move(monkeypatch):
    adapter, moved = MEMO(example_models()["batch"], lr=0.1, augmentations=2, parameters="norm"), []
    monkeypatch.setattr(adapter, "_forget", lambda: moved.append(adapter.change()))
    adapter(example_batches()[0][:1])
    assert moved[0] > 0
    assert all("norm" in name or name.startswith("2.") or ".1." in name for name in adapter.adapted)


def test_the_parent_without_batchnorm_is_the_model_as_it_is():
    model = example_models()["layer"]
    adapter = MEMO(model)
    assert isinstance(adapter.parent(model), NoAdaptation)
    assert adapter.parent_label == "none"
    assert MEMO(example_models()["batch"]).parent_label == "memo:lr=0"


@pytest.mark.parametrize("settings", [{"augmentations": 0}, {"augmentations": True}, {"seed": 1.5}, {"lr": -1}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"^{next(iter(settings))} is"):
        MEMO(example_models()["none"], **settings)


def test_other_inputs_than_images_are_refused():
    with pytest.raises(HapteraError, match="views need images"):
        MEMO(nn.Sequential(nn.Linear(4, 2)))(torch.rand(3, 4))


def test_a_gradient_that_is_not_finite_leaves_the_source():
    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(4, 16))

        def forward(self, images):
            return F.linear(images.flatten(1), self.weight).abs().sqrt()  # no finite slope at 0

    model = Steep()
    adapter = MEMO(model, lr=0.1, augmentations=2)
    assert torch.equal(adapter(torch.rand(2, 1, 4, 4)), torch.zeros(2, 4))
    assert adapter.record["skipped"] == 1
