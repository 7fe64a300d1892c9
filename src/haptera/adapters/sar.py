"""SAR: minimise the entropy of sure predictions where the loss is flat, and reset when it has become suspiciously low.

Source: Niu et al. 2023. A first gradient on samples of entropy below `margin` ln C moves the parameters by `radius`
along it; the gradient there, on those of them that are still sure, is applied at the place where they were. When the
running mean of that loss falls below `floor`, the adapter resets. Differs: the paper also leaves the last stage of a
network alone; say so with `parameters`, such as `!layer4.*`.
Cost: two forward and two backward passes. A batch of which nothing is kept costs one forward pass.
"""

from math import log
from typing import Unpack

import torch
from torch import nn

from haptera.adapters.learner import Learner, Learning
from haptera.adapters.norm import statistics_kept
from haptera.errors import HapteraError
from haptera.losses.self_learning import entropy


class SAR(Learner):
    """Sharpness-aware, reliable entropy minimisation.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        margin: the largest entropy that is kept, in units of ln C.
        radius: how far the parameters are moved to look for a steeper place.
        floor: reset when the running mean of the loss is below this; by default that of the public code, .2, and for
            fewer than ten classes, whose entropies are smaller, in proportion to ln C.
        settings: of every learner.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        margin: float = 0.4,
        radius: float = 0.05,
        floor: float | None = None,
        **settings: Unpack[Learning],
    ) -> None:
        if not margin > 0 or not radius >= 0 or (floor is not None and not floor >= 0):
            raise HapteraError(f"margin is {margin}, radius {radius}, floor {floor}; none may be negative")
        if settings.get("accumulate", 1) != 1:
            raise HapteraError("accumulate is not for SAR: its gradient is that of one batch at two places")
        super().__init__(model, lr=lr, **settings)
        self.margin, self.radius, self.floor = margin, radius, floor
        self.memory |= {"running": None, "resets": 0}

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """The mean entropy of the kept samples at the steepest place nearby, where `backward` finds the parameters."""
        self._lowest = published_floor(logits.shape[1]) if self.floor is None else self.floor
        limit = self.margin * log(logits.shape[1])
        first = entropy(logits)
        kept = first < limit
        self.record["kept"] = float(kept.float().mean())
        if not bool(kept.any()):
            return None
        parameters = list(self.adapted.values())
        self._place = [parameter.detach().clone() for parameter in parameters]
        self._climb(torch.autograd.grad(first[kept].mean(), parameters, allow_unused=True))
        with statistics_kept(self.model):  # those of the batch where the parameters are, not of the place nearby
            again = entropy(self.logits(inputs))[kept]
        still = again < limit
        if not bool(still.any()):
            self._return()
            return None
        return again[still].mean()

    def backward(self, loss: torch.Tensor) -> None:
        """The gradient at the steepest place; then back to where the parameters were."""
        super().backward(loss)
        self._return()

    def learn(self, loss: torch.Tensor) -> None:
        """A step, then a look at the running mean of the loss."""
        super().learn(loss)
        value, running = float(loss.detach()), self.memory["running"]
        self.memory["running"] = value if running is None else 0.9 * running + 0.1 * value
        if self.memory["running"] < self._lowest:
            resets, record = self.memory["resets"] + 1, dict(self.record)
            with statistics_kept(self.model):
                self.reset()
            self.memory["resets"], self.record = resets, record
        self.record["resets"] = float(self.memory["resets"])

    @torch.no_grad()
    def _climb(self, gradients: tuple[torch.Tensor | None, ...]) -> None:
        norm = nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None])
        if not bool(torch.isfinite(norm)) or float(norm) == 0:
            return
        for parameter, gradient in zip(self.adapted.values(), gradients, strict=True):
            if gradient is not None:
                parameter.add_(gradient, alpha=self.radius / float(norm))

    @torch.no_grad()
    def _return(self) -> None:
        for parameter, value in zip(self.adapted.values(), self._place, strict=True):
            parameter.copy_(value)


def published_floor(classes: int) -> float:
    """Return the running mean of the loss below which SAR resets, in nats.

    The public code has .2 for every data set, of which the smallest has ten classes. What is kept has an entropy below
    .4 ln C, .28 for two classes: with .2 it would reset at nearly every step.

    >>> [round(published_floor(classes), 2) for classes in (2, 10, 1000)]
    [0.06, 0.2, 0.2]
    """
    return 0.2 * min(log(classes) / log(10), 1.0)
