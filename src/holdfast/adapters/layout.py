"""Memory layout: networks of 2-d convolutions are faster on a CPU when channels are last in memory.

Only the inputs are rearranged; convolutions hand the layout on, and the weights stay the caller's. Which layout a model
gets is decided by its layers and by one trial pass, not by a clock: rounding differs between layouts, and a run that is
repeated must end with the same numbers. `benchmarks/adapters.py` prints what the layout gains.

Not with GroupNorm: its backward pass in torch 2.13 on a CPU crashes for a channels-last input that needs no gradient.
Not with a single convolution, such as the patches of a transformer: there is nothing to gain.
"""

from collections.abc import Callable

import torch
from torch import nn


def takes_channels_last(
    model: nn.Module, predict: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> bool:
    """Whether a model is a network of convolutions that works on images with channels last.

    Args:
        model: whose layers decide.
        predict: a pass that changes nothing.
        inputs: a batch.
    """
    if inputs.ndim != 4 or not inputs.is_floating_point() or not len(inputs):
        return False
    layers = list(model.modules())
    if any(isinstance(layer, nn.GroupNorm) for layer in layers):
        return False
    if sum(isinstance(layer, nn.Conv2d) for layer in layers) < 2:
        return False
    try:
        predict(arranged(inputs[:1], True))
    except RuntimeError:  # such as `view` on what is no longer in the usual order
        return False
    return True


def arranged(inputs: torch.Tensor, channels_last: bool) -> torch.Tensor:
    """The inputs with channels last, or as they are."""
    return inputs.contiguous(memory_format=torch.channels_last) if channels_last else inputs
