"""Memory layout: chosen where every layer is known to be safe, and the same numbers as in contiguous memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from haptera.adapters.passes import arrange, takes_channels_last
from haptera.models import ResNet
from haptera.testing.batchnorm_networks import convolutional_networks

LAYOUTS = Path(__file__).parents[2] / "experiments" / "layouts.py"
OLDER = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "85"}
LEARN = """
import sys, torch
from haptera.adapters import Tent
from haptera.testing.batchnorm_networks import convolutional_networks
torch.set_num_threads(1)
torch.manual_seed(0)
for name, network in convolutional_networks().items():
    adapter = Tent(network, lr=1e-3, parameters="all")
    images = torch.rand(4, 3, 24, 20)
    for _ in range(60):
        assert torch.isfinite(adapter(images)).all()
print("all of them")
"""


class Scaled(nn.Module):
    """A layer with weights that nobody has tried."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, 1, 1))

    def forward(self, inputs):
        return inputs * self.scale


def chosen(network, channels=3):
    with torch.no_grad():
        return takes_channels_last(network, network, torch.rand(2, channels, 16, 16))


def test_grey_images_make_a_network_work_with_channels_last_too():
    network, grey = ResNet(width=16).eval(), torch.rand(2, 1, 9, 7)
    arranged = arrange(grey, True)
    assert arranged.data_ptr() == grey.data_ptr()
    assert torch.equal(arranged, grey)
    with torch.no_grad():
        assert network[1](arranged).stride(1) == 1
        torch.testing.assert_close(network(arranged), network(grey), rtol=1e-4, atol=1e-5)


def test_the_layout_is_for_networks_of_safe_layers_only():
    unsafe = {
        "1x1 with a stride, few channels",
        "groups, 1x1 with a stride",
        "GroupNorm",
        "GroupNorm as a function",
    }
    networks = convolutional_networks()
    assert {name for name, network in networks.items() if not chosen(network)} == unsafe
    assert chosen(ResNet(width=16).eval(), channels=1)
    for width in (4, 8):  # shortcuts are 1x1 with a stride; 8 channels crash with AVX-512, on large maps
        assert not chosen(ResNet(width=width).eval(), channels=1)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
def test_layers_of_unknown_kinds_and_scripts_stay_contiguous():
    known = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    assert chosen(known)
    assert not chosen(nn.Sequential(*known, Scaled()))
    assert not chosen(nn.Sequential(known, torch.jit.trace(nn.ReLU(), torch.rand(1, 4, 12, 12))))


def narrow(values, weight):
    return torch.conv2d(values, weight, stride=[2, 2])


class Shortcut(nn.Module):
    """A narrow 1x1 convolution with a stride, in a function of TorchScript or as it is written."""

    def __init__(self, function):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1))
        self.function = [function]

    def forward(self, inputs):
        return self.function[0](self.layers(inputs), self.layers[1].weight)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_an_unsafe_call_inside_a_scripted_function_is_seen():
    assert not chosen(Shortcut(narrow))
    assert not chosen(Shortcut(torch.jit.script(narrow)))
    assert chosen(Shortcut(torch.jit.script(swish)))


def swish(values, weight):
    return values * torch.sigmoid(values)


NARROW = """
import torch
from haptera.adapters import Tent
from haptera.models import ResNet
torch.set_num_threads(1)
torch.manual_seed(0)
adapter = Tent(ResNet(width=8, channels=3), lr=1e-3, parameters="all")
for _ in range(30):
    assert torch.isfinite(adapter(torch.rand(8, 3, 96, 128))).all()
"""


@pytest.mark.slow
def test_learning_with_few_channels_on_large_images_does_not_crash():
    done = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_learning_in_the_chosen_layout_does_not_crash_on_a_cpu_with_avx2_only():
    done = subprocess.run(
        [sys.executable, "-c", LEARN], env=os.environ | OLDER, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "all of them"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer",
    [
        "conv 8 to 8, 1x1, stride 2",
        "conv 4 to 8, 1x1, stride 1",
        "conv 3 to 8, 3x3, stride 2, padding 1",
        "conv 4 to 4, 3x3, stride 2, padding 1, groups 4",
        "transposed 8 to 4, 4x4, stride 2, padding 1",
        "pools 3",
    ],
)
def test_layers_that_are_called_safe_are_safe_on_a_cpu_with_avx2_only(layer):
    child = [sys.executable, str(LAYOUTS), "--child", layer, "50"]
    done = subprocess.run(child, env=os.environ | OLDER, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
