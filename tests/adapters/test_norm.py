"""Blended statistics: the gradient through the batch's share, running and cumulative averages, and the way back."""

import pytest
import torch
from torch import nn

from holdfast.adapters.norm import BlendedNorm, blended, unblended


def layer_with_statistics(dims=2):
    layer = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[dims](3).double()
    layer.running_mean.copy_(torch.tensor([0.5, -1.0, 0.0]))
    layer.running_var.copy_(torch.tensor([2.0, 0.25, 1.0]))
    layer.weight.data.copy_(torch.tensor([1.5, 0.5, -1.0]))
    return layer


def inputs_of(n, dims=2, seed=0):
    shape = (n, 3, *[2] * (dims if dims > 1 else 0))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 + 1


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("prior", [0.0, 3.0, 50.0])
def test_gradient_equals_finite_differences(prior, dims):
    layer = BlendedNorm(layer_with_statistics(dims), prior)
    inputs = inputs_of(4, dims).requires_grad_(True)

    def through(x, weight, bias):
        layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        del layer._parameters["weight"], layer._parameters["bias"]
        object.__setattr__(layer, "weight", weight)
        object.__setattr__(layer, "bias", bias)
        return layer(x)

    weight = layer.weight.detach().clone().requires_grad_(True)
    bias = layer.bias.detach().clone().requires_grad_(True)
    assert torch.autograd.gradcheck(through, (inputs, weight, bias))


def test_without_prior_the_gradient_is_that_of_train_mode():
    layer = layer_with_statistics()
    one, two = inputs_of(5).requires_grad_(True), inputs_of(5).requires_grad_(True)
    BlendedNorm(layer, 0.0)(one).pow(3).sum().backward()
    nn.functional.batch_norm(two, None, None, layer.weight, layer.bias, True).pow(3).sum().backward()
    assert torch.allclose(one.grad, two.grad)


def test_running_statistics_are_an_exponential_average():
    layer = BlendedNorm(layer_with_statistics(), 16.0, momentum=0.25)
    layer.use = "running"
    mean, var = layer.source_mean.clone(), layer.source_var.clone()
    for seed in range(4):
        inputs = inputs_of(6, seed=seed)
        layer(inputs)
        values = inputs.transpose(0, 1).reshape(3, -1)
        mean = 0.75 * mean + 0.25 * values.mean(1)
        var = 0.75 * var + 0.25 * values.var(1, correction=0)
    assert torch.allclose(layer.mean, mean)
    assert torch.allclose(layer.var, var)


def test_cumulative_statistics_weigh_all_images_and_the_prior_alike():
    layer = BlendedNorm(layer_with_statistics(), 5.0, momentum=None)
    layer.use = "running"
    batches = [inputs_of(n, seed=n) for n in (2, 6, 3)]
    for inputs in batches:
        layer(inputs)
    expected = 5 * layer.source_mean + sum(len(b) * b.transpose(0, 1).reshape(3, -1).mean(1) for b in batches)
    assert torch.allclose(layer.mean, expected / (5 + 11))


@pytest.mark.parametrize("source", [True, False])
def test_the_way_back_gives_the_class_that_was_replaced(source):
    model = nn.Sequential(layer_with_statistics(), nn.ReLU()).eval()
    inputs = inputs_of(4)
    expected = model(inputs).detach()
    (layer,) = blended(model, 2.0)
    adapted = model(inputs).detach()
    unblended(model, source)
    assert type(model[0]) is nn.BatchNorm2d
    assert torch.allclose(model(inputs), expected if source else adapted)
    assert layer not in list(model.modules())
