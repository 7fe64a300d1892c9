"""Resets: any adapter, brought back to its beginning every so often, at known steps, or when it seems to collapse.

Source: thesis chapter 4: RDumb is ETA, reset every 1,000 steps (weights, optimiser, running mean); the signs of a
collapse that need no labels follow appendix C: the entropy of the mean prediction, the share of the largest class.

    adapted = PeriodicReset(ETA, every=1000)(model)         # RDumb
    adapted = ResetWhen(Tent, Collapsed(largest=0.5))(model)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Annotated, Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.eta import ETA
from haptera.adapters.wrapper import Wrapper
from haptera.checks import check_whole_number

FEW_CLASSES = 4
Rule = Callable[[Mapping[str, Any]], bool]
Make = Callable[..., Adapter]


@dataclass(frozen=True)
class Every:
    """Due after so many steps since the beginning or the last reset."""

    steps: int

    def __post_init__(self) -> None:
        check_whole_number("every", self.steps, what="a number of steps")

    def __call__(self, seen: Mapping[str, Any]) -> bool:
        """Say whether to reset before the next step."""
        return bool(seen["since"] >= self.steps)


@dataclass(frozen=True)
class At:
    """Due before each of these steps, counted from 0: known boundaries, such as the first batch of a new domain."""

    steps: tuple[int, ...]

    def __call__(self, seen: Mapping[str, Any]) -> bool:
        """Say whether to reset before the next step."""
        return seen["steps"] in self.steps


@dataclass(frozen=True)
class Collapsed:
    """Due when the mean prediction of recent images has too little entropy, or too much of one class.

    Args:
        entropy: the least that is fine, in units of ln C.
        largest: the largest share of one class that is fine; by default a half, and for two or three classes half way
            from an even share to 1.
        images: how many recent images count, with exponential weights; it waits for as many after each reset.
    """

    entropy: float = 0.5
    largest: float | None = None
    images: int = 500

    def __call__(self, seen: Mapping[str, Any]) -> bool:
        """Say whether to reset before the next step."""
        mean = seen["mean"]
        if mean is None or seen["images"] < self.images:
            return False
        low = float(torch.special.entr(mean).sum()) < self.entropy * log(len(mean))
        largest = (1 + 1 / len(mean)) / 2 if len(mean) < FEW_CLASSES else 0.5
        return low or float(mean.max()) > (largest if self.largest is None else self.largest)


class Reset(Wrapper):
    """An adapter that a rule brings back to its beginning.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        rule: from what was seen (`steps` in all, steps `since` the last reset, `images` since then, `mean` prediction)
            to whether a reset is due.
        settings: of the method.
    """

    def __init__(self, model: nn.Module, method: Make, rule: Rule, **settings: Any) -> None:
        super().__init__(method(model, **settings))
        self.rule = rule
        self.memory |= {"steps": 0, "since": 0, "images": 0, "mean": None, "resets": 0}

    def parent(self, model: nn.Module) -> Adapter:
        """The inner adapter's; with resets, where they bring back statistics that move along the stream."""
        return self._with_resets(self.inner.parent(model))

    def predictor(self) -> Adapter:
        """The inner adapter's; with resets, as the parent."""
        return self._with_resets(self.inner.predictor())

    def _with_resets(self, still: Adapter) -> Adapter:
        return Reset(still.model, lambda _: still, self.rule) if getattr(still, "_sized", False) else still

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        if self.frozen and not learn:
            return super()._through(inputs, learn)
        seen = self.memory
        if seen["steps"] and self.rule(seen):
            self.inner.reset()
            seen |= {"since": 0, "images": 0, "mean": None, "resets": seen["resets"] + 1}
        outputs = super()._through(inputs, learn)
        seen["steps"] += 1
        seen["since"] += 1
        if not self.record.get("skipped") and isinstance(outputs, torch.Tensor) and outputs.ndim == 2 and len(outputs):
            self._watch(outputs.detach())
        self.record["resets"] = float(seen["resets"])
        return outputs

    def _watch(self, outputs: torch.Tensor) -> None:
        seen, mean = self.memory, outputs.float().softmax(1).mean(0)
        seen["images"] += len(outputs)
        share = max(len(outputs) / seen["images"], 1 - 2.0 ** (-2 * len(outputs) / getattr(self.rule, "images", 500)))
        seen["mean"] = mean if seen["mean"] is None else seen["mean"].to(mean).lerp(mean, share)


class RDumb(Reset):
    """ETA, reset every so many steps.

    Args:
        model: as ETA takes it.
        every: steps between resets.
        settings: of ETA.
    """

    def __init__(self, model: nn.Module, every: int = 1000, **settings: Annotated[Any, ETA]) -> None:
        super().__init__(model, ETA, Every(every), **settings)


def PeriodicReset(method: Make, every: int = 1000) -> Make:  # noqa: N802 - reads as the noun it makes
    """A method with a reset every so many steps; what comes back takes a model, as the method does."""
    return partial(Reset, method=method, rule=Every(every))


def ResetWhen(method: Make, rule: Rule) -> Make:  # noqa: N802
    """A method with a reset when a rule says so."""
    return partial(Reset, method=method, rule=rule)
