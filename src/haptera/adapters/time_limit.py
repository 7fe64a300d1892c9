"""TimeLimit: a method that is slower than its stream, which misses the batches that come while it still learns.

Source: Alfarra et al. (2024), Evaluation of test-time adaptation under computational time constraints. Batches come at
a steady pace. A step that takes `cost` intervals keeps the adapter busy for as long; what comes meanwhile is predicted
as the adapter is by then, and not learnt from. A cost of 1 keeps up with the stream; at 2 every other batch is missed.
Differs: the cost is a setting and not a clock's, so that a run ends with the same numbers on every machine. The
passes that a method needs (each adapter's own page says how many) are one choice, and what a study measured as
`relative_seconds` is another. Missed batches still bring their own BatchNorm statistics where the method's parent
takes them.
Cost: that of the method, and of a plain pass for a batch that is missed.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.reset import Make
from haptera.adapters.wrapper import Wrapper
from haptera.checks import check_number


class TimeLimit(Wrapper):
    """An adapter that learns from a batch only if it is through with the one before.

    Its record says of every batch whether it was `missed`. Learning offline takes the time it takes.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        cost: how many intervals of the stream one step takes.
        settings: of the method.
    """

    def __init__(self, model: nn.Module, method: Make, cost: float, **settings: Any) -> None:
        check_number("cost", cost, above=0, below=float("inf"), what="a number of intervals of the stream")
        super().__init__(method(model, **settings))
        self.cost = cost
        self.memory |= {"batches": 0, "free": 0.0}

    def parent(self, model: nn.Module) -> Adapter:
        """The inner adapter's; one that misses the same batches, where their statistics move along the stream."""
        still = self.inner.parent(model)
        return TimeLimit(still.model, lambda _: still, self.cost) if getattr(still, "_sized", False) else still

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        if self.frozen or learn:
            return super()._through(inputs, learn)
        now, missed = self.memory["batches"], self.memory["batches"] < self.memory["free"]
        self.memory["batches"] = now + 1
        if not missed:
            self.memory["free"] = now + self.cost
        self.frozen = missed
        try:
            outputs = super()._through(inputs)
        finally:
            self.frozen = False
        self.record["missed"] = float(missed)
        return outputs
