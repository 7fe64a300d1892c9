"""Compiled loops of normalisation layers agree with torch in double precision."""

import logging
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from haptera.adapters import BatchNorm, Tent, fused
from haptera.adapters.norm import per_image
from haptera.adapters.normalising import normalise, statistics, train_mode
from haptera.models import ResNet

pytest.importorskip("numba")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("loops_of_any_size")]
SHAPES = [(3, 16, 8, 8), (2, 7, 5, 3), (1, 300, 2, 2), (4, 1, 9, 1), (2, 64, 40, 41)]


def images(shape, mean=0.0):
    torch.manual_seed(0)
    return (torch.randn(shape) * 2 + mean).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [0.0, 1000.0])
def test_moments_are_those_of_double_precision_however_far_from_zero(shape, mean):
    values = images(shape, mean)
    exact = values.double()
    found, var = statistics(values, 1e-5, torch.float32)
    torch.testing.assert_close(found.double(), exact.mean((0, 2, 3)), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(var.double(), exact.var((0, 2, 3), correction=0), rtol=2e-5, atol=1e-6)
    each = per_image(values).double()
    torch.testing.assert_close(each[:, 0], exact.mean((2, 3)), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(each[:, 1], exact.square().mean((2, 3)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] > 1])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_outputs_and_gradients_are_those_of_torch_in_double_precision(shape, share):
    values, grad = images(shape, 3.0), torch.randn(shape)
    weight, bias = torch.rand(shape[1]) + 0.5, torch.randn(shape[1])
    source, spread = torch.randn(shape[1]), torch.rand(shape[1]) + 1
    leaves = [each.clone().requires_grad_() for each in (values, weight, bias)]
    own, var = statistics(leaves[0].detach(), 1e-5, torch.float32)
    assert fused.suits(leaves[0])
    out = normalise(*leaves, own, source.lerp(own, share), spread.lerp(var, share), share, 1e-5)
    out.backward(grad)

    exact = [each.double().requires_grad_() for each in (values, weight, bias)]
    mean = source.double().lerp(exact[0].mean((0, 2, 3)), share)[:, None, None]
    var = spread.double().lerp(exact[0].var((0, 2, 3), correction=0), share)[:, None, None]
    wanted = (exact[0] - mean) / (var + 1e-5).sqrt() * exact[1][:, None, None] + exact[2][:, None, None]
    wanted.backward(grad.double())
    torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-5)
    for ours, reference in zip(leaves, exact, strict=True):
        torch.testing.assert_close(ours.grad.double(), reference.grad, rtol=1e-4, atol=1e-4)


def test_a_layer_whose_input_needs_no_gradient_still_has_those_of_scale_and_offset():
    values, weight, bias = (
        images((3, 16, 8, 8)),
        torch.ones(16, requires_grad=True),
        torch.zeros(16, requires_grad=True),
    )
    train_mode(values, weight, bias, 1e-5, torch.float32)[0].pow(3).sum().backward()
    ours = weight.grad.clone(), bias.grad.clone()
    weight.grad = bias.grad = None
    F.batch_norm(values, None, None, weight, bias, True, 0.0, 1e-5).pow(3).sum().backward()
    torch.testing.assert_close(ours, (weight.grad, bias.grad), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("method", [BatchNorm, Tent])
def test_adapters_predict_as_they_do_without_loops(method, monkeypatch):
    torch.manual_seed(0)
    model, inputs = ResNet(channels=3, width=16).eval(), torch.rand(3, 16, 3, 16, 16)
    with_loops = [adapter(batch) for adapter in [method(model, prior=4)] for batch in inputs]
    monkeypatch.setattr(fused, "LEAST", 10**9)
    without = [adapter(batch) for adapter in [method(model, prior=4)] for batch in inputs]
    torch.testing.assert_close(with_loops, without, rtol=1e-3, atol=1e-4)


def test_loops_are_for_large_single_precision_images_with_channels_last_on_one_thread(monkeypatch):
    values = images((2, 8, 4, 4))
    assert fused.suits(values)
    assert not fused.suits(values.contiguous())
    assert not fused.suits(values.double())
    monkeypatch.setattr(fused, "LEAST", values.numel() + 1)
    assert not fused.suits(values)
    monkeypatch.setattr(fused, "LEAST", 1)
    torch.set_num_threads(2)
    assert not fused.suits(values)


def normalised(values):
    """Normalise by the batch itself, from a prior, and by image."""
    ones = torch.ones(values.shape[1])
    out, mean, var = train_mode(values, ones, ones, 1e-5, torch.float32)
    return out + normalise(values, ones, ones, mean, mean, var, 0.5, 1e-5) + per_image(values).sum()


def test_fake_tensors_go_through_torch():
    with FakeTensorMode():
        values = torch.empty(4, 16, 8, 8).contiguous(memory_format=torch.channels_last)
        assert not fused.suits(values)
        assert normalised(values).shape == (4, 16, 8, 8)


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_layer_gives_what_the_loops_give(strict):
    class Layer(torch.nn.Module):
        def forward(self, values):
            return normalised(values)

    values = images((4, 16, 8, 8))
    exported = torch.export.export(Layer(), (values,), strict=strict).module()
    assert fused.suits(values)
    torch.testing.assert_close(exported(values), normalised(values), rtol=1e-4, atol=1e-4)


def test_tensors_of_torch_func_go_through_torch():
    values = images((3, 16, 8, 8))
    seen = []

    def loss(each):
        seen.append(fused.suits(each))
        return each.square().sum()

    gradient = torch.func.grad(loss)(values)
    torch.testing.assert_close(gradient, 2 * values)
    assert seen == [False]


def test_a_numba_that_does_not_import_is_said_once_and_torch_runs(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "haptera.adapters.kernels", None)  # an import of it fails
    monkeypatch.delattr("haptera.adapters.kernels", raising=False)
    fused._kernels.cache_clear()
    with caplog.at_level(logging.INFO, "haptera"):
        values = images((3, 16, 8, 8))
        assert not any(fused.suits(values) for _ in range(3))
        assert normalised(values).shape == values.shape
    fused._kernels.cache_clear()
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "numba does not import" in caplog.text
