"""The laws of adapters."""

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from holdfast.adapters import Adapter
from holdfast.errors import HoldfastError, NotApplicable
from holdfast.testing.law import demand, run_laws

Make = Callable[..., Adapter]


def callers_model_is_unchanged(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """Weights, buffers, flags and hooks of the caller's model stay, and no gradient appears on it."""
    for training in (True, False):
        model.train(training)
        before = _picture(model)
        adapter = make(model)
        for inputs in batches:
            adapter(inputs)
        adapter.reset()
        demand(_picture(model) == before, f"the caller's model was changed (training={training})")


def reset_is_exact(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """After `reset`, state and predictions are those of a new adapter, bit for bit."""
    adapter = make(model)
    first = _state(adapter)
    outputs = _run(adapter, batches)
    adapter.reset()
    demand(_state(adapter) == first, "reset does not restore the state")
    demand(_equal(_run(adapter, batches), outputs), "after reset the same batches get other predictions")


def state_survives_a_round_trip(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`state_dict`, loaded into a new adapter in the middle of a stream, goes on to the same numbers."""
    adapter = make(model)
    middle = len(batches) // 2
    _run(adapter, batches[:middle])
    saved = copy.deepcopy(adapter.state_dict())
    rest = _run(adapter, batches[middle:])
    other = make(model)
    other.load_state_dict(saved)
    demand(_equal(_run(other, batches[middle:]), rest), "a loaded state goes on to other predictions")


def learning_rate_zero_is_the_parent(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With a learning rate of 0 it predicts what its parent, which does not learn, predicts.

    But for rounding: where a gradient is needed, torch takes other kernels.
    """
    kind: Any = make.func if isinstance(make, partial) else make
    if "lr" not in inspect.signature(kind).parameters:
        raise NotApplicable("there is no learning rate")
    adapter = make(model, lr=0.0)
    still = _run(adapter, batches)
    parent = _run(adapter.parent(model), batches)
    away = max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(still, parent, strict=True))
    demand(away < 1e-5, f"lr=0 differs from the parent by {away:.1e}")


def frozen_does_not_learn(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With `frozen=True` the state stays and a batch gets the same predictions again."""
    adapter = make(model, frozen=True)
    before = _state(adapter)
    once, again = _run(adapter, batches[:1]), _run(adapter, batches[:1])
    demand(_state(adapter) == before, "frozen, and the state changed")
    demand(_equal(once, again), "frozen, and predictions changed")


def evaluation_mode_does_not_matter(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`.eval()` and `.train()` on the adapter change nothing about what it does."""
    plain, evaluated = _run(make(model), batches), _run(make(model).eval(), batches)
    demand(_equal(plain, evaluated), ".eval() changes the predictions")


def a_batch_of_one_works_or_says_why(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """One sample is predicted, or an error of holdfast's says why it cannot be."""
    try:
        outputs = make(model)(batches[0][:1])
    except HoldfastError:
        return
    demand(len(outputs) == 1 and bool(torch.isfinite(outputs).all()), "a batch of one gives no finite prediction")


ADAPTER_LAWS = (
    callers_model_is_unchanged,
    reset_is_exact,
    state_survives_a_round_trip,
    learning_rate_zero_is_the_parent,
    frozen_does_not_learn,
    evaluation_mode_does_not_matter,
    a_batch_of_one_works_or_says_why,
)


def example_models() -> dict[str, nn.Module]:
    """Small networks with each kind of normalisation and with none, their statistics away from the defaults."""
    from holdfast.models import LeNet, ResNet, ViT

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        models: dict[str, nn.Module] = {
            "batch": ResNet(width=4, stem=2),
            "group": ResNet(width=4, stem=2, norm="group"),
            "layer": ViT(size=16, width=16, depth=1),
            "none": LeNet(size=16, width=2),
        }
        for model in models.values():
            model.train()
            model(torch.rand(16, 1, 16, 16))
            model.eval()
    return models


def example_batches() -> list[torch.Tensor]:
    """Four batches of small grey images."""
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(6, 1, 16, 16, generator=generator) * 0.7 for _ in range(4)]


def check_adapter(make: Make) -> dict[str, str]:
    """Every law on a class of adapters, on every kind of model to which it applies."""
    cases = []
    for model in example_models().values():
        try:
            make(model)
        except NotApplicable:
            continue
        cases.append((make, model, example_batches()))
    if not cases:
        return {"applies_to_some_model": "it refuses models with BatchNorm, GroupNorm, LayerNorm and without"}
    return run_laws(ADAPTER_LAWS, cases)


def _run(adapter: Adapter, batches: list[torch.Tensor]) -> list[torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [adapter(inputs).detach().clone() for inputs in batches]


def _equal(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, two))


def _state(adapter: Adapter) -> dict[str, object]:
    return {key: _bytes(value) for key, value in adapter.state_dict().items()}


def _bytes(value: Any) -> object:
    """Something to compare exactly, tensors within containers included."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().tobytes()
    if isinstance(value, dict):
        return {key: _bytes(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bytes(inner) for inner in value]
    return repr(value)


def _picture(model: nn.Module) -> list[object]:
    tensors = [(key, value.detach().numpy().tobytes()) for key, value in model.state_dict().items()]
    flags = [(p.requires_grad, p.grad is None) for p in model.parameters()]
    modules = [(name, type(m), m.training, len(m._forward_hooks)) for name, m in model.named_modules()]
    return [tensors, flags, modules]
