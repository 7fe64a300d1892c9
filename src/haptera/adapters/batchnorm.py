"""BatchNorm statistics of the data at hand, with the training statistics as a prior.

Source: thesis chapter 2, (2.2), and its scenarios: ad hoc (n = 1), partial (n = 8), full (all images).
Running statistics, exponential or cumulative, are for batches too small to have statistics of their own.
BN-α and BN-EMA of the widest public collection are `statistics="alpha"`, (1 − α) source + α batch whatever the size of
the batch, which is a prior of n (1 − α) / α, and `statistics="ema"`: a pass in train mode moves the running statistics,
a second one predicts with them. (`running` has one pass, in which every layer already uses the moved statistics of the
layers before it.) Differs: the variance of α's batch is the biased one, as everywhere here; that of `ema` is torch's.
`adapt` finds the statistics of a whole stream stage by stage: each layer's while all layers before it already use their
final ones, so that a second call changes nothing. (A layer that is used in several places has one set of statistics,
of all of them; its later places then depend on it, and a second call comes nearer to the fixed point.)
Cost: a forward pass and one more pass over each layer's input; `ema`, two forward passes. `adapt` with L layers: L
passes over the stream, each ended at its layer, about L/2 whole ones. Holds four vectors per layer, no second copy of
weights.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from math import inf
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter, all_finite
from haptera.adapters.norm import (
    SIZED,
    SMALL,
    Blend,
    Look,
    add_blends,
    begin_small_step,
    blending,
    check_prior,
)
from haptera.adapters.passes import explain_failure, run
from haptera.adapters.prior import FIRST_PRIOR, AutoPrior
from haptera.batch import Batch
from haptera.checks import check_number
from haptera.errors import HapteraError, NotApplicable, check_keys

STATISTICS = ("batch", "alpha", "running", "cumulative", "ema")


class BatchNorm(Adapter):
    """Re-estimates the statistics of every BatchNorm layer.

    Args:
        model: a model with BatchNorm layers.
        prior: N, how many images the training statistics count for; 0 forgets them, infinity keeps them; `auto` chooses
            it anew after each batch, from what the images so far say about the target (`AutoPrior`). By default 16, and
            batches of fewer than 16 images move the statistics along the stream; `sized` is the same with 0 for 16.
        statistics: `batch`, of each batch with the prior; `alpha`, of each batch with a fixed share; `running`, moved
            towards each batch by `momentum`; `cumulative`, of all images so far with the prior; `ema`, moved by a pass
            in train mode, by `momentum`.
        momentum: the share of the newest batch in running statistics.
        alpha: the share of each batch where that is fixed; the prior then has no say.
        settings: `window`, to estimate from the last inputs together, up to so many; `frozen`, to predict with the
            statistics found last, by `adapt` or by the last batch.
    """

    def __init__(
        self,
        model: nn.Module,
        prior: float | str | None = None,
        statistics: str = "batch",
        momentum: float = 0.1,
        alpha: float = 0.1,
        **settings: Any,
    ) -> None:
        named = {None: 16.0, "auto": FIRST_PRIOR, SIZED: 0.0}
        first = named[prior] if prior in named else check_prior(prior)  # type: ignore[arg-type]
        check_keys("statistics", [statistics], STATISTICS)
        check_number("momentum", momentum, least=0, most=1, what="a share")
        check_number("alpha", alpha, least=0, most=1, what="a share")
        super().__init__(model, **settings)
        uses = {"batch": "batch", "alpha": "batch", "ema": "train"}
        self._use, self.alpha = uses.get(statistics, "running"), alpha if statistics == "alpha" else None
        self._sized = prior in (None, SIZED) and statistics == "batch"
        self.layers = add_blends(self.model, first, momentum if statistics in ("running", "ema") else None)
        if not self.layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")
        if prior == "auto" and statistics not in ("batch", "cumulative"):
            raise HapteraError(
                f"prior 'auto' is for statistics of each batch or cumulative ones; those of {statistics!r} have none"
            )
        self.auto = AutoPrior(self.layers) if prior == "auto" else None

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics of this batch in their share."""
        if self._sized and len(inputs) < SMALL:
            begin_small_step(self, inputs)
            return self._run(inputs, "moving")
        self._fix_share(len(inputs))
        if self._use == "train":
            self._run(inputs, "train")
            return self.predict(inputs)
        if self.auto is None:
            return self._run(inputs, self._use)
        self.auto.use()
        outputs = self._run(inputs, self._use, self.auto.watch)
        self.auto.choose(len(inputs))
        self.record["prior"] = self.auto.prior
        return outputs

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics found last."""
        return self._run(inputs, "last")

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Take the statistics of a whole stream, layer after layer; n is then the number of its images.

        Args:
            stream: read once for each layer.
            epochs: makes no difference, since a second pass changes nothing.
        """
        with self._call():
            for blend, calls in self._in_order(stream).items():
                for batch in stream:
                    inputs = self._arrange(batch.inputs)
                    if all_finite(inputs):
                        with suppress(_EnoughError), explain_failure(self.model, inputs):
                            self._run(inputs, "last", _Pool(blend, calls))
                self._fix_share(int(blend.seen))
                blend.settle()

    def _fix_share(self, n: int) -> None:
        """Choose the prior at which n images have the share α."""
        if self.alpha is not None:
            for blend in self.layers:
                blend.prior = n * (1 - self.alpha) / self.alpha if self.alpha else inf

    @torch.no_grad()
    def _run(self, inputs: torch.Tensor, use: str, watch: Look | None = None) -> torch.Tensor:
        with blending(self.model, use, watch):
            return run(self.model, inputs)

    def _in_order(self, stream: Iterable[Batch]) -> Counter[Blend]:
        """The layers in the order in which a batch meets them, and how often it does."""
        met: Counter[Blend] = Counter()
        for batch in stream:
            self._run(self._arrange(batch.inputs[:1]), "last", lambda blend, _: met.update([blend]))
            break
        return met


class _EnoughError(Exception):
    """A layer has what it needs; the layers after it need not run."""


class _Pool:
    """Pools what one layer meets in a pass, and ends the pass after so many calls of it."""

    def __init__(self, blend: Blend, calls: int) -> None:
        self.blend, self.calls = blend, calls

    def __call__(self, blend: Blend, inputs: torch.Tensor) -> None:
        if blend is not self.blend:
            return
        blend.pool(inputs)
        self.calls -= 1
        if not self.calls:
            raise _EnoughError
