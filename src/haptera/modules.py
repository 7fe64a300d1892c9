"""Modules as people have them: what is wrapped around a network, where its logits are, how any network is copied."""

import copy
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import nn

from haptera.errors import HapteraError, hint

log = logging.getLogger("haptera")
DEEPEST = 3
"""How far inside one another the tuples, dictionaries and objects may be that logits are looked for in."""


def unwrap(model: Any) -> Any:
    """Return the network inside `DataParallel`, `DistributedDataParallel` and what `torch.compile` returns.

    These run copies of a module, or code made from it before an adapter changed it; each process adapts on its own.
    What is not a model is handed back.
    """
    while isinstance(model, nn.Module):
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(inside := getattr(model, "_orig_mod", None), nn.Module):
            model = inside
        else:
            break
    return model


def find_logits(outputs: Any) -> torch.Tensor | None:
    """Return the logits among the outputs of a model, or None where they cannot be told.

    They are a tensor by itself, the first that is called `logits`, or the only tensor `(batch, classes)`.

    >>> find_logits({"attention": torch.zeros(2, 3, 3), "scores": torch.ones(2, 4)}).shape
    torch.Size([2, 4])
    >>> find_logits((torch.zeros(2, 4), torch.zeros(2, 64))) is None
    True
    """
    if isinstance(outputs, torch.Tensor):
        return outputs
    tensors = dict(_tensors(outputs))
    if by_name := [path for path in tensors if path.rpartition(".")[2] == "logits"]:
        return tensors[min(by_name, key=lambda path: path.count("."))]
    matrices = [tensor for tensor in tensors.values() if tensor.ndim == 2 and tensor.shape[1] > 1]
    return matrices[0] if len(matrices) == 1 else None


def take_logits(outputs: Any, key: str) -> torch.Tensor:
    """Return the tensor that a key names: a name, a number, or several of them with dots, as `heads.0`."""
    tensors = dict(_tensors(outputs))
    if key not in tensors:
        raise HapteraError(
            f"logits is {key!r}, and the model returned {describe_outputs(outputs)};{hint(key, tensors)}"
        )
    return tensors[key]


def describe_outputs(outputs: Any) -> str:
    """Return in a few words what a model returned.

    >>> describe_outputs((torch.zeros(2, 4), {"features": torch.zeros(2, 64)}))
    'a tuple with 0 (2, 4), 1.features (2, 64)'
    """
    if isinstance(outputs, torch.Tensor):
        return f"a tensor {tuple(outputs.shape)}"
    tensors = [f"{path} {tuple(tensor.shape)}" for path, tensor in _tensors(outputs)]
    return f"a {type(outputs).__name__} with {', '.join(tensors) or 'no tensor'}"


def _tensors(outputs: Any, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor with its path."""
    for name, value in _items(outputs):
        if isinstance(value, torch.Tensor):
            yield name, value
        elif depth < DEEPEST:
            for path, tensor in _tensors(value, depth + 1):
                yield f"{name}.{path}", tensor


def _items(outputs: Any) -> list[tuple[str, Any]]:
    if isinstance(outputs, Mapping):
        return [(str(key), value) for key, value in outputs.items()]
    if names := getattr(outputs, "_fields", None):  # a named tuple
        return [(name, getattr(outputs, name)) for name in names]
    if isinstance(outputs, list | tuple):
        return [(str(place), value) for place, value in enumerate(outputs)]
    if is_dataclass(outputs) and not isinstance(outputs, type):
        return [(each.name, getattr(outputs, each.name, None)) for each in fields(outputs)]
    return [("logits", outputs.logits)] if hasattr(outputs, "logits") else []


def why_opaque(model: nn.Module) -> str:
    """Return why neither gradients nor layers of a model can be had, as the module itself says it; or nothing."""
    reasons = (getattr(each, "opaque", None) for each in model.modules())
    return next((why for why in reasons if isinstance(why, str)), "")


def hides_layers(model: nn.Module) -> bool:
    """Say whether the layers of a model cannot be seen, as of an opaque model or of TorchScript."""
    return bool(why_opaque(model)) or any(isinstance(each, torch.jit.ScriptModule) for each in model.modules())


def copy_modules(model: nn.Module, memo: dict[int, Any] | None = None) -> nn.Module:
    """Return a deep copy of a model, also of one that holds what Python cannot copy.

    Where a plain deep copy fails, modules are copied one by one. What cannot be copied among their attributes, such as
    a lock, a session or a generator, is shared with the original; tensors that were computed are copied without what
    they were computed from.

    Args:
        model: any model.
        memo: id of an object -> its copy, for what is not to be copied anew; it is added to.
    """
    known = {} if memo is None else memo
    try:
        return deep_copy(model, known)
    except Exception:  # attributes of any kind, with any error
        log.debug("%s cannot be copied as a whole", type(model).__name__, exc_info=True)
    modules = list(model.modules())
    for module in modules:
        scripted = isinstance(module, torch.jit.ScriptModule)
        known[id(module)] = copy.deepcopy(module, known) if scripted else type(module).__new__(type(module))
    for module in modules:
        if not isinstance(module, torch.jit.ScriptModule):
            vars(known[id(module)]).update({name: _copy(value, known) for name, value in vars(module).items()})
    return known[id(model)]


def _copy(value: Any, known: dict[int, Any]) -> Any:
    """Return a copy of an attribute, or the attribute itself."""
    try:
        return deep_copy(value, known)
    except Exception:  # as above
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if type(value) in (dict, OrderedDict):
            return type(value)((key, _copy(inner, known)) for key, inner in value.items())
        if type(value) in (list, tuple):
            return type(value)(_copy(inner, known) for inner in value)
        return value


def deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    """Return `copy.deepcopy(value, memo)`; where that fails, the memo is as it was."""
    attempt = dict(memo)
    made = copy.deepcopy(value, attempt)
    alive = attempt.pop(id(attempt), [])  # originals, which must not go while their ids are in a memo
    memo.update(attempt)
    memo.setdefault(id(memo), []).extend(alive)
    return made
