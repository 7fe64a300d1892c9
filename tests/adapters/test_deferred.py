"""A normalisation that waits for the ReLU after it gives what both give apart, to the last bit, whatever comes next."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import BatchNorm, Tent, deferred, fused
from haptera.adapters.norm import add_blends, blending
from haptera.adapters.quick import QuickPass

pytest.importorskip("numba")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("loops_of_any_size")]


class Swish(torch.autograd.Function):
    """What no mode of torch sees being called."""

    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return values * values.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (values,) = ctx.saved_tensors
        return grad * values.sigmoid() * (1 + values * (1 - values.sigmoid()))


def swish(values):
    return values * torch.sigmoid(values)


def kept_output(norm, values, other):
    before = norm(values)
    after = F.relu(before)
    return after * 2 + before


def changed_input(norm, values, other):
    values = values * 1
    out = norm(values)
    if not torch.is_grad_enabled():  # else torch refuses the backward pass, as it should
        values.mul_(3)
    return out + values


def changed_other(norm, values, other):
    other = other * 1
    out = norm(values) + other
    other.mul_(3)
    return F.relu(out) + other


def kept_sum(norm, values, other):
    both = norm(values) + other
    return F.relu(both) * both


def in_place(norm, values, other):
    out = norm(values)
    same = out
    torch.relu_(out)
    return out + same


def added_in_place(norm, values, other):
    out = norm(values)
    out += other
    return nn.ReLU(inplace=True)(out)


WAYS = {
    "relu": lambda norm, values, other: F.relu(norm(values)),
    "a module": lambda norm, values, other: nn.ReLU()(norm(values)),
    "a method": lambda norm, values, other: norm(values).relu(),
    "in place": in_place,
    "a module in place": lambda norm, values, other: nn.ReLU(inplace=True)(norm(values)),
    "added": lambda norm, values, other: F.relu(norm(values) + other),
    "added to": lambda norm, values, other: F.relu(other + norm(values)),
    "added in place": added_in_place,
    "added, relu in place": lambda norm, values, other: torch.relu_(norm(values) + other),
    "twice as much": lambda norm, values, other: F.relu(torch.add(norm(values), other, alpha=2)),
    "a part added": lambda norm, values, other: F.relu(norm(values) + other[:, :, :1]),
    "a number added": lambda norm, values, other: F.relu(norm(values) + 1),
    "added to itself": lambda norm, values, other: F.relu((out := norm(values)) + out),
    "kept": kept_output,
    "kept sum": kept_sum,
    "the input changes": changed_input,
    "the other changes": changed_other,
    "nothing": lambda norm, values, other: norm(values),
    "a function": lambda norm, values, other: Swish.apply(norm(values)),
    "numpy": lambda norm, values, other: torch.from_numpy(np.asarray(norm(values).detach())).relu() + values,
    "two layers": lambda norm, values, other: F.relu(norm(values) + norm(other)),
}


class Net(nn.Module):
    """A layer, and what comes after it in one of the ways above."""

    def __init__(self, way):
        super().__init__()
        self.norm, self.way = nn.BatchNorm2d(16), way
        torch.manual_seed(0)
        for tensor in (self.norm.weight, self.norm.bias, self.norm.running_mean):
            nn.init.normal_(tensor)

    def forward(self, pair):
        return WAYS[self.way](self.norm, *pair)


def images(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, 16, 6, 5, generator=generator).contiguous(memory_format=torch.channels_last)


def answer(way, grad, monkeypatch, waits, first=None, prior=4.0):
    """Output and gradients of the third pass; the first may go another way."""
    if not waits:
        monkeypatch.setattr(deferred.Room, "takes", lambda room: False)
    net = Net(way).eval()
    add_blends(net, prior)
    for turn in range(3):
        net.way = first if first is not None and turn < 2 else way
        leaves = [images(turn).requires_grad_(grad), images(turn + 5).requires_grad_(grad)]
        net.zero_grad()
        with torch.set_grad_enabled(grad):
            with blending(net, "batch"):
                out = net([leaf * 1 for leaf in leaves] if grad else leaves)
            if grad:
                (out * images(9)).sum().backward()
    monkeypatch.undo()
    monkeypatch.setattr(fused, "LEAST", 1)
    return [out.detach(), *(leaf.grad for leaf in leaves), net.norm.weight.grad, net.norm.bias.grad]


@pytest.mark.parametrize("prior", [0.0, 4.0])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_results_and_gradients_are_those_of_layers_that_do_not_wait(way, grad, prior, monkeypatch):
    waited = answer(way, grad, monkeypatch, True, prior=prior)
    apart = answer(way, grad, monkeypatch, False, prior=prior)
    assert torch.equal(waited[0], apart[0])
    torch.testing.assert_close(waited, apart, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("first", ["relu", "added", "added in place"])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_goes_another_way_than_before_is_right(way, first, grad, monkeypatch):
    waited = answer(way, grad, monkeypatch, True, first)
    apart = answer(way, grad, monkeypatch, False, first)
    torch.testing.assert_close(waited, apart, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["relu", "added"])
def test_gradients_are_those_of_torch_in_double_precision(way, monkeypatch):
    found = answer(way, True, monkeypatch, True, prior=0.0)
    net = Net(way).double().train()
    leaves = [images(turn).double().requires_grad_() for turn in (2, 7)]
    out = net(leaves)
    (out * images(9).double()).sum().backward()
    wanted = [out.detach(), *(leaf.grad for leaf in leaves), net.norm.weight.grad, net.norm.bias.grad]
    for ours, reference in zip(found, wanted, strict=True):
        assert (ours is None) == (reference is None)
        if ours is not None:
            torch.testing.assert_close(ours.double(), reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("way", ["relu", "a module in place", "added"])
def test_a_second_derivative_passes_the_relu(way):
    found = []
    for ours in (True, False):
        net = Net(way).eval()
        add_blends(net, 0.0)
        leaf = images().requires_grad_()
        for _ in range(2):
            if ours:
                with blending(net, "batch"):
                    out = net([leaf * 1, images(1)])
            else:
                out = net.train()([leaf * 1, images(1)])
        (first,) = torch.autograd.grad(out.pow(2).sum(), leaf, create_graph=True)
        assert first.requires_grad
        found.append(first.detach())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_what_a_hook_keeps_is_written():
    net = Net("relu").eval()
    add_blends(net, 4.0)
    kept = []
    net.norm.register_forward_hook(lambda layer, given, out: kept.append(out))
    with torch.no_grad():
        for turn in range(3):
            with blending(net, "batch"):
                out = net([images(turn), images()])
            assert torch.equal(kept[-1].relu(), out)
            assert (kept[-1] < 0).any()


def test_what_is_not_a_number_stays_so():
    net = Net("relu").eval()
    add_blends(net, 4.0)
    values = images()
    values[0, 3, 1, 1] = float("nan")
    with torch.no_grad():
        for _ in range(2):
            with blending(net, "batch"):
                out = net([values, values])
    assert out[:, 3].isnan().all()
    assert not out[:, 4].isnan().any()


def test_quick_passes_are_those_of_the_model():
    for way in ("relu", "added", "in place", "kept"):
        net = Net(way).eval()
        quick = QuickPass(net)
        for turn in range(3):
            with torch.no_grad():
                with quick:
                    out = net([images(turn), images(7)])
                torch.testing.assert_close(out, net([images(turn), images(7)]), rtol=1e-5, atol=1e-5)


def test_layers_wait_in_the_networks_that_are_measured(monkeypatch):
    from haptera.models import ResNet

    written = []
    write = fused.Normalisation.write
    monkeypatch.setattr(
        fused.Normalisation,
        "write",
        lambda own, out, other=None, rectify=False: written.append(rectify) or write(own, out, other, rectify),
    )
    torch.manual_seed(0)
    net, inputs = ResNet(channels=3, width=16).eval(), torch.rand(16, 3, 16, 16)
    layers = sum(isinstance(layer, nn.BatchNorm2d) for layer in net.modules())
    for make in (BatchNorm, Tent):
        adapter = make(net)
        adapter(inputs)
        written.clear()
        adapter(inputs)
        assert (len(written), sum(written)) == (layers, 7)  # but for the two shortcuts, each is followed by a ReLU
