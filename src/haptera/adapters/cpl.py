"""CPL: conjugate pseudo-labels, the labels that the training loss itself implies.

Source: Goyal et al. 2022 for a model trained with polyloss, ε = 8; settings of thesis chapter 4.
Differs: the labels come from the closed form, O(classes) per sample; the public code solves a linear system.
Cost: as Tent.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.checks import check_number
from haptera.losses.self_learning import conjugate_poly_loss


class CPL(Learner):
    """Conjugate pseudo-labels of polyloss.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        epsilon: of polyloss; 0 is cross-entropy, whose conjugate labels minimise the entropy.
        settings: of every learner.
    """

    def __init__(self, model: nn.Module, lr: float = 1e-3, epsilon: float = 8.0, **settings: Any) -> None:
        check_number("epsilon", epsilon, least=0)
        super().__init__(model, lr=lr, **settings)
        self.epsilon = epsilon

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """The mean over the batch."""
        return conjugate_poly_loss(logits, self.epsilon).mean()
