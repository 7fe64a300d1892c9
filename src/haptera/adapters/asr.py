"""ASR: reset only when predictions concentrate on few classes, and only the layers near the output.

Source: Lim et al. 2026, "When and where to reset matters". It goes around any adapter that learns; `ASR` is with ETA.
When: the entropy of the mean prediction of a batch falls below a running bound, which begins at ln(classes · C) and
follows the entropy by pace · (1 − flips), flips the share of images that the source model predicts otherwise. Where: of
the tensors that adapt, in the order of the model, the first keep − slope · (bound − entropy) of all stay, the others
return to the source. Optimiser and memory begin anew, as does the bound.
What was learnt before a reset draws the weights back to it: strength · flips² · Σ F (θ − μ)², F the mean squared
gradients and μ the mean weights between resets, averaged over resets with .9 old and .1 new.
The public code decides: the mean prediction is the softmax of the mean logits, before any prior correction; flips of
one batch weigh the regulariser of the next; all constants are those for a ResNet-50, others for a ViT (pace .99,
classes .005, slope 50).
Differs: F and μ are means over the updates that were made; without one, a reset keeps the earlier F and μ. Around ROID
the weights that adapt return, where the public code, of several models, resets the first, ROID's copy of the source.
Statistics that move along a stream of small batches stay. The paper was read in its public code and abstract only.
Cost: a forward pass of the source's weights per batch, and four tensors per tensor that adapts.
"""

from collections.abc import Callable
from functools import partial
from math import log
from typing import Annotated, Any

import torch
from torch import nn

from haptera.adapters.base import Adapter, all_finite
from haptera.adapters.eta import ETA
from haptera.adapters.norm import keep_statistics
from haptera.adapters.piece import Piece
from haptera.adapters.state import EXTRA, snapshot
from haptera.checks import check_number
from haptera.losses.self_learning import entropy

Make = Callable[..., Adapter]
OLD = 0.9
"""The share of earlier resets in F and μ."""
STAYS = ("recent", "pending")
"""What a learner remembers of inputs and gradients, not of what it learnt."""


class SelectiveReset(Piece):
    """An adapter that learns, with adaptive and selective resets.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        classes: the share of classes over which predictions must spread at first.
        pace: how fast the bound follows the entropy where nothing is flipped.
        keep: the share of the tensors that stays where the bound is just missed.
        slope: how much less stays for each nat below the bound.
        strength: the weight of the regulariser where everything is flipped.
        settings: of the method.
    """

    def __init__(
        self,
        model: nn.Module,
        method: Make,
        classes: float = 0.5,
        pace: float = 0.15,
        keep: float = 0.5,
        slope: float = 20.0,
        strength: float = 5.0,
        **settings: Any,
    ) -> None:
        check_number("classes", classes, above=0, most=1, what="a share")
        check_number("pace", pace, least=0, most=1, what="a share")
        check_number("keep", keep, least=0, most=1, what="a share")
        check_number("slope", slope, least=0)
        check_number("strength", strength, least=0, what="a weight")
        super().__init__(method(model, **settings))
        self.classes, self.pace, self.keep, self.slope, self.strength = classes, pace, keep, slope, strength
        self._said: list[torch.Tensor] = []
        self.memory |= {"bound": None, "weight": 0.0, "resets": 0, "updates": 0}
        self.memory |= {"squares": None, "places": None, "fisher": None, "centre": None}

    @torch.no_grad()
    def before_update(self) -> None:
        """Take this gradient and place into account, and add the gradient of the regulariser."""
        memory, values = self.memory, self.learner.masters.values
        squares = [torch.zeros_like(v) if v.grad is None else v.grad**2 for v in values]
        memory["squares"] = _add(memory["squares"], squares)
        memory["places"] = _add(memory["places"], [value.detach().clone() for value in values])
        memory["updates"] += 1
        if memory["fisher"] is None or not memory["weight"]:
            return
        for value, fisher, centre in zip(values, memory["fisher"], memory["centre"], strict=True):
            pull = 2 * memory["weight"] * fisher.to(value) * (value - centre.to(value))
            value.grad = pull if value.grad is None else value.grad + pull

    def after_step(self, outputs: torch.Tensor) -> None:
        """Remember what the learner itself said."""
        self._said.append(outputs)

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        self._said.clear()
        outputs = super()._through(inputs, learn)
        if self._said and all_finite(self._said[-1]):
            self.record["flips"] = self._watch(inputs, self._said[-1])
            self.record["resets"] = float(self.memory["resets"])
        self._said.clear()
        return outputs

    def _watch(self, inputs: torch.Tensor, said: torch.Tensor) -> float:
        """Reset where predictions are too concentrated, else let the bound follow; return the share of flips."""
        memory, first = self.memory, log(self.classes * said.shape[1])
        bound = first if memory["bound"] is None else memory["bound"]
        spread = float(entropy(said.mean(0, keepdim=True)))
        flips = self._share_of_flips(inputs, said)
        memory["weight"] = self.strength * flips**2
        if spread < bound:
            self._settle()
            self._return(max(self.keep - self.slope * (bound - spread), 0.0))
            memory |= {"bound": first, "resets": memory["resets"] + 1}
        else:
            memory["bound"] = bound + self.pace * (1 - flips) * (spread - bound)
        return flips

    @torch.no_grad()
    def _share_of_flips(self, inputs: torch.Tensor, said: torch.Tensor) -> float:
        """How many of the images the source's weights predict otherwise."""
        learner = self.learner
        weights: list[torch.Tensor] = list(learner.adapted.values())
        now = [weight.detach().clone() for weight in weights]
        torch._foreach_copy_(weights, learner._source)
        with keep_statistics(learner.model):
            use = "batch" if len(inputs) == len(said) else "last"  # with a window, the batch is less than was seen
            source = learner.logits(learner._arrange(inputs), use)
        torch._foreach_copy_(weights, now)
        return float((source.argmax(1) != said[-len(inputs) :].argmax(1)).float().mean())

    def _settle(self) -> None:
        """Average what was collected since the last reset with what was before."""
        memory, updates = self.memory, self.memory["updates"]
        if updates:
            for name, sums in (("fisher", "squares"), ("centre", "places")):
                new = [total / updates for total in memory[sums]]
                old = new if memory[name] is None else memory[name]
                memory[name] = [OLD * a.to(b) + (1 - OLD) * b for a, b in zip(old, new, strict=True)]
        memory |= {"squares": None, "places": None, "updates": 0}

    @torch.no_grad()
    def _return(self, share: float) -> None:
        """Bring all but the first share of the tensors back to the source; optimiser and memory begin anew."""
        learner = self.learner
        for name in learner.copies:
            masters = getattr(learner, name)
            for place, (value, source) in enumerate(zip(masters.values, learner._source, strict=True)):
                if place >= share * len(masters.values):
                    value.copy_(source)
            masters.give()
        learner.optimiser.state.clear()
        stays = {key: value for key, value in learner.memory.items() if key in STAYS}
        learner.memory = snapshot(learner._first[EXTRA]["memory"]) | stays


def _add(sums: list[torch.Tensor] | None, new: list[torch.Tensor]) -> list[torch.Tensor]:
    return new if sums is None else [a.to(b) + b for a, b in zip(sums, new, strict=True)]


class ASR(SelectiveReset):
    """ETA with adaptive and selective resets.

    Args:
        model: as ETA takes it.
        classes: the share of classes over which predictions must spread at first.
        pace: how fast the bound follows the entropy where nothing is flipped.
        keep: the share of the tensors that stays where the bound is just missed.
        slope: how much less stays for each nat below the bound.
        strength: the weight of the regulariser where everything is flipped.
        settings: of ETA.
    """

    def __init__(
        self,
        model: nn.Module,
        classes: float = 0.5,
        pace: float = 0.15,
        keep: float = 0.5,
        slope: float = 20.0,
        strength: float = 5.0,
        **settings: Annotated[Any, ETA],
    ) -> None:
        super().__init__(model, ETA, classes, pace, keep, slope, strength, **settings)


def AdaptiveReset(method: Make, **settings: Any) -> Make:  # noqa: N802 - reads as the noun it makes
    """A method with adaptive and selective resets; what comes back takes a model, as the method does.

    Args:
        method: an adapter class, or a partial of one.
        settings: of `SelectiveReset`.
    """
    return partial(SelectiveReset, method=method, **settings)
