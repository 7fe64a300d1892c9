"""Memory layout: networks of 2-d convolutions are faster on a CPU when channels are last in memory.

Only the inputs are rearranged; convolutions hand the layout on, and the weights stay the caller's. Which layout a model
gets is decided by its layers and by one trial pass, not by a clock: rounding differs between layouts, and a run that is
repeated must end with the same numbers. `benchmarks/adapters.py` prints what the layout gains.

Channels are last only where every layer with weights is of a kind that `experiments/layouts.py` found safe, and no
function that the trial pass calls is one of those that crash torch 2.13 in the backward pass, on some CPUs or on all:

- a 1x1 convolution with a stride and fewer input channels than a vector of the CPU holds (2 to 7 with AVX2, 2 to 15
  with AVX-512, there on maps of 48 x 64 cells and more) writes past its memory: aborts, bus errors, segmentation faults
  some passes later;
- GroupNorm whose scale needs a gradient and whose input does not: a segmentation fault.

Not with a single convolution, such as the patches of a transformer: there is nothing to gain.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

SAFE = (nn.Conv2d, nn.ConvTranspose2d, _BatchNorm, nn.Linear, nn.LayerNorm, nn.PReLU, nn.Embedding)
"""The kinds of layers with weights that were tried; a convolution of an unsafe shape is found by its call."""
FEWEST_CHANNELS = 16
"""Channels that a strided 1x1 convolution needs; with fewer it is unsafe."""
GROUP_NORMS = (F.group_norm, torch.group_norm, torch.native_group_norm)


def takes_channels_last(
    model: nn.Module, predict: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> bool:
    """Say whether a model is a network of convolutions that works, and learns, on images with channels last.

    Args:
        model: whose layers decide.
        predict: a pass that changes nothing.
        inputs: a batch.
    """
    if inputs.ndim != 4 or not inputs.is_floating_point() or not len(inputs):
        return False
    layers = list(model.modules())
    if sum(isinstance(layer, nn.Conv2d) for layer in layers) < 2:
        return False
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in layers):
        return False  # what they call cannot be seen
    if not all(isinstance(layer, SAFE) for layer in layers if layer._parameters):
        return False
    try:
        with _SafeCalls():
            predict(arranged(inputs[:1], True))
    except RuntimeError:  # an unsafe call, or such as `view` on what is no longer in the usual order
        return False
    return True


def arranged(inputs: torch.Tensor, channels_last: bool) -> torch.Tensor:
    """The inputs with channels last, or as they are."""
    return inputs.contiguous(memory_format=torch.channels_last) if channels_last else inputs


class _SafeCalls(TorchFunctionMode):
    """End a pass before it makes a call that is unsafe with channels last."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at the arguments of a function, and call it."""
        kwargs = kwargs or {}
        if func in GROUP_NORMS:
            raise RuntimeError("GroupNorm")
        if func is torch.conv2d:
            weight = args[1] if len(args) > 1 else kwargs["weight"]
            stride = args[3] if len(args) > 3 else kwargs.get("stride", 1)
            strided = max((stride,) if isinstance(stride, int) else stride) > 1
            if strided and weight.shape[1] < FEWEST_CHANNELS and max(weight.shape[2:]) == 1:
                raise RuntimeError("a narrow 1x1 convolution with a stride")
        return func(*args, **kwargs)
