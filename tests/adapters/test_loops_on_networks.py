"""Compiled loops and outputs that wait give what torch's own BatchNorm gives, in networks of every kind.

The reference is obvious: a copy of the network whose BatchNorm layers are in train mode, or the network itself.
"""

import copy
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from haptera.adapters import fused
from haptera.adapters.following import EAGERLY
from haptera.adapters.norm import add_blends, blending, per_image
from haptera.adapters.quick import QuickPass
from haptera.modules import find_logits

pytest.importorskip("numba")
pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("loops_of_any_size"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]


class InPlace(torch.autograd.Function):
    """A ReLU in place that hands the gradient on as it is."""

    @staticmethod
    def forward(ctx, values):
        ctx.mark_dirty(values)
        return values.relu_()

    @staticmethod
    def backward(ctx, grad):
        return grad


def swish(values: torch.Tensor) -> torch.Tensor:
    return values * torch.sigmoid(values)


@cache
def scripted():
    """What no mode of functions sees being called."""
    return torch.jit.script(swish)


def shared(net, values):
    return scripted()(net.norm(net.second(F.relu(net.norm(values)))))


def shared_and_added(net, values):
    values = F.relu(net.norm(values) + values)
    return F.relu(net.norm(values)) + scripted()(net.norm(values))


def kept(net, values):
    out = net.norm(values)
    return F.relu(out) * scripted()(out)


def kept_sum(net, values):
    out = net.norm(values) + values
    after = F.relu(out)
    return scripted()(out) + after


def kept_by_a_list(net, values):
    before = [net.norm(values)]
    after = F.relu(before[0])
    return scripted()(before[0] if len(before) else after) + after


def without_gradient(net, values):
    out = net.norm(values)
    with torch.no_grad():
        out.relu_()
    return out


def views(net, values):
    values = F.relu(net.norm(values), inplace=True)
    out = net.other(values)
    out += values
    return F.relu(net.norm(torch.relu_(out)).view(len(out), 8, -1), inplace=True)


class Net(nn.Module):
    """Two convolutions, two layers of BatchNorm, and a way through them."""

    def __init__(self, way, weight=True, bias=True, norm=nn.BatchNorm2d):
        super().__init__()
        self.way, self.first, self.second = way, nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1)
        self.norm, self.other, self.last = norm(8), norm(8), nn.Linear(8, 5)
        for layer in (self.norm, self.other):
            layer.weight = layer.weight if weight else None
            layer.bias = layer.bias if bias else None

    def forward(self, images):
        return self.last(self.way(self, self.first(images)).flatten(2).mean(2))


def of_transformers(name, **settings):
    library = pytest.importorskip("transformers")
    config = getattr(library, f"{name}Config")(num_labels=5, **settings)
    return getattr(library, f"{name}ForImageClassification")(config)


SMALL = {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [2, 1]}
THIN = {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "image_size": 32}
NETWORKS = {
    "shared": lambda: Net(shared),
    "shared and added": lambda: Net(shared_and_added),
    "kept": lambda: Net(kept),
    "kept sum": lambda: Net(kept_sum),
    "kept by a list": lambda: Net(kept_by_a_list),
    "a gradient of its own": lambda: Net(lambda net, values: InPlace.apply(net.norm(values))),
    "without a gradient": lambda: Net(without_gradient),
    "views": lambda: Net(views),
    "without a scale": lambda: Net(lambda net, values: F.relu(net.norm(values)), weight=False),
    "without an offset": lambda: Net(lambda net, values: F.relu(net.norm(values)), bias=False),
    "sequences": lambda: Net(lambda net, values: F.relu(net.norm(values.flatten(2).contiguous())), norm=nn.BatchNorm1d),
    "sequences as long as wide": lambda: Net(
        lambda net, values: F.relu(net.norm(values.flatten(2)[..., :8].contiguous())), norm=nn.BatchNorm1d
    ),
    "resnet": lambda: of_transformers("ResNet", layer_type="basic", **SMALL),
    "resnet, bottlenecks": lambda: of_transformers("ResNet", **SMALL),
    "regnet": lambda: of_transformers("RegNet", groups_width=8, **SMALL),
    "mobilenet": lambda: of_transformers("MobileNetV2", depth_multiplier=0.35),
    "mobilenet, relu": lambda: of_transformers("MobileNetV1", depth_multiplier=0.25, hidden_act="relu"),
    "efficientnet": lambda: of_transformers("EfficientNet", drop_connect_rate=0.0, **THIN),
}


def network(name):
    torch.manual_seed(0)
    net = NETWORKS[name]().eval()
    for layer in net.modules():
        if isinstance(layer, _BatchNorm):
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
            for tensor, middle in ((layer.running_mean, 0.0), (layer.weight, 1.0), (layer.bias, 0.0)):
                if tensor is not None:
                    nn.init.normal_(tensor, middle, 0.2)
    return net


def images(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, 3, 32, 32, generator=generator).contiguous(memory_format=torch.channels_last)


def entropy_gradients(net, logits):
    net.zero_grad()
    (-logits.softmax(1) * logits.log_softmax(1)).sum(1).mean().backward()
    return {name: parameter.grad for name, parameter in net.named_parameters()}


@pytest.mark.parametrize("name", NETWORKS)
def test_statistics_of_the_batch_are_those_of_train_mode_in_outputs_and_gradients(name):
    ours, reference = network(name), network(name)
    add_blends(ours, 0.0)
    for layer in reference.modules():
        layer.train(isinstance(layer, _BatchNorm))
    for turn in range(3):  # the first pass finds out what follows what, so the next ones are another way
        with blending(ours, "batch"):
            found = find_logits(ours(images(turn)))
        expected = find_logits(reference(images(turn)))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
        wanted = entropy_gradients(reference, expected)
        largest = max(float(each.abs().max()) for each in wanted.values() if each is not None)
        for key, gradient in entropy_gradients(ours, found).items():
            assert (gradient is None) == (wanted[key] is None), key
            if gradient is not None:
                # What comes before the next BatchNorm without a ReLU has no gradient, but for rounding.
                torch.testing.assert_close(gradient, wanted[key], rtol=0.01, atol=1e-3 * largest, msg=key)


@pytest.mark.parametrize("name", NETWORKS)
def test_quick_passes_and_passes_without_a_gradient_are_those_of_the_network(name):
    net = network(name)
    quick, blended = QuickPass(net), copy.deepcopy(net)
    add_blends(blended, 1e9)
    with torch.no_grad():
        for turn in range(3):
            expected = find_logits(net(images(turn)))
            with quick:
                torch.testing.assert_close(find_logits(net(images(turn))), expected, rtol=1e-3, atol=1e-3)
            with blending(blended, "batch"):
                torch.testing.assert_close(find_logits(blended(images(turn))), expected, rtol=1e-3, atol=1e-3)


def test_moments_of_sequences_are_of_their_channels():
    values = torch.randn(3, 8, 20)
    found = per_image(values)
    torch.testing.assert_close(found, torch.stack([values.mean(2), values.square().mean(2)], 1))


class Counting(TorchDispatchMode):
    """Counts operations of BatchNorm, as a profiler would."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += "batch_norm" in str(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_of_somebody_else_sees_every_layer_in_every_pass():
    net = network("views")
    add_blends(net, 0.0)
    for turn in range(3):
        with torch.no_grad(), Counting() as counting, blending(net, "batch"):
            net(images(turn))
        assert counting.seen >= 3


def relu_unless_it_fails(net, values):
    out = net.norm(values)
    if net.fails:
        raise ValueError
    return F.relu(out)


def test_errors_in_a_pass_and_at_its_end_leave_nothing_behind(monkeypatch):
    net = Net(relu_unless_it_fails).eval()
    add_blends(net, 0.0)
    quick = QuickPass(net)

    def cannot_write(*_):
        raise MemoryError

    for context in (lambda: blending(net, "batch"), lambda: quick):
        net.fails = False
        with torch.no_grad(), context():
            net(images(0))
        for net.fails in (False, True):  # an output is written in the pass, or at its end
            with monkeypatch.context() as patched, torch.no_grad():
                patched.setattr(fused.Normalisation, "write", cannot_write)
                with pytest.raises(MemoryError), context():
                    net(images(1))
            assert EAGERLY._within == 0
            assert not _get_current_function_mode_stack()
            assert not _get_current_dispatch_mode_stack()
