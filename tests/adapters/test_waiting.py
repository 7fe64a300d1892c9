"""An output that waits is written before TorchScript, or a mode of somebody else, reads it."""

import pytest
import torch
from tests.adapters.test_deferred import WAYS, Net, answer, images, swish
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from haptera.adapters.norm import add_blends, blending
from haptera.adapters.quick import QuickPass

pytest.importorskip("numba")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("loops_of_any_size")]


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
def test_torchscript_that_reads_an_output_before_the_relu_reads_values():
    net = Net("relu").eval()
    net.gate = torch.jit.trace(nn.Sigmoid(), images())
    net.forward = lambda values: net.gate(out := net.norm(values)) * F.relu(out)
    with torch.no_grad():
        wanted = [net(images(turn)) for turn in range(3)]
        quick = QuickPass(net)
        for turn in range(3):
            with quick:
                torch.testing.assert_close(net(images(turn)), wanted[turn], rtol=1e-5, atol=1e-5)
        add_blends(net, float("inf"))
        for turn in range(3):
            with blending(net, "last"):
                assert torch.equal(net(images(turn)), wanted[turn])
        add_blends(net, 0.0)
        for turn in range(3):
            with blending(net, "batch"):
                found = net(images(turn))
            torch.testing.assert_close(found, net.train()(images(turn)), rtol=1e-4, atol=1e-4)
            net.eval()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("extra", ["read", "input"])
def test_a_scripted_function_before_the_relu_meets_values(grad, extra, monkeypatch):
    gate = torch.jit.script(swish)
    reads = {
        "read": lambda norm, values, other: gate(out := norm(values)) + F.relu(out),
        "input": lambda norm, values, other: (out := norm(values), gate(other), F.relu(out) + other)[-1],
    }
    monkeypatch.setitem(WAYS, "scripted", reads[extra])
    wanted = answer("scripted", grad, monkeypatch, waits=False)
    monkeypatch.setitem(WAYS, "scripted", reads[extra])
    for found, value in zip(answer("scripted", grad, monkeypatch, waits=True), wanted, strict=True):
        assert (found is None and value is None) or torch.equal(found, value)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("first", ["relu", "added"])
@pytest.mark.parametrize("branch", ["alone", "read", "read after", "sum"])
def test_a_later_branch_into_a_scripted_function_meets_values(branch, first, grad, monkeypatch):
    gate = torch.jit.script(swish)
    branches = {
        "alone": lambda norm, values, other: gate(norm(values)),
        "read": lambda norm, values, other: gate(out := norm(values)) + F.relu(out),
        "read after": lambda norm, values, other: (out := norm(values), after := F.relu(out), gate(out) + after)[-1],
        "sum": lambda norm, values, other: gate(both := norm(values) + other) * F.relu(both),
    }
    found = []
    for waits in (True, False):
        monkeypatch.setitem(WAYS, "scripted", branches[branch])
        found.append(answer("scripted", grad, monkeypatch, waits, first))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_a_layer_that_once_led_into_a_scripted_function_waits_no_more():
    gate = torch.jit.script(swish)
    net = Net("relu").eval()
    (blend,) = add_blends(net, 4.0)
    known = []
    with torch.no_grad():
        for way in (WAYS["relu"], WAYS["relu"], lambda norm, values, other: gate(norm(values)), WAYS["relu"]):
            net.forward = lambda pair, way=way: way(net.norm, *pair)
            with blending(net, "batch"):
                net([images(), images(1)])
            known.append(blend.followed)
    assert known == ["relu", "relu", "other", "other"]
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_a_mode_that_the_model_opens_while_an_output_waits_is_left_in_place():
    class Count(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen += 1
            return func(*args, **(kwargs or {}))

    net, count = Net("relu").eval(), Count()

    def forward(pair):
        out = net.norm(pair[0])
        with count:
            return F.relu(out) + pair[1]

    net.forward = forward
    with torch.no_grad():
        wanted = [net([images(turn), images(1)]) for turn in range(3)]
        add_blends(net, 1e9)
        for turn in range(3):
            before = count.seen
            with blending(net, "batch"):
                found = net([images(turn), images(1)])
            assert count.seen > before
            torch.testing.assert_close(found, wanted[turn], rtol=1e-4, atol=1e-4)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
