"""Passes: what goes into a model and what comes out of it, in the forms that other people's models have.

A model takes one tensor. What it returns is logits, or a tuple, dictionary or object in which they can be told from the
rest, as the outputs of `transformers` are; anything else is handed on as it is, and refused by methods that look at
predictions. A model gets a copy of its inputs, since some write into them; that costs little beside the pass.

Networks of 2-d convolutions are faster on a CPU when channels are last in memory. Only the inputs are
rearranged; convolutions hand the layout on, and the weights stay the caller's. Which layout a model gets is decided by
its layers and by one trial pass, not by a clock: rounding differs between layouts, and a run that is repeated must end
with the same numbers. `benchmarks/adapters.py` prints what the layout gains.
Channels are last only where every layer with weights is of a kind that `experiments/layouts.py` found safe, and no
function that the trial pass calls is one of those that crash torch 2.13 in the backward pass, on some CPUs or on all:

- a 1x1 convolution with a stride and fewer input channels than a vector of the CPU holds (2 to 7 with AVX2, 2 to 15
  with AVX-512, there on maps of 48 x 64 cells and more) writes past its memory: aborts, bus errors, segmentation faults
  some passes later;
- GroupNorm whose scale needs a gradient and whose input does not: a segmentation fault.

Not with a single convolution, such as the patches of a transformer: there is nothing to gain.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.sight import Sight
from haptera.errors import HapteraError, NotApplicable, first_line
from haptera.modules import describe_outputs, find_logits

HALF = (torch.float16, torch.bfloat16)
SAFE = (nn.Conv2d, nn.ConvTranspose2d, _BatchNorm, nn.Linear, nn.LayerNorm, nn.PReLU, nn.Embedding)
"""The kinds of layers with weights that were tried; a convolution of an unsafe shape is found by its call."""
FEWEST_CHANNELS = 16
"""Channels that a strided 1x1 convolution needs; with fewer it is unsafe."""
GROUP_NORMS = (torch.ops.aten.group_norm, torch.ops.aten.native_group_norm)
CONVOLUTIONS = (torch.ops.aten.conv2d, torch.ops.aten.convolution)


def run(model: nn.Module, inputs: torch.Tensor) -> Any:
    """A pass through a model, and its logits where it says which they are."""
    outputs = model(inputs.clone())
    logits = find_logits(outputs)
    return outputs if logits is None else logits


def check_inputs(inputs: Any, others: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Refuse anything but one tensor with a batch in its first dimension."""
    further = [*(type(value).__name__ for value in others), *keywords]
    if further or not isinstance(inputs, torch.Tensor):
        given = f"{', '.join(further)} beside it" if further else f"a {type(inputs).__name__}"
        raise HapteraError(
            f"an adapter takes one tensor (batch, ...), found {given}; for a model with several inputs, write a module "
            "that makes them from one tensor"
        )
    if not inputs.ndim:
        raise HapteraError("an adapter takes a tensor (batch, ...), found a single number")


def check_logits(outputs: Any, method: str) -> torch.Tensor:
    """Logits `(batch, classes)` in single precision or better; anything else has no classes to learn from."""
    if not isinstance(outputs, torch.Tensor):
        raise NotApplicable(
            f"{method} needs logits, and the model returned {describe_outputs(outputs)}; say which they are "
            "(--logits KEY), or wrap the model so that it returns its logits alone"
        )
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        what = "one output has no classes to be sure of" if outputs.ndim < 3 else "BatchNorm takes any outputs"
        raise NotApplicable(
            f"{method} is for logits (batch, classes) of at least two classes, and the model returned "
            f"({', '.join(['batch', *map(str, outputs.shape[1:])])}); {what}"
        )
    return outputs.float() if outputs.dtype in HALF else outputs


def check_outputs(outputs: Any, size: int) -> torch.Tensor:
    """Refuse anything but logits `(batch, classes)`."""
    if not isinstance(outputs, torch.Tensor):
        raise HapteraError(
            f"the model returned {describe_outputs(outputs)}; logits (batch, classes) were expected: say which they "
            "are (--logits KEY), or wrap the model so that it returns its logits alone"
        )
    if outputs.ndim != 2 or len(outputs) != size or outputs.shape[1] < 2:
        raise HapteraError(
            f"the model returned shape {tuple(outputs.shape)} for a batch of {size}; (batch, classes) was expected"
        )
    return outputs.detach()


def last_of(outputs: Any, n: int) -> torch.Tensor:
    """The predictions of the last n inputs of a window."""
    if not isinstance(outputs, torch.Tensor):
        raise NotApplicable(f"a window needs outputs as one tensor, and the model returned a {type(outputs).__name__}")
    return outputs[-n:]


@contextmanager
def explain_failure(model: nn.Module, inputs: torch.Tensor) -> Iterator[None]:
    """Say why passes within it fail, where the inputs are the cause; other errors are the model's and stay."""
    try:
        yield
    except (RuntimeError, TypeError, IndexError) as error:
        reason = _reason(error, model, inputs)
        if reason is None:
            raise
        raise HapteraError(reason) from error


def _reason(error: Exception, model: nn.Module, inputs: torch.Tensor) -> str | None:
    if not len(inputs):
        return f"the batch is empty, which the model does not take: {first_line(error)}"
    own = next((parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()), inputs.dtype)
    if inputs.dtype == own:
        return None
    more = ", and images of bytes are divided by 255" if inputs.dtype == torch.uint8 else ""
    return (
        f"the model did not take inputs of type {_name(inputs.dtype)} ({first_line(error)}); its weights are "
        f"{_name(own)}: convert the inputs{more}"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def watch_layers(
    layers: Mapping[str, nn.Module], take: Callable[[str, Any], None], inputs_of: tuple[type, ...] = ()
) -> Iterator[None]:
    """Hand what each layer gives, or what it takes where it is of one of some kinds, to `take` with its name."""
    with ExitStack() as hooks:
        for name, layer in layers.items():
            if isinstance(layer, inputs_of):
                hook = layer.register_forward_pre_hook(lambda _, values, name=name: take(name, values[0]))
            else:
                hook = layer.register_forward_hook(lambda _, __, values, name=name: take(name, first_of(values)))
            hooks.enter_context(hook)
        yield


def first_of(outputs: Any) -> Any:
    """Return the first of several outputs, or the only one."""
    return outputs[0] if isinstance(outputs, tuple | list) else outputs


def device_of(model: nn.Module) -> torch.device:
    """Return where a model is; the CPU for one without tensors."""
    return next((tensor.device for tensor in chain(model.parameters(), model.buffers())), torch.device("cpu"))


def takes_channels_last(
    model: nn.Module, predict: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> bool:
    """Say whether a model is a network of convolutions that works, and learns, on images with channels last.

    Its layers decide, and `predict`, a pass that changes nothing, on one of the inputs.
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
        with Sight(_refuse_unsafe):
            predict(arrange(inputs[:1], True))
    except RuntimeError:  # an unsafe call, or such as `view` on what is no longer in the usual order
        return False
    return True


def arrange(inputs: torch.Tensor, channels_last: bool) -> torch.Tensor:
    """Return the inputs with channels last, or as they are."""
    if not channels_last:
        return inputs
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    channels, height, width = inputs.shape[1:]
    if channels == 1:  # of one channel both orders are the same in memory, and torch goes by the strides
        return inputs.as_strided(inputs.shape, (height * width, 1, width, 1))
    return inputs


def _refuse_unsafe(func: Any, args: tuple[Any, ...]) -> None:
    """End a pass before an operation that is unsafe with channels last."""
    operation = getattr(func, "overloadpacket", func)
    if operation in GROUP_NORMS:
        raise RuntimeError("GroupNorm")
    transposed = operation is torch.ops.aten.convolution and args[6]
    if operation in CONVOLUTIONS and not transposed:
        weight, stride = args[1], args[3] if len(args) > 3 else 1
        strided = max((stride,) if isinstance(stride, int) else stride) > 1
        if strided and weight.ndim == 4 and weight.shape[1] < FEWEST_CHANNELS and max(weight.shape[2:]) == 1:
            raise RuntimeError("a narrow 1x1 convolution with a stride")
