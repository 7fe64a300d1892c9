"""BatchNorm statistics of the data at hand, with the training statistics as a prior.

Source: thesis chapter 2, (2.2), and its scenarios: ad hoc (n = 1), partial (n = 8), full (all images).
Running statistics, exponential or cumulative, are for batches too small to have statistics of their own.
`adapt` finds the statistics of a whole stream stage by stage: each layer's while all layers before it already use their
final ones, so that a second call changes nothing.
Cost: a forward pass and one more pass over each layer's input. `adapt` with L layers: L passes over the stream, each
ended at its layer, about L/2 whole ones. Holds four vectors per layer, no second copy of weights.
"""

from collections.abc import Iterable

import torch
from torch import nn

from holdfast.adapters.auto_prior import FIRST_PRIOR, AutoPrior
from holdfast.adapters.base import Adapter, all_finite
from holdfast.adapters.norm import BlendedNorm, blended, check_prior, unblended, use_statistics
from holdfast.batch import Batch
from holdfast.errors import HoldfastError, NotApplicable, unknown

STATISTICS = ("batch", "running", "cumulative")


class BatchNorm(Adapter):
    """Re-estimates the statistics of every BatchNorm layer.

    Args:
        model: a model with BatchNorm layers.
        prior: N, how many images the training statistics count for; 0 forgets them, infinity keeps them; `auto` chooses
            it anew after each batch, from what the images so far say about the target (`AutoPrior`).
        statistics: `batch`, of each batch with the prior; `running`, moved towards each batch by `momentum`;
            `cumulative`, of all images so far with the prior.
        momentum: the share of the newest batch in running statistics.
        window: estimate from the last inputs together, up to this many.
        frozen: predict with the statistics found last, by `adapt` or by the last batch.
    """

    def __init__(
        self,
        model: nn.Module,
        prior: float | str = 16,
        statistics: str = "batch",
        momentum: float = 0.1,
        *,
        window: int = 0,
        frozen: bool = False,
    ) -> None:
        first = FIRST_PRIOR if prior == "auto" else check_prior(prior)
        if statistics not in STATISTICS:
            raise unknown("statistics", statistics, STATISTICS)
        if not 0 <= momentum <= 1:
            raise HoldfastError(f"momentum is {momentum}; a share between 0 and 1 was expected")
        super().__init__(model, window=window, frozen=frozen)
        self._use = "batch" if statistics == "batch" else "running"
        self.layers = blended(self.model, first, momentum if statistics == "running" else None)
        if not self.layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")
        if prior == "auto" and statistics == "running":
            raise HoldfastError(
                "prior 'auto' is for statistics of each batch or cumulative ones; running ones have none"
            )
        self.auto = AutoPrior(self.layers) if prior == "auto" else None

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics of this batch in their share."""
        if self.auto is None:
            return self._run(inputs, self._use)
        self.auto.use()
        outputs = self._run(inputs, self._use)
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
            for layer in self._in_order(stream):
                hook = layer.register_forward_pre_hook(_pool_and_stop)
                try:
                    for batch in stream:
                        inputs = self._arranged(batch.inputs)
                        if all_finite(inputs):
                            try:
                                self.predict(inputs)
                            except _EnoughError:
                                continue
                finally:
                    hook.remove()
                layer.settle()

    @torch.no_grad()
    def _run(self, inputs: torch.Tensor, use: str) -> torch.Tensor:
        use_statistics(self.model, use)
        return self.model(inputs)

    def release(self, source_statistics: bool = False) -> nn.Module:
        """A plain model with the statistics found last, or with those of the source."""
        released = super().release()
        unblended(released, source_statistics)
        return released

    def _in_order(self, stream: Iterable[Batch]) -> list[BlendedNorm]:
        """The layers in the order in which a batch meets them."""
        met: list[BlendedNorm] = []
        hooks = [layer.register_forward_pre_hook(lambda own, _: met.append(own)) for layer in self.layers]
        try:
            for batch in stream:
                self.predict(self._arranged(batch.inputs[:1]))
                break
        finally:
            for hook in hooks:
                hook.remove()
        return list(dict.fromkeys(met))


class _EnoughError(Exception):
    """A layer has what it needs; the layers after it need not run."""


def _pool_and_stop(layer: BlendedNorm, inputs: tuple[torch.Tensor]) -> None:
    layer.pool(inputs[0])
    raise _EnoughError
