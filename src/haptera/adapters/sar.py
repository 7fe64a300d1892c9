"""SAR: minimise the entropy of sure predictions where the loss is flat, and reset when it has become suspiciously low.

Source: Niu et al. 2023. A first gradient on samples of entropy below `margin` ln C moves the parameters by `radius`
along it; the gradient there, on those of them that are still sure, is applied at the place where they were. When the
running mean of that loss falls below `floor`, the adapter resets. The last stage of the network is left alone, as in
the paper: `parameters="early"`, by the names that `select.last_stage` knows; say otherwise with `parameters`.
Cost: two forward and two backward passes, the latter of the kept samples alone where layers treat samples apart. A
batch of which nothing is kept costs one forward pass.
"""

from math import isfinite, log
from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.norm import keep_statistics
from haptera.adapters.skip import keep
from haptera.checks import check_number
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
        settings: of every learner; `parameters` is `early` by default.
    """

    learning = Learning(parameters="early")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        margin: float = 0.4,
        radius: float = 0.05,
        floor: float | None = None,
        **settings: Any,
    ) -> None:
        check_number("margin", margin, above=0)
        check_number("radius", radius, least=0)
        check_number("floor", 0 if floor is None else floor, least=0)
        if settings.get("accumulate", 1) != 1:
            raise HapteraError("accumulate is not for SAR: its gradient is that of one batch at two places")
        super().__init__(model, lr=lr, **settings)
        self.margin, self.radius, self.floor = margin, radius, floor
        self.memory |= {"running": None, "resets": 0}

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """The mean entropy of the kept samples at the steepest place nearby, where `backward` finds the parameters."""
        self._lowest = published_floor(logits.shape[1]) if self.floor is None else self.floor
        limit = self.margin * log(logits.shape[1])
        kept = entropy(logits.detach()) < limit
        self.record["kept"] = float(kept.float().mean())
        if not bool(kept.any()):
            return None
        parameters = list(self.adapted.values())
        self._place = [parameter.detach().clone() for parameter in parameters]
        self._climb(torch.autograd.grad(entropy(keep(logits, kept)).mean(), parameters, materialize_grads=True))
        with keep_statistics(self.model):  # those of the batch where the parameters are, not of the place nearby
            again = self.logits(inputs)
        still = kept & (entropy(again.detach()) < limit)
        if not bool(still.any()):
            self._return()
            return None
        return entropy(keep(again, still)).mean()

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
            with keep_statistics(self.model):
                self.reset()
            self.memory["resets"], self.record = resets, record
        self.record["resets"] = float(self.memory["resets"])

    @torch.no_grad()
    def _climb(self, gradients: tuple[torch.Tensor, ...]) -> None:
        norm = float(nn.utils.get_total_norm(gradients))
        if isfinite(norm) and norm:
            torch._foreach_add_(list(self.adapted.values()), gradients, alpha=self.radius / norm)

    @torch.no_grad()
    def _return(self) -> None:
        torch._foreach_copy_(list(self.adapted.values()), self._place)


def published_floor(classes: int) -> float:
    """Return the running mean of the loss below which SAR resets, in nats.

    The public code has .2 for every data set, of which the smallest has ten classes. What is kept has an entropy below
    .4 ln C, .28 for two classes: with .2 it would reset at nearly every step.

    >>> [round(published_floor(classes), 2) for classes in (2, 10, 1000)]
    [0.06, 0.2, 0.2]
    """
    return 0.2 * min(log(classes) / log(10), 1.0)
