"""All layers as one operation: points and gradients are those of torch's layers, compiled or not, in lent memory."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.contrastive import convolution, gelu
from haptera.contrastive.stack import Pool, encode


def new_layers(blocks=2, last=3, channels=3, hidden=4, dimensions=2):
    torch.manual_seed(0)
    sizes = [(channels, hidden, 2), *[(hidden, hidden, 3)] * blocks, (hidden, dimensions, last)]
    return [nn.Conv1d(*size).double() for size in sizes]


def by_torch(source, layers, chosen=None, rows=None):
    sequence = source if chosen is None else source[chosen]
    first, *blocks, last = layers
    hidden = F.gelu(first(sequence.T[None]))
    for block in blocks:
        hidden = hidden[..., 1:-1] + F.gelu(block(hidden))
    found = last(hidden)[0].T
    return found if rows is None else found[rows]


def draw(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def gradients(function, layers, *given, **settings):
    found = function(*given, layers, **settings)
    weights = [parameter for layer in layers for parameter in layer.parameters()]
    return [found.detach(), *torch.autograd.grad((found**3).sum(), weights)]


@pytest.mark.parametrize(("blocks", "last"), [(0, 1), (1, 2), (3, 3)])
@pytest.mark.parametrize("wanted", [None, 1, 3, 8, 200])  # few windows go through the last layers alone
def test_points_and_gradients_are_those_of_the_layers_one_by_one(blocks, last, wanted):
    layers, source = new_layers(blocks, last), draw(60, 3)
    chosen = torch.cat([torch.arange(5, 30), torch.arange(31, 58)])
    places = len(chosen) - 1 - 2 * blocks - last + 1
    rows = None if wanted is None else torch.tensor(np.random.default_rng(0).integers(places, size=wanted))
    for samples in (None, chosen):
        found = gradients(encode, layers, source, chosen=samples, rows=rows)
        for own, expected in zip(found, gradients(by_torch, layers, source, chosen=samples, rows=rows), strict=True):
            torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("time", [11, 12, 13, 30])
@pytest.mark.parametrize("rows", [None, [0], [0, 2, 2, 1]], ids=str)
def test_finite_differences_confirm_the_gradients(time, rows):
    layers, source = new_layers(), draw(time, 3).requires_grad_()
    chosen = None if rows is None else torch.arange(time - 1)
    places = None if rows is None else torch.tensor(rows)
    weights = [parameter for layer in layers for parameter in layer.parameters()]

    class Afresh(torch.autograd.Function):  # gradcheck asks for a gradient more often than it is there
        @staticmethod
        def forward(_ctx, source, *_weights):
            return encode(source, layers, chosen=chosen, rows=places)

        @staticmethod
        def backward(_ctx, gradient):
            with torch.enable_grad():
                return torch.autograd.grad(encode(source, layers, chosen=chosen, rows=places), given, gradient)

    given = [source, *weights]
    assert torch.autograd.gradcheck(Afresh.apply, given)


def test_weights_that_do_not_learn_get_no_gradient_and_the_others_the_same():
    layers, source = new_layers(), draw(40, 3)
    expected = gradients(by_torch, layers, source)[1:3]
    for layer in layers[1:]:
        layer.requires_grad_(False)
    (encode(source, layers) ** 3).sum().backward()
    for own, true in zip(layers[0].parameters(), expected, strict=True):
        torch.testing.assert_close(own.grad, true)
    assert all(parameter.grad is None for layer in layers[1:] for parameter in layer.parameters())


@pytest.mark.parametrize("way", ["compiled", "torch"])
@pytest.mark.parametrize("hidden", [7, 32])  # 32 are a tile of the compiled products
def test_compiled_loops_and_torch_agree_with_double_precision(way, hidden, monkeypatch):
    if way == "compiled":
        pytest.importorskip("numba")
        monkeypatch.setattr(gelu, "LEAST", 1)
        monkeypatch.setattr(gelu, "THREADS", 10_000)
        assert gelu.loops_for(torch.zeros(2)) is not None
    else:
        monkeypatch.setattr(gelu, "THREADS", 0)
    layers, source = new_layers(3, hidden=hidden), draw(300, 3)
    rows = torch.tensor(np.random.default_rng(0).integers(280, size=20))
    for wanted in (None, rows):
        exact = gradients(by_torch, [layer.double() for layer in layers], source, rows=wanted)
        found = gradients(encode, [layer.float() for layer in layers], source.float(), rows=wanted)
        for own, true in zip(found, exact, strict=True):
            torch.testing.assert_close(own.double(), true, rtol=2e-5, atol=2e-5 * true.abs().max().item())


@pytest.mark.parametrize("wanted", [None, 40, 2000])
def test_the_convolution_of_the_library_agrees_with_double_precision(wanted, monkeypatch):
    calls = []
    library = convolution._library
    monkeypatch.setattr(convolution, "LEAST", 1)
    monkeypatch.setattr(convolution, "_tiles", lambda: None)  # they come first where they are there
    monkeypatch.setattr(convolution, "_library", lambda *given: calls.append(given[2]) or library(*given))
    layers, source = new_layers(3, channels=20, hidden=32, dimensions=16), draw(400, 20)
    chosen = torch.cat([torch.arange(5, 130), torch.arange(131, 388)])
    rows = None if wanted is None else torch.tensor(np.random.default_rng(0).integers(370, size=wanted))
    exact = gradients(by_torch, layers, source, chosen=chosen, rows=rows)
    found = gradients(encode, [layer.float() for layer in layers], source.float(), chosen=chosen, rows=rows)
    assert calls == [0] * 5 + [2] * 4  # five layers, and the gradients of what four of them are given
    for own, true in zip(found, exact, strict=True):
        torch.testing.assert_close(own.double(), true, rtol=2e-5, atol=2e-5 * true.abs().max().item())


def test_the_compiled_gelu_is_as_exact_as_single_precision():
    kernels = pytest.importorskip("haptera.contrastive.kernels", reason="needs numba")
    values = torch.cat([torch.linspace(-20, 20, 40_000), torch.tensor([0.0, -1e30, 1e30, -1e-30])])
    exact = values.double().requires_grad_()
    (slope,) = torch.autograd.grad(F.gelu(exact).sum(), exact)
    left, out = values.numpy().copy()[None], np.empty((1, len(values)), np.float32)
    kernels.activate(left, np.zeros(1, np.float32), np.empty((1, 0), np.float32), 0, left, out)
    np.testing.assert_allclose(out[0], F.gelu(exact).detach(), rtol=3e-7, atol=2e-6)
    np.testing.assert_allclose(left[0], slope, atol=5e-7)


@pytest.mark.parametrize("keep", [True, False])
def test_memory_is_lent_again_and_never_while_somebody_uses_it(keep):
    layers, pool, source = new_layers(), Pool(), draw(40, 3)
    with torch.set_grad_enabled(keep):
        first, second = (encode(one, layers, pool=pool) for one in (source, 2 * source))
    torch.testing.assert_close(first, by_torch(source, layers))
    torch.testing.assert_close(second, by_torch(2 * source, layers))
    if not keep:
        assert len(pool._free) == 1
        return
    weight = layers[0].weight
    assert pool._free == []
    for points, signal in ((first, source), (second, 2 * source)):
        (own,) = torch.autograd.grad(points.sum(), weight, retain_graph=True)
        torch.testing.assert_close(own, torch.autograd.grad(by_torch(signal, layers).sum(), weight)[0])
    assert len(pool._free) == 2
    with pytest.raises(RuntimeError, match="encode once more"):
        first.sum().backward()
    encode(source, layers, pool=pool)
    assert len(pool._free) == 1


def test_what_is_not_a_number_stays_so():
    layers, source = [layer.float() for layer in new_layers(hidden=32)], torch.full((2000, 3), torch.nan)
    assert encode(source, layers).isnan().all()
