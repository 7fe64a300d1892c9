"""Quick passes: a model as it is, without gradients, in which large images go through compiled loops of BatchNorm.

For what only looks at a model, where the cost of looking should not come on top of a plain pass. Layers normalise by
their own statistics, and a ReLU after them goes with it (`deferred.py`). Results differ from torch's by rounding.
Compiled parts of a model run as they were written.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

import torch
from torch import nn

from haptera.adapters import norm
from haptera.adapters.deferred import first_guess
from haptera.adapters.following import Following
from haptera.adapters.normalising import normalise


class _Layer:
    """What is known of a layer, by its running mean."""

    def __init__(self, mean: torch.Tensor, followed: str | None) -> None:
        self.mean = mean  # while it is held, no other tensor has its identity
        self.followed = followed


class QuickPass(Following):
    """Answers `batch_norm` in evaluation mode; to be used again for every batch, since the first says what follows."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._followed = first_guess(model)
        self._layers: dict[int, _Layer] = {}

    def layers(self) -> Collection[_Layer]:
        """Return the layers that were called so far."""
        return self._layers.values()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any other function does what it does."""
        kwargs = kwargs or {}
        if func not in norm.CALLS or torch.is_grad_enabled():
            return self._room.call(func, args, kwargs)
        self._room.settle()
        given = dict(zip(norm.CALLS[func], args, strict=False)) | kwargs
        mean, var = given.get("running_mean"), given.get("running_var")
        if mean is None or var is None or given.get("training"):
            return func(*args, **kwargs)
        layer = self._layers.setdefault(id(mean), _Layer(mean, self._followed))
        affine, eps = (given.get("weight"), given.get("bias")), given.get("eps", 1e-5)
        return self._room.normalise(layer, partial(normalise, given["input"], *affine, mean, mean, var, 0.0, eps))
