"""CMF: ROID whose weights follow a filter between the source and what was learnt, instead of the source alone.

Source: Lee and Chang 2024, "Continual momentum filtering on parameter space". A Kalman filter with a hidden state h,
which begins at the source θ₀, and its variance v, which begins at 0. After each update of the weights θ:
predict h ← α h + (1 − α) θ₀, v ← α² v + q; update with gain 1 − β, β = r / (v + r), r = 1 − q: h ← β h + (1 − β) θ,
v ← β v; and θ ← γ θ + (1 − γ) h.
The public code decides: q grows with the number of parameters that adapt, q = noise · n / 38,400, which is their number
in a ViT-B; β is at least .89, and 1 from .9999.
Differs: q is at most 1, beyond which r would be negative; a reset forgets the hidden state and its variance.
Cost: as ROID, one more copy of the parameters that adapt, and three passes over them.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.piece import Piece
from haptera.adapters.prior_correction import SCALES, BatchPrior
from haptera.adapters.weighted_slr import WeightedSLR
from haptera.checks import check_number

Make = Callable[..., Adapter]
REFERENCE_SIZE = 38_400
LEAST_BETA, WHOLE_BETA = 0.89, 0.9999


class MomentumFilter(Piece):
    """An adapter that learns, and whose weights are drawn to a filter's hidden state.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        alpha: the share of the hidden state that stays when it is drawn to the source.
        gamma: the share of the adapted weights that stays when they are drawn to the hidden state.
        noise: the variance that each step adds, for 38,400 parameters.
        settings: of the method.
    """

    def __init__(
        self,
        model: nn.Module,
        method: Make,
        alpha: float = 0.99,
        gamma: float = 0.99,
        noise: float = 0.005,
        **settings: Any,
    ) -> None:
        for name, share in (("alpha", alpha), ("gamma", gamma)):
            check_number(name, share, least=0, most=1, what="a share")
        check_number("noise", noise, least=0, what="a variance")
        super().__init__(method(model, **settings))
        self.alpha, self.gamma = alpha, gamma
        size = sum(value.numel() for value in self.learner.masters.values)
        self.q = min(noise * size / REFERENCE_SIZE, 1.0)
        self.memory |= {"hidden": None, "variance": 0.0}

    @torch.no_grad()
    def after_update(self) -> None:
        """Predict and update the hidden state, then draw the weights to it."""
        values = self.learner.masters.values
        source = [first.to(now) for first, now in zip(self.learner._source, values, strict=True)]
        if self.memory["hidden"] is None:
            self.memory["hidden"] = [first.clone() for first in source]
        hidden = [old.to(now) for old, now in zip(self.memory["hidden"], values, strict=True)]
        torch._foreach_lerp_(hidden, source, 1 - self.alpha)
        variance = self.alpha**2 * self.memory["variance"] + self.q
        beta = stay((1 - self.q) / (variance + 1 - self.q))
        torch._foreach_lerp_(hidden, values, 1 - beta)
        torch._foreach_lerp_(values, hidden, 1 - self.gamma)
        self.memory |= {"hidden": hidden, "variance": beta * variance}


def stay(beta: float) -> float:
    """The share of the hidden state that stays at an update, within the limits of the public code."""
    return 1.0 if beta >= WHOLE_BETA else max(beta, LEAST_BETA)


class CMF(BatchPrior):
    """Continual momentum filtering.

    Args:
        model: as `WeightedSLR` takes it.
        alpha: the share of the hidden state that stays when it is drawn to the source.
        gamma: the share of the adapted weights that stays when they are drawn to the hidden state.
        noise: the variance that each step adds, for 38,400 parameters.
        prior_correction: what the class prior multiplies: `probabilities`, `logits` as in the public code, or `none`.
        settings: of `WeightedSLR`.
    """

    def __init__(
        self,
        model: nn.Module,
        alpha: float = 0.99,
        gamma: float = 0.99,
        noise: float = 0.005,
        prior_correction: str = SCALES[0],
        **settings: Annotated[Any, WeightedSLR],
    ) -> None:
        method = partial(MomentumFilter, method=WeightedSLR, alpha=alpha, gamma=gamma, noise=noise)
        super().__init__(model, method, prior_correction, **settings)
