"""SLR: minimise the soft likelihood ratio, and keep the mean prediction spread over the classes.

Source: Mummadi et al. 2021, as thesis chapter 4 runs it: Adam, the last layer frozen.
Differs: the module that the paper puts before the network is left out, as it is there.
Cost: as Tent.
"""

from typing import Unpack

import torch
from torch import nn

from haptera.adapters.learner import Learner, Learning
from haptera.checks import check_number
from haptera.losses.self_learning import diversity, soft_likelihood_ratio


class SLR(Learner):
    """Soft likelihood ratio.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        kappa: κ, the share of earlier batches in the running mean of predictions.
        settings: of every learner.
    """

    def __init__(self, model: nn.Module, lr: float = 6e-4, kappa: float = 0.9, **settings: Unpack[Learning]) -> None:
        check_number("kappa", kappa, least=0, below=1, what="a share")
        settings.setdefault("optimiser", "adam")
        super().__init__(model, lr=lr, **settings)
        self.kappa = kappa
        self.memory["mean"] = None

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """The mean ratio, and how far the running mean prediction is from uniform."""
        mean = logits.softmax(1).mean(0)
        if self.memory["mean"] is not None:
            mean = self.kappa * self.memory["mean"].to(mean) + (1 - self.kappa) * mean
        self.memory["mean"] = mean.detach()
        return soft_likelihood_ratio(logits).mean() + diversity(mean)
