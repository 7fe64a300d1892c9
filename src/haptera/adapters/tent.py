"""Tent: minimise the entropy of the predictions, through the affine parameters of the normalisation layers.

Source: thesis (3.5) without a stopped gradient; settings of chapter 4. With temperatures it is the whole family of
entropy minimisation of chapter 3; proposition 1 there: no collapse to one class if τ_s > τ_t / 2.
Cost: a forward pass and the backward pass that affine parameters need.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.checks import check_number
from haptera.losses.self_learning import entropy


class Tent(Learner):
    """Entropy minimisation.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        student_temperature: τ_s of (3.5).
        teacher_temperature: τ_t of (3.5).
        settings: of every learner.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        student_temperature: float = 1.0,
        teacher_temperature: float = 1.0,
        **settings: Any,
    ) -> None:
        check_temperatures(student_temperature, teacher_temperature)
        super().__init__(model, lr=lr, **settings)
        self.temperatures = student_temperature, teacher_temperature

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """The mean entropy."""
        return entropy(logits, *self.temperatures).mean()


def check_temperatures(student: float, teacher: float) -> None:
    """Refuse temperatures that are not positive."""
    for name, value in (("student_temperature", student), ("teacher_temperature", teacher)):
        check_number(name, value, above=0)
