"""BatchNorm statistics of the batch at hand, with the training statistics as a prior.

Source: thesis chapter 2, (2.2): mean = N/(N+n) source + n/(N+n) batch, the same for the variance, n counts images.
The batch variance is the biased one, so that N = 0 is exactly train-mode normalisation and N = ∞ the unadapted model.
Differs: nothing. `adapt` pools the statistics of a whole stream in one pass, in which every batch is still normalised
by its own statistics.
Cost: a forward pass and one more pass over each layer's input. Holds two vectors per layer, no second copy of weights.
"""

from collections.abc import Iterable
from math import isnan

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.adapters.base import Adapter
from holdfast.batch import Batch
from holdfast.errors import HoldfastError, NotApplicable


class BatchNorm(Adapter):
    """Re-estimates the statistics of every BatchNorm layer on each batch.

    Args:
        model: a model with BatchNorm layers.
        prior: N, how many images the training statistics count for; 0 forgets them, infinity keeps them.
        frozen: predict with the statistics found last, by `adapt` or by the last batch.
    """

    def __init__(self, model: nn.Module, prior: float = 16, *, frozen: bool = False) -> None:
        if isinstance(prior, bool) or not isinstance(prior, int | float) or isnan(prior) or prior < 0:
            raise HoldfastError(f"prior is {prior!r}; a number of images of at least 0 was expected")
        super().__init__(model, frozen=frozen)
        self.layers = _replace(self.model, float(prior))
        if not self.layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics of this batch."""
        return self._run(inputs, "batch")

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics found last."""
        return self._run(inputs, "last")

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Pool the statistics of a whole stream; n is then the number of its images."""
        for _ in range(epochs):
            for layer in self.layers:
                layer.seen.zero_()
            for batch in stream:
                self._run(batch.inputs.to(self.device), "pool")
            for layer in self.layers:
                layer.settle()

    @torch.no_grad()
    def _run(self, inputs: torch.Tensor, use: str) -> torch.Tensor:
        for layer in self.layers:
            layer.use = use
        return self.model(inputs)


class BlendedNorm(nn.Module):
    """A BatchNorm layer that normalises by a blend of its training statistics and those of the batch."""

    def __init__(self, layer: _BatchNorm, prior: float) -> None:
        super().__init__()
        self.weight, self.bias, self.eps, self.prior = layer.weight, layer.bias, layer.eps, prior
        self.use = "batch"
        self.source_mean: torch.Tensor
        self.source_var: torch.Tensor
        for name, tensor in (("source_mean", layer.running_mean), ("source_var", layer.running_var)):
            assert tensor is not None
            self.register_buffer(name, tensor)
            own = name.removeprefix("source_")
            self.register_buffer(own, tensor.clone())
            self.register_buffer(f"pooled_{own}", torch.zeros_like(tensor))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64, device=self.source_mean.device))
        self.mean: torch.Tensor
        self.var: torch.Tensor
        self.pooled_mean: torch.Tensor
        self.pooled_var: torch.Tensor
        self.seen: torch.Tensor

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise and scale, channels in dimension 1."""
        if self.use != "last":
            self._estimate(inputs)
        return F.batch_norm(inputs, self.mean, self.var, self.weight, self.bias, False, 0.0, self.eps)

    def _estimate(self, inputs: torch.Tensor) -> None:
        if self.prior == 0 and inputs.numel() == inputs.shape[1]:
            raise HoldfastError(
                f"one value per channel has no variance: a batch of {len(inputs)} of shape {tuple(inputs.shape)} "
                "needs a prior above 0, or more samples"
            )
        dims = [dim for dim in range(inputs.ndim) if dim != 1]
        var, mean = torch.var_mean(inputs, dims, correction=0)
        if self.use == "pool":
            self._pool(mean, var, len(inputs))
        self._blend(mean, var, len(inputs))

    def _blend(self, mean: torch.Tensor, var: torch.Tensor, n: int) -> None:
        share = n / (self.prior + n)
        torch.lerp(self.source_mean, mean, share, out=self.mean)
        torch.lerp(self.source_var, var, share, out=self.var)

    def _pool(self, mean: torch.Tensor, var: torch.Tensor, n: int) -> None:
        """Mean and variance of the union of two sets, Chan's update."""
        share = n / (int(self.seen) + n)
        difference = mean - self.pooled_mean
        self.pooled_var.mul_(1 - share).add_(share * var + share * (1 - share) * difference**2)
        self.pooled_mean.add_(share * difference)
        self.seen += n

    def settle(self) -> None:
        """Use what was pooled from now on."""
        if int(self.seen):
            self._blend(self.pooled_mean, self.pooled_var, int(self.seen))


def _replace(module: nn.Module, prior: float) -> list[BlendedNorm]:
    """Put a blended layer in the place of every BatchNorm layer that has statistics; in order, shared ones once."""
    made: dict[int, BlendedNorm] = {}
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, _BatchNorm) and child.running_mean is not None:
                made.setdefault(id(child), BlendedNorm(child, prior))
                setattr(parent, name, made[id(child)])
    return list(made.values())
