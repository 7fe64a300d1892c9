"""SLR: minimise the soft likelihood ratio, and keep the mean prediction spread over the classes.

Source: Mummadi et al. 2021, as thesis chapter 4 runs it: Adam, on the diversity of the mean prediction plus δ times the
ratio. The paper leaves the affine parameters of the last stage alone, `parameters="early"`: the ratio has no minimum,
and a network that can scale its logits only does that.
Differs: the module that the paper puts before the network is left out, as it is there.
Cost: as Tent.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.checks import check_number
from haptera.losses.self_learning import diversity, soft_likelihood_ratio


class SLR(Learner):
    """Soft likelihood ratio.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        kappa: κ, the share of earlier batches in the running mean of predictions.
        delta: δ, the weight of the ratio beside the diversity.
        settings: of every learner; `optimiser` is `adam` and `parameters` `early` by default.
    """

    learning = Learning(optimiser="adam", parameters="early")

    def __init__(
        self, model: nn.Module, lr: float = 6e-4, kappa: float = 0.9, delta: float = 0.025, **settings: Any
    ) -> None:
        check_number("kappa", kappa, least=0, below=1, what="a share")
        check_number("delta", delta, least=0)
        super().__init__(model, lr=lr, **settings)
        self.kappa, self.delta = kappa, delta
        self.memory["mean"] = None

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """How far the running mean prediction is from uniform, and δ times the mean ratio."""
        mean = logits.softmax(1).mean(0)
        if self.memory["mean"] is not None:
            mean = self.kappa * self.memory["mean"].to(mean) + (1 - self.kappa) * mean
        self.memory["mean"] = mean.detach()
        return diversity(mean) + self.delta * soft_likelihood_ratio(logits).mean()
