"""BatchNorm statistics of the data at hand, with the training statistics as a prior.

Source: thesis chapter 2, (2.2), and its scenarios: ad hoc (n = 1), partial (n = 8), full (all images).
Running statistics, exponential or cumulative, are for batches too small to have statistics of their own.
`adapt` finds the statistics of a whole stream stage by stage: each layer's while all layers before it already use their
final ones, so that a second call changes nothing. (A layer that is used in several places has one set of statistics,
of all of them; its later places then depend on it, and a second call comes nearer to the fixed point.)
Cost: a forward pass and one more pass over each layer's input. `adapt` with L layers: L passes over the stream, each
ended at its layer, about L/2 whole ones. Holds four vectors per layer, no second copy of weights.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

import torch
from torch import nn

from haptera.adapters.base import Adapter, all_finite
from haptera.adapters.norm import (
    SIZED,
    SMALL,
    Blend,
    Watch,
    begin_small_step,
    blended,
    blending,
    check_prior,
    unblended,
)
from haptera.adapters.passes import explaining, run
from haptera.adapters.prior import FIRST_PRIOR, AutoPrior
from haptera.batch import Batch
from haptera.checks import check_number
from haptera.errors import HapteraError, NotApplicable, unknown

STATISTICS = ("batch", "running", "cumulative")


class BatchNorm(Adapter):
    """Re-estimates the statistics of every BatchNorm layer.

    Args:
        model: a model with BatchNorm layers.
        prior: N, how many images the training statistics count for; 0 forgets them, infinity keeps them; `auto` chooses
            it anew after each batch, from what the images so far say about the target (`AutoPrior`). By default 16, and
            batches of fewer than 16 images move the statistics along the stream; `sized` is the same with 0 for 16.
        statistics: `batch`, of each batch with the prior; `running`, moved towards each batch by `momentum`;
            `cumulative`, of all images so far with the prior.
        momentum: the share of the newest batch in running statistics.
        window: estimate from the last inputs together, up to this many.
        frozen: predict with the statistics found last, by `adapt` or by the last batch.
    """

    def __init__(
        self,
        model: nn.Module,
        prior: float | str | None = None,
        statistics: str = "batch",
        momentum: float = 0.1,
        *,
        window: int = 0,
        frozen: bool = False,
    ) -> None:
        named = {None: 16.0, "auto": FIRST_PRIOR, SIZED: 0.0}
        first = named[prior] if prior in named else check_prior(prior)  # type: ignore[arg-type]
        if statistics not in STATISTICS:
            raise unknown("statistics", statistics, STATISTICS)
        check_number("momentum", momentum, least=0, most=1, what="a share")
        super().__init__(model, window=window, frozen=frozen)
        self._use = "batch" if statistics == "batch" else "running"
        self._sized = prior in (None, SIZED) and statistics == "batch"
        self.layers = blended(self.model, first, momentum if statistics == "running" else None)
        if not self.layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")
        if prior == "auto" and statistics == "running":
            raise HapteraError(
                "prior 'auto' is for statistics of each batch or cumulative ones; running ones have none"
            )
        self.auto = AutoPrior(self.layers) if prior == "auto" else None

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics of this batch in their share."""
        if self._sized and len(inputs) < SMALL:
            begin_small_step(self, inputs)
            return self._run(inputs, "moving")
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
                    inputs = self._arranged(batch.inputs)
                    if all_finite(inputs):
                        with suppress(_EnoughError), explaining(self.model, inputs):
                            self._run(inputs, "last", _Pool(blend, calls))
                blend.settle()

    @torch.no_grad()
    def _run(self, inputs: torch.Tensor, use: str, watch: Watch | None = None) -> torch.Tensor:
        with blending(self.model, use, watch):
            return run(self.model, inputs)

    def release(self, source_statistics: bool = False) -> nn.Module:
        """A plain model with the statistics found last, or with those of the source."""
        released = super().release()
        unblended(released, source_statistics)
        return released

    def _in_order(self, stream: Iterable[Batch]) -> Counter[Blend]:
        """The layers in the order in which a batch meets them, and how often it does."""
        met: Counter[Blend] = Counter()
        for batch in stream:
            self._run(self._arranged(batch.inputs[:1]), "last", lambda blend, _: met.update([blend]))
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
