"""Learning: the settings that every adapter that learns has in common.

Source: thesis chapter 3 (what adapts, and how predictions and updates follow each other), chapter 4 (settings).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from haptera.adapters.norm import SIZED, check_prior
from haptera.adapters.select import Select
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, check_keys

OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
WHEN = ("before", "after")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The settings that every learner takes by name, such as `Tent(model, momentum=0.5)`.

    Args:
        parameters: which of them adapt: `norm`, `last`, `all`, a pattern of names, or `!` and one of these.
        prior: N of the BatchNorm statistics, if there are any: 0 takes those of the batch, infinity those of training;
            `sized` is 0 but for batches of fewer than 16 images, which move the statistics along the stream.
        optimiser: `sgd`, `adam` or `adamw`.
        momentum: of SGD.
        nesterov: look ahead along the momentum of SGD.
        weight_decay: how strongly weights are drawn to 0; of `adamw` apart from the gradient, else as a part of it.
        steps: passes and updates for each batch, one after the other.
        predictions: made `before` or `after` the update of the same batch; of several updates, the last one, as in the
            public code of Tent.
        accumulate: batches per update.
        precision: `float32` or `bfloat16` (mixed).
        window: learn from the last inputs together, up to this many; for batches of one or a few.
        frozen: predict without learning, with the statistics found last.
        seed: of the random numbers of methods that draw some, such as views of images.
    """

    parameters: str | Select = "norm"
    prior: float | str = SIZED
    optimiser: str = "sgd"
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    steps: int = 1
    predictions: str = "before"
    accumulate: int = 1
    precision: str = "float32"
    window: int = 0
    frozen: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_keys("optimiser", [str(self.optimiser)], OPTIMISERS)
        check_keys("predictions", [str(self.predictions)], WHEN)
        check_keys("precision", [str(self.precision)], PRECISIONS)
        check_number("momentum", self.momentum, least=0, below=1)
        check_number("weight_decay", self.weight_decay, least=0)
        check_whole_number("steps", self.steps, what="a number of updates")
        check_whole_number("accumulate", self.accumulate, what="a number of batches")
        if self.steps > 1 and self.accumulate > 1:
            raise HapteraError(
                f"steps is {self.steps} and accumulate {self.accumulate}; there are several updates per batch, or "
                "several batches per update, not both"
            )
        if self.nesterov and (self.optimiser != "sgd" or not self.momentum):
            raise HapteraError(
                f"nesterov is for sgd with a momentum, found {self.optimiser} with a momentum of {self.momentum}"
            )
        if self.prior != SIZED:
            check_prior(self.prior)

    def make_optimiser(self, values: Iterable[torch.Tensor], lr: float) -> torch.optim.Optimizer:
        """Return the optimiser of these values."""
        own: dict[str, Any] = {"weight_decay": self.weight_decay}
        if self.optimiser == "sgd":
            own |= {"momentum": self.momentum, "nesterov": self.nesterov}
        return OPTIMISERS[self.optimiser](values, lr=lr, **own)  # type: ignore[call-arg]
