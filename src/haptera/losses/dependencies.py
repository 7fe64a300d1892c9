"""Dependency penalty: a loss term that cuts chosen dependencies among classes.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 3.3: |E[f_i f_j]| of a chosen pair is
added to the loss, with a weight of 0.2, in the last third of training. The source does not say how the expectation is
taken. Here its value, and with it the sign of the gradient, comes from a running mean over the last samples, so that
small batches do not pull to and fro; the gradient of the mean itself is that of the batch.
Cost: two numbers for each pair.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn

from haptera.checks import check_number
from haptera.errors import HapteraError


class DependencyPenalty(nn.Module):
    """Add `penalty(logits)` to the loss of every batch.

    Args:
        pairs: classes (i, j) whose logits should not vary together; `pairs_worth_cutting` ranks them.
        weight: of the term.
        memory: samples after which a sample counts 1/e in the running mean.

    >>> penalty = DependencyPenalty([(0, 1)], weight=0.5)
    >>> penalty(torch.tensor([[2.0, 1.0], [0.0, 1.0]])).item()
    0.5
    """

    moment: torch.Tensor
    seen: torch.Tensor

    def __init__(self, pairs: Iterable[tuple[int, int]], weight: float = 0.2, memory: float = 4096) -> None:
        super().__init__()
        self.pairs = [(int(first), int(second)) for first, second in pairs]
        if not self.pairs or any(first == second or min(first, second) < 0 for first, second in self.pairs):
            raise HapteraError(f"pairs are {self.pairs}; at least one pair of two different classes was expected")
        check_number("weight", weight, least=0)
        check_number("memory", memory, above=0)
        self.weight, self.memory = weight, memory
        self.register_buffer("moment", torch.zeros(len(self.pairs), dtype=torch.float64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64))

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """The term for a batch of logits `(batch, classes)`; in evaluation mode the running mean stays as it is."""
        largest = max(map(max, self.pairs))
        if logits.ndim != 2 or logits.shape[1] <= largest or not len(logits):
            raise HapteraError(f"logits have shape {tuple(logits.shape)}; (batch, more than {largest}) was expected")
        first, second = (list(side) for side in zip(*self.pairs, strict=True))
        batch = (logits[:, first] * logits[:, second]).mean(0)
        if self.training:
            with torch.no_grad():
                fade = math.exp(-len(logits) / self.memory)
                self.moment.mul_(fade).add_(batch.double(), alpha=1 - fade)
                self.seen.mul_(fade).add_(1 - fade)
        mean = (self.moment / self.seen.clamp_min(1e-300)).to(batch) if self.seen else batch.detach()
        return self.weight * (mean.abs() + mean.sign() * (batch - batch.detach())).sum()
