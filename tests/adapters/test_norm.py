"""Blended statistics: the gradient through the batch's share, running and cumulative averages, and the way back."""

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters import BatchNorm
from haptera.adapters.norm import add_blends, blending, blends_of, remove_blends
from haptera.testing.adapters import example_batches
from haptera.testing.batchnorm_networks import Called, batchnorm_networks


def layer_with_statistics(dims=2):
    layer = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[dims](3).double()
    layer.running_mean.copy_(torch.tensor([0.5, -1.0, 0.0]))
    layer.running_var.copy_(torch.tensor([2.0, 0.25, 1.0]))
    layer.weight.data.copy_(torch.tensor([1.5, 0.5, -1.0]))
    return layer


def inputs_of(n, dims=2, seed=0):
    shape = (n, 3, *[2] * (dims if dims > 1 else 0))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 + 1


def with_blend(layer, prior, momentum=None):
    add_blends(layer, prior, momentum)
    return layer.eval()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("prior", [0.0, 3.0, 50.0])
def test_gradient_equals_finite_differences(prior, dims):
    layer = with_blend(layer_with_statistics(dims), prior)
    inputs = inputs_of(4, dims).requires_grad_(True)

    def through(x, weight, bias):
        with blending(layer, "batch"):
            return functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    weight = layer.weight.detach().clone().requires_grad_(True)
    bias = layer.bias.detach().clone().requires_grad_(True)
    assert torch.autograd.gradcheck(through, (inputs, weight, bias))


def test_without_prior_the_gradient_is_that_of_train_mode():
    layer = layer_with_statistics()
    one, two = inputs_of(5).requires_grad_(True), inputs_of(5).requires_grad_(True)
    with blending(with_blend(layer, 0.0), "batch"):
        layer(one).pow(3).sum().backward()
    nn.functional.batch_norm(two, None, None, layer.weight, layer.bias, True).pow(3).sum().backward()
    assert torch.allclose(one.grad, two.grad)


def test_running_statistics_are_an_exponential_average():
    layer = with_blend(layer_with_statistics(), 16.0, momentum=0.25)
    mean, var = layer.running_mean.clone(), layer.running_var.clone()
    for seed in range(4):
        inputs = inputs_of(6, seed=seed)
        with blending(layer, "running"):
            layer(inputs)
        values = inputs.transpose(0, 1).reshape(3, -1)
        mean = 0.75 * mean + 0.25 * values.mean(1)
        var = 0.75 * var + 0.25 * values.var(1, correction=0)
    (blend,) = blends_of(layer)
    assert torch.allclose(blend.mean, mean)
    assert torch.allclose(blend.var, var)


def test_cumulative_statistics_weigh_all_images_and_the_prior_alike():
    layer = with_blend(layer_with_statistics(), 5.0)
    batches = [inputs_of(n, seed=n) for n in (2, 6, 3)]
    for inputs in batches:
        with blending(layer, "running"):
            layer(inputs)
    expected = 5 * layer.running_mean + sum(len(b) * b.transpose(0, 1).reshape(3, -1).mean(1) for b in batches)
    (blend,) = blends_of(layer)
    assert torch.allclose(blend.mean, expected / (5 + 11))


def test_a_layer_in_two_places_ends_with_the_statistics_of_both():
    layer = with_blend(layer_with_statistics(), 0.0)
    one, two = inputs_of(4), inputs_of(4, seed=1) * 3
    with blending(layer, "batch"):
        layer(one)
        layer(two)
    (blend,) = blends_of(layer)
    values = torch.cat([one, two]).transpose(0, 1).reshape(3, -1)
    assert torch.allclose(blend.mean, values.mean(1))
    assert torch.allclose(blend.var, values.var(1, correction=0))


@pytest.mark.parametrize("name", batchnorm_networks())
def test_without_prior_any_layer_does_what_it_does_in_train_mode(name):
    network = batchnorm_networks()[name]
    inputs = example_batches()[0]
    adapted = BatchNorm(network, prior=0)(inputs)
    trained = network.train()
    for layer in trained.modules():
        layer.training = layer.training and isinstance(layer, _BatchNorm | Called)
        if isinstance(layer, _BatchNorm):
            layer.track_running_stats = layer.running_mean is not None
    assert torch.allclose(adapted, trained(inputs), atol=1e-5)


@pytest.mark.parametrize("name", batchnorm_networks())
@pytest.mark.parametrize("prior", [2.0, float("inf")])
def test_a_released_model_predicts_as_the_frozen_adapter_does(name, prior):
    adapter = BatchNorm(batchnorm_networks()[name], prior=prior)
    inputs = example_batches()[0]
    adapter(inputs)
    adapter.frozen = True
    released = adapter.release()
    assert [type(layer) for layer in released.modules()] == [
        type(layer) for layer in batchnorm_networks()[name].modules()
    ]
    assert torch.allclose(released(inputs), adapter(inputs), atol=1e-5)


@pytest.mark.parametrize("source", [True, False])
def test_the_way_back_leaves_the_layer_that_was_there(source):
    model = nn.Sequential(layer_with_statistics(), nn.ReLU()).eval()
    layer, inputs = model[0], inputs_of(4)
    expected = model(inputs).detach()
    add_blends(model, 2.0)
    with blending(model, "batch"):
        adapted = model(inputs).detach()
    remove_blends(model, source)
    assert model[0] is layer
    assert not list(blends_of(model))
    assert torch.allclose(model(inputs), expected if source else adapted)


@pytest.mark.parametrize("prior", [0.0, 4.0])
def test_half_precision_inputs_have_statistics_and_gradients_in_full(prior):
    layer = with_blend(layer_with_statistics().float(), prior)
    inputs = inputs_of(8).float()
    results = {}
    for dtype in (torch.float32, torch.bfloat16):
        own = inputs.clone().to(dtype).requires_grad_(True)
        with blending(layer, "batch"):
            out = layer(own)
        out.float().pow(2).mean().backward()
        results[dtype] = out.float(), own.grad.float(), layer.weight.grad
        layer.weight.grad = None
    for full, half in zip(*results.values(), strict=True):
        assert torch.allclose(full, half, atol=0.05)


@pytest.mark.slow
def test_compiled_models_have_the_statistics_of_the_batch_too():
    network, inputs = batchnorm_networks()["activation inside the layer"], example_batches()[0]
    expected = BatchNorm(network, prior=0)(inputs)
    compiled = torch.compile(network, backend="eager")
    assert torch.allclose(BatchNorm(compiled, prior=0)(inputs), expected, atol=1e-6)
    assert torch.allclose(compiled(inputs), network(inputs), atol=1e-6)


def test_efficientnet_with_an_infinite_prior_is_the_model():
    lite = pytest.importorskip("efficientnet_lite_pytorch")
    network = lite.EfficientNet.from_name("efficientnet-lite0").eval()
    inputs = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = network(inputs)
    adapted = BatchNorm(network, prior=float("inf"))(inputs)
    assert torch.allclose(adapted, expected, atol=1e-5 * float(1 + expected.abs().max()))


class ByHand(nn.BatchNorm2d):
    """Normalises in its own words."""

    def forward(self, inputs):
        mean, deviation = self.running_mean, (self.running_var + self.eps).sqrt()
        return (inputs - mean[:, None, None]) / deviation[:, None, None]


def test_layers_that_normalise_in_another_way_are_remarked_on_once(caplog):
    adapter = BatchNorm(nn.Sequential(nn.Conv2d(1, 2, 3), ByHand(2), nn.BatchNorm2d(2), nn.Flatten()), prior=0)
    for _ in range(2):
        adapter(torch.rand(20, 1, 5, 5))
    said = [record.getMessage() for record in caplog.records if "did not call batch_norm" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("1 of 2 BatchNorm layers")
