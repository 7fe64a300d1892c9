"""Features: what reaches the last layer of a model, read during a pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from holdfast.adapters.select import Select
from holdfast.errors import HoldfastError, NotApplicable


def last_layer(model: nn.Module) -> nn.Module:
    """The last linear or convolutional layer, the one that `parameters="last"` chooses."""
    try:
        name = next(iter(Select("last")(model)))
    except HoldfastError as error:
        raise NotApplicable("there is no linear or convolutional layer in the model to read features before") from error
    return model.get_submodule(name.rpartition(".")[0])


@contextmanager
def features(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Within it, every pass through the model adds the features `(batch, ...)` of its inputs to the list."""
    seen: list[torch.Tensor] = []
    hook = last_layer(model).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1)))
    try:
        yield seen
    finally:
        hook.remove()
    if not seen:
        raise HoldfastError("the model does not use its last linear or convolutional layer; there are no features")
