"""Looking at a model costs a pass of it, and the stream is read as ever."""

import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from haptera.batch import Batch
from haptera.observe import observe_moments


def test_the_stream_is_read_outside_of_the_pass_and_operations_are_looked_at_in_the_first_one_alone():
    looked = []

    class Layer(nn.Module):
        def forward(self, values):
            looked.append(len(_get_current_dispatch_mode_stack()))
            return values

    def stream():
        for _ in range(3):
            assert not _get_current_dispatch_mode_stack()
            assert not _get_current_function_mode_stack()
            yield Batch(torch.rand(4, 3, 8, 8), None, torch.arange(4), {})

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), Layer(), nn.Conv2d(4, 2, 3))
    observe_moments(net, stream())
    assert looked[-3:] == [1, 0, 0]
