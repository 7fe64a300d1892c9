"""The head: the last layer of a model as a classifier of features, for methods that ask it about other features."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.passes import run
from haptera.adapters.prototypes import head_rows
from haptera.adapters.select import last_layer
from haptera.modules import hides_layers


def classify(model: nn.Module, seen: torch.Tensor) -> torch.Tensor:
    """What the last layer makes of features `(batch, d)`, in single precision."""
    bias = last_layer(model).bias
    return F.linear(seen.float(), head_rows(model), bias.float() if isinstance(bias, torch.Tensor) else None)


def ends_with_its_head(model: nn.Module, seen: torch.Tensor, logits: torch.Tensor) -> bool:
    """Say whether the logits of a model are what its last layer makes of the features that reached it."""
    if (logits.shape[1], seen.shape[1]) != tuple(head_rows(model).shape):
        return False
    expected = classify(model, seen).to(logits)
    return torch.allclose(expected, logits, rtol=1e-2, atol=1e-2 * float(logits.abs().max()), equal_nan=True)


@torch.no_grad()
def find_head(model: nn.Module, inputs: torch.Tensor) -> str | None:
    """The name of the layer that makes the logits of one vector for each image, of whatever kind; None without one.

    A pass on some inputs finds it: quantised layers, too, which hold no weights that could be read.
    """
    if hides_layers(model):
        return None
    calls: list[tuple[str, torch.Tensor]] = []

    def note(name: str, given: tuple[Any, ...], outputs: Any) -> None:
        first = given[0] if len(given) == 1 else None
        vectors = isinstance(first, torch.Tensor) and first.ndim == 2 and first.is_floating_point()
        if vectors and isinstance(outputs, torch.Tensor):
            calls.append((name, outputs))

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if name:
                hook = module.register_forward_hook(lambda _, given, out, name=name: note(name, given, out))
                hooks.enter_context(hook)
        logits = run(model, inputs)
    if not isinstance(logits, torch.Tensor):
        return None
    same = (name for name, out in calls if out.shape == logits.shape and torch.equal(out.to(logits), logits))
    return next(same, None)  # an inner module ends before those around it
