"""A published method as a plugin: HLR, hard likelihood ratios (Mummadi et al. 2021). This file and one entry point,

    [project.entry-points."haptera.adapters"]
    hlr = "my_own_method:HLR"

make `haptera run --adapter none --adapter hlr:lr=1e-3,steps=2` work, with every setting that a learner has.
Minimises KL(mean prediction, even) + δ (log Σ e^z over the other classes − z of the first), with a running mean.
Cost: as Tent, a forward pass and the backward pass that the normalisation layers need.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters import Learner, Learning
from haptera.checks import check_number
from haptera.testing import check_adapter


class HLR(Learner):
    """Hard likelihood ratio.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        kappa: the share of earlier batches in the running mean prediction.
        delta: the weight of the ratio beside the diversity.
        settings: of every learner.
    """

    learning = Learning(optimiser="adam", parameters="early")  # what differs from the defaults of learners

    def __init__(
        self, model: nn.Module, lr: float = 6e-4, kappa: float = 0.9, delta: float = 0.025, **settings: Any
    ) -> None:
        check_number("kappa", kappa, least=0, below=1, what="a share")
        super().__init__(model, lr=lr, **settings)
        self.kappa, self.delta = kappa, delta
        self.memory["mean"] = None  # state_dict carries it, reset restores it

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """A scalar, or None where a batch teaches nothing; the base makes the pass and the step."""
        mean, before = logits.softmax(1).mean(0), self.memory["mean"]
        mean = mean if before is None else self.kappa * before.to(mean) + (1 - self.kappa) * mean
        self.memory["mean"] = mean.detach()
        first, others = logits.topk(logits.shape[1], dim=1).values.split([1, logits.shape[1] - 1], dim=1)
        ratio = others.logsumexp(1) - first[:, 0]
        self.record["ratio"] = float(ratio.detach().mean())  # a measure and a figure of every study
        return (mean * (mean * len(mean)).log()).sum() + self.delta * ratio.mean()


if __name__ == "__main__":
    broken = {law: why for law, why in check_adapter(HLR).items() if why}
    print(f"laws broken: {broken or 'none'}")
