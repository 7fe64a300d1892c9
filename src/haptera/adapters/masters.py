"""Masters: what an optimiser steps on, the parameters themselves or single-precision copies of half-precision ones.

In half precision a step of 1e-4 on a weight of 1 is lost, and Adam's denominator is 0. The copies take the steps, and
the parameters their values. Cost: a copy of the half-precision parameters that adapt, and nothing for others.
"""

from collections.abc import Iterable

import torch
from torch import nn

from haptera.adapters.passes import HALF


class Masters:
    """Parameters and what to step on in their place.

    Attributes:
        parameters: of a model.
        values: to step on, one for each.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.values: list[torch.Tensor] = [
            nn.Parameter(p.detach().float()) if p.dtype in HALF else p for p in self.parameters
        ]

    def separate(self) -> list[tuple[nn.Parameter, torch.Tensor]]:
        """Parameter and copy, where there is one."""
        return [(p, value) for p, value in zip(self.parameters, self.values, strict=True) if p is not value]

    def take_gradients(self) -> None:
        """Move the gradients of parameters to their copies."""
        for parameter, value in self.separate():
            value.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None

    @torch.no_grad()
    def give(self) -> None:
        """Hand the values to the parameters."""
        for parameter, value in self.separate():
            parameter.copy_(value)

    @torch.no_grad()
    def read(self) -> None:
        """Begin anew from the parameters, which somebody wrote to."""
        for parameter, value in self.separate():
            value.copy_(parameter)

    def state(self) -> list[torch.Tensor]:
        """The copies."""
        return [value.detach() for _, value in self.separate()]

    @torch.no_grad()
    def load(self, state: list[torch.Tensor]) -> None:
        """Take what `state` returned."""
        for (_, value), saved in zip(self.separate(), state, strict=True):
            value.copy_(saved)

    @torch.no_grad()
    def moved(self) -> "Masters":
        """The same after the parameters went to another device or type; what copies know better is kept."""
        new = Masters(self.parameters)
        for parameter, before, after in zip(self.parameters, self.values, new.values, strict=True):
            if before is not parameter:
                after.copy_(before)
        return new
