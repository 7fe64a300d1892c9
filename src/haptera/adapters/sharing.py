"""Sharing: a copy of a model's modules that holds only the tensors that may change, and knows when the others do.

Parameters that an adapter does not change are the caller's memory, seen through objects of their own. Buffers are
copied, all of them: a network may change them in `forward`, as counters and running statistics are, and they are small.
Copied, too, is what was made in inference mode, since torch keeps no gradient through it.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from haptera.errors import HapteraError, NotApplicable
from haptera.files.fingerprint import fingerprint
from haptera.modules import copy_modules


def share(model: nn.Module, changed: Iterable[torch.Tensor] = ()) -> nn.Module:
    """A copy of the modules that shares the memory of all parameters but the changed ones.

    Parameters are objects of their own and need no gradient, so that flags set on them never reach the caller's.
    """
    changed = list(changed)
    own = {id(tensor) for tensor in changed}
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        data = parameter.detach()
        if id(parameter) in own or parameter.is_inference():
            data = data.clone()
        memo[id(parameter)] = nn.Parameter(data, requires_grad=False)
    memo |= {id(buffer): buffer.detach().clone() for buffer in model.buffers()}
    try:
        with torch.no_grad(), warnings.catch_warnings():  # TorchScript copies by itself, with a gradient if it can
            warnings.filterwarnings("ignore", "TypedStorage is deprecated", UserWarning)  # torch's own, of int8 layers
            shared = copy_modules(model, memo)
    except (RuntimeError, TypeError) as error:
        raise HapteraError(f"the modules of {type(model).__name__} cannot be copied: {error}") from error
    for parameter in shared.parameters():
        parameter.requires_grad_(False)
    return shared


def check_model(model: Any) -> None:
    """Refuse what is not a model, or not one yet."""
    if not isinstance(model, nn.Module):
        raise HapteraError(f"an adapter takes an nn.Module, found {type(model).__name__}")
    for name, parameter in model.named_parameters():
        if nn.parameter.is_lazy(parameter):
            raise NotApplicable(f"parameter {name!r} has no shape yet; call the model on a batch, then adapt it")
        if parameter.is_meta:
            raise NotApplicable(
                f"parameter {name!r} has no values, since it is on the device 'meta'; load weights first"
            )


def place(tensor: torch.Tensor) -> int:
    """Where a tensor's memory is."""
    return tensor.untyped_storage().data_ptr()


def model_fingerprint(model: nn.Module) -> str:
    """Fingerprint a model by names, shapes, types and values of parameters and buffers, wherever they are.

    Counters, buffers of one whole number, do not count: they go on when a model is merely used.
    """
    tensors = {
        name: _plain(tensor)
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.ndim or tensor.is_floating_point() or isinstance(tensor, nn.Parameter)
    }
    return fingerprint(tensors)


class Borrowed:
    """The caller's parameters that an adapter shares, with the number of times each had been changed in place."""

    def __init__(self, tensors: dict[str, tuple[torch.Tensor, int]]) -> None:
        self.tensors = tensors

    @classmethod
    def all_of(cls, model: nn.Module) -> "Borrowed":
        """Every parameter as it is now; those of inference mode are never shared, and torch counts nothing for them."""
        named = ((name, p.detach()) for name, p in model.named_parameters() if not p.is_inference())
        return cls({name: (tensor, tensor._version) for name, tensor in named})

    def places(self) -> set[int]:
        """Where their memory is."""
        return {place(tensor) for tensor, _ in self.tensors.values()}

    def narrow(self, places: set[int]) -> "Borrowed":
        """Those whose memory is in one of these places."""
        return Borrowed({name: entry for name, entry in self.tensors.items() if place(entry[0]) in places})

    def check(self, adapter: str) -> None:
        """Refuse to go on where one was changed, by training or by loading weights."""
        for name, (tensor, version) in self.tensors.items():
            if tensor._version != version:
                raise HapteraError(
                    f"the model was changed after {adapter} was built around it, first in {name!r}, which they share; "
                    "build a new adapter, or build it around a copy of the model"
                )


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose bytes can be read."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        return tensor.int_repr()
    return tensor if tensor.layout == torch.strided else tensor.to_dense()
