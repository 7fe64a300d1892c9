"""Blend: the statistics by which one BatchNorm layer normalises, from training and from the data at hand.

Source: thesis chapter 2, (2.2): mean = N/(N+n) source + n/(N+n) batch, the same for the variance, n counts images. The
batch variance is the biased one, so that N = 0 is exactly train-mode normalisation and N = ∞ the unadapted layer.
The gradient flows through the batch's share of the statistics, as it does in train mode.
Cost: N = 0 is torch's own fused pass; otherwise one more pass over the input. Large images with channels last on one
thread go through compiled loops (`fused.py`), which take one more pass for any N. Holds four vectors per layer.
"""

from math import inf

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.normalising import normalise, statistics, train_mode
from haptera.errors import HapteraError

REACH = 32.0
"""How many images the statistics of earlier steps count for, where batches are small."""


class Blend(nn.Module):
    """The statistics that one BatchNorm layer uses; it is a child of that layer.

    Attributes:
        prior: N, how many images the training statistics count for.
        momentum: the batch's share in the running statistics; None weighs all images seen so far, and N, alike.
        followed: what comes after the layer, as `deferred.py` has found.
    """

    mean: torch.Tensor  # this and the variance: found last
    var: torch.Tensor
    held_mean: torch.Tensor  # this and the variance: what the step began with, or what is pooled
    held_var: torch.Tensor
    seen: torch.Tensor

    def __init__(self, layer: _BatchNorm, prior: float, momentum: float | None = None) -> None:
        super().__init__()
        self.prior, self.momentum, self.said_unmet = prior, momentum, False
        self.followed: str | None = None
        self._layer = [layer]  # in a list, so that it is not a module of this one
        for name, tensor in (("mean", self.source_mean), ("var", self.source_var)):
            self.register_buffer(name, tensor.detach().clone())
            self.register_buffer(f"held_{name}", torch.zeros_like(tensor))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64, device=self.mean.device))

    @property
    def source_mean(self) -> torch.Tensor:
        """The layer's own, from training."""
        assert self._layer[0].running_mean is not None
        return self._layer[0].running_mean

    @property
    def source_var(self) -> torch.Tensor:
        """The layer's own, from training."""
        assert self._layer[0].running_var is not None
        return self._layer[0].running_var

    def normalise(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        use: str,
        earlier: int = 0,
    ) -> torch.Tensor:
        """Normalise and scale, channels in dimension 1; `earlier` calls of this pass had the same layer."""
        if use == "last" or (self.prior == inf and use == "batch"):
            return F.batch_norm(inputs, self.mean, self.var, weight, bias, False, 0.0, eps)
        values = inputs.numel() // inputs.shape[1]
        by_itself = use == "train" or (self.prior == 0 and use == "batch")
        if by_itself and values == 1:
            raise HapteraError(
                f"one value per channel has no variance: a batch of {len(inputs)} of shape {tuple(inputs.shape)} "
                "needs a prior above 0, a window, or more samples"
            )
        if by_itself:
            out, mean, var = train_mode(inputs, weight, bias, eps, self.mean.dtype)
            if use == "train" and self.momentum is not None:
                self.mean.lerp_(mean, self.momentum)
                self.var.lerp_(var * (values / (values - 1)), self.momentum)  # as torch does, the unbiased one
            else:
                self._keep(mean, var, earlier)
            return out
        with torch.no_grad():
            own, var = statistics(inputs, eps, self.mean.dtype)
            mean, var, share = self._take(own, var, len(inputs), use, earlier)
        return normalise(inputs, weight, bias, own, mean, var, share, eps)

    def _take(
        self, mean: torch.Tensor, var: torch.Tensor, n: int, use: str, earlier: int
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Bring the statistics found last up to date; those to use, and the share of this batch in them."""
        if use == "running":
            share = n / (self.prior + int(self.seen) + n) if self.momentum is None else self.momentum
            self.seen += n
            self.mean.lerp_(mean, share)
            self.var.lerp_(var, share)
            return self.mean.clone(), self.var.clone(), share
        if use == "moving":
            share = n / (REACH + n)
            mean, var = self.held_mean.lerp(mean, share), self.held_var.lerp(var, share)
        else:
            share = n / (self.prior + n)
            mean, var = self.source_mean.lerp(mean, share), self.source_var.lerp(var, share)
        self._keep(mean, var, earlier)
        return mean, var, share

    def _keep(self, mean: torch.Tensor, var: torch.Tensor, earlier: int) -> None:
        """Take statistics as those found last; of several calls in one pass, those of the union."""
        unite(self.mean, self.var, mean, var, 1 / (earlier + 1))

    def pool(self, inputs: torch.Tensor) -> None:
        """Add a batch to the pooled statistics."""
        mean, var = statistics(inputs, 1e-5, self.mean.dtype)
        unite(self.held_mean, self.held_var, mean, var, len(inputs) / (int(self.seen) + len(inputs)))
        self.seen += len(inputs)

    def settle(self) -> None:
        """Use what was pooled from now on, and begin to pool anew."""
        if int(self.seen):
            share = int(self.seen) / (self.prior + int(self.seen))
            torch.lerp(self.source_mean, self.held_mean, share, out=self.mean)
            torch.lerp(self.source_var, self.held_var, share, out=self.var)
        for buffer in (self.seen, self.held_mean, self.held_var):
            buffer.zero_()

    def begin_step(self) -> None:
        """Let `moving` statistics start from those found last."""
        self.held_mean.copy_(self.mean)
        self.held_var.copy_(self.var)

    def forget(self) -> None:
        """Return to the statistics of training."""
        self.mean.copy_(self.source_mean)
        self.var.copy_(self.source_var)


def unite(
    mean: torch.Tensor, var: torch.Tensor, other_mean: torch.Tensor, other_var: torch.Tensor, share: float
) -> None:
    """Mean and variance of the union of two sets, in place; the other has this share of it. Chan's update."""
    if share == 1:
        mean.copy_(other_mean)
        var.copy_(other_var)
        return
    difference = other_mean - mean
    var.mul_(1 - share).add_(share * other_var + share * (1 - share) * difference**2)
    mean.add_(share * difference)
