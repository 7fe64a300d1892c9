"""Ensemble: weights that adapt are averaged with the source's after every update, so that they never go far.

Source: Marsden et al. 2024 (ROID), section "weight ensembling": θ ← m θ + (1 − m) θ₀ with m = .99. It goes around any
adapter that learns; an averaged teacher follows the averaged student.

    adapted = Ensemble(Tent)(model)

Cost: one pass over the parameters that adapt.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.piece import Piece
from haptera.checks import check_number

Make = Callable[..., Adapter]


class WeightEnsemble(Piece):
    """An adapter that learns, and whose weights are drawn back to the source's.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        ensemble: the share of the adapted weights in the average; 1 leaves them as they are.
        settings: of the method.
    """

    def __init__(self, model: nn.Module, method: Make, ensemble: float = 0.99, **settings: Any) -> None:
        check_number("ensemble", ensemble, least=0, most=1, what="a share")
        super().__init__(method(model, **settings))
        self.ensemble = ensemble

    @torch.no_grad()
    def after_update(self) -> None:
        """Average the weights with the source's."""
        values = self.learner.masters.values
        source = [first.to(now) for first, now in zip(self.learner._source, values, strict=True)]
        torch._foreach_lerp_(values, source, 1 - self.ensemble)


def Ensemble(method: Make, momentum: float = 0.99) -> Make:  # noqa: N802 - reads as the noun it makes
    """A method whose weights are averaged with the source's; what comes back takes a model, as the method does."""
    return partial(WeightEnsemble, method=method, ensemble=momentum)
