"""Passes: what goes into a model and what comes out of it, in the forms that other people's models have.

A model takes one tensor. What it returns is logits, or an object or dictionary with `logits`, as the outputs of
`transformers` are; anything else is handed on as it is, and refused by methods that look at predictions. A model gets a
copy of its inputs, since some write into them; that costs little beside the pass.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from haptera.errors import HapteraError, NotApplicable

HALF = (torch.float16, torch.bfloat16)


def run(model: nn.Module, inputs: torch.Tensor) -> Any:
    """A pass through a model, and its logits where it says which they are."""
    outputs = model(inputs.clone())
    if isinstance(outputs, torch.Tensor):
        return outputs
    logits = outputs.get("logits") if isinstance(outputs, Mapping) else getattr(outputs, "logits", None)
    return logits if isinstance(logits, torch.Tensor) else outputs


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
            f"{method} needs logits, and the model returned a {type(outputs).__name__} without any; wrap the model so "
            "that it returns its logits alone"
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
            f"the model returned a {type(outputs).__name__}; a tensor (batch, classes) was expected: "
            "wrap the model so that it returns its logits alone"
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
def explaining(model: nn.Module, inputs: torch.Tensor) -> Iterator[None]:
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
        return f"the batch is empty, which the model does not take: {_line(error)}"
    own = next((parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()), inputs.dtype)
    if inputs.dtype == own:
        return None
    more = ", and images of bytes are divided by 255" if inputs.dtype == torch.uint8 else ""
    return (
        f"the model did not take inputs of type {_name(inputs.dtype)}: {_line(error)}; its weights are {_name(own)}: "
        f"convert the inputs{more}"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
