"""Runs of adapters, and what to compare them by; for the laws."""

import copy
import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from haptera.adapters import Adapter
from haptera.adapters.passes import run


def settings_of(make: Callable[..., Adapter]) -> Collection[str]:
    """The names of the settings that a class, or a partial of one, takes."""
    kind: Any = make.func if isinstance(make, partial) else make
    return inspect.signature(kind).parameters


def answers(adapter: Callable[[torch.Tensor], Any], batches: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return what it says about each batch; one tensor after the other where that is several."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        outputs = [adapter(inputs) for inputs in batches]
    return [out.detach().clone() for said in outputs for out in (said if isinstance(said, tuple) else [said])]


def own_answer(model: nn.Module, inputs: torch.Tensor) -> Any:
    """Return what the model itself says."""
    with torch.no_grad():
        return run(model, inputs.detach())


def distance(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """The largest difference, relative to the largest values of the second."""
    return max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(one, two, strict=True))


def equal(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    """Return whether they are equal bit for bit."""
    return all(map(torch.equal, one, two))


def in_some_order(adapter: Adapter, calls: list[list[torch.Tensor]], said: list[list[Any]], done: list[int]) -> bool:
    """Whether the calls that are not done yet, each thread's in its order, can be put into one order that says this."""
    if all(count == len(own) for count, own in zip(done, calls, strict=True)):
        return True
    state = adapter.state_dict()
    for thread, count in enumerate(done):
        if count == len(calls[thread]):
            continue
        outputs, record = said[thread][count]
        adapter.load_state_dict(state)
        if torch.equal(adapter(calls[thread][count]), outputs) and repr(adapter.record) == repr(record):
            after = [c + (other == thread) for other, c in enumerate(done)]
            if in_some_order(adapter, calls, said, after):
                return True
    return False


def retrained(model: nn.Module) -> nn.Module:
    """A copy that was trained a little."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.001)
    return other


def train(model: nn.Module, inputs: torch.Tensor) -> None:
    """A step of SGD in training mode."""
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model(inputs).square().mean().backward()
    optimiser.step()
    optimiser.zero_grad()
    model.eval()


def state_of(adapter: Adapter) -> dict[str, object]:
    """All of an adapter's state, to compare."""
    return {key: exact(value) for key, value in adapter.state_dict().items()}


def exact(value: Any) -> object:
    """Something to compare exactly, tensors within containers included."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().int_repr() if value.is_quantized else value.detach()
        return plain.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [exact(inner) for inner in value]
    return repr(value)


def picture(model: nn.Module) -> list[object]:
    """All of a model that an adapter must leave alone."""
    values = [(key, exact(value)) for key, value in model.state_dict().items() if not is_lazy(value)]
    flags = [(p.requires_grad, p.grad is None) for p in model.parameters()]
    modules = [(name, type(m), m.training, len(m._forward_hooks)) for name, m in model.named_modules()]
    return [values, flags, modules]
