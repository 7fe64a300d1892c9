"""BlendedNorm: a BatchNorm layer whose statistics are a blend of those from training and those of the data at hand.

Source: thesis chapter 2, (2.2): mean = N/(N+n) source + n/(N+n) batch, the same for the variance, n counts images. The
batch variance is the biased one, so that N = 0 is exactly train-mode normalisation and N = ∞ the unadapted layer.
The gradient flows through the batch's share of the statistics, as it does in train mode.
Cost: N = 0 is torch's own fused pass; otherwise one more pass over the input. Holds four vectors per layer.
"""

import copy
from math import isnan
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.errors import HoldfastError


class BlendedNorm(nn.Module):
    """In the place of a BatchNorm layer.

    Attributes:
        use: `batch`, blend the statistics of the batch with the training's; `running`, move the statistics in use
            towards the batch's; `last`, take them as they are.
        prior: N, how many images the training statistics count for.
        momentum: the batch's share in the running statistics; None weighs all images seen so far, and N, alike.
    """

    def __init__(self, layer: _BatchNorm, prior: float, momentum: float | None = None) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = layer.weight, layer.bias, layer.eps
        self.prior, self.momentum, self.use = prior, momentum, "batch"
        self._replaced = [layer]  # in a list, so that it is no module of this one
        self.source_mean: torch.Tensor
        self.source_var: torch.Tensor
        self.mean: torch.Tensor
        self.var: torch.Tensor
        self.pooled_mean: torch.Tensor
        self.pooled_var: torch.Tensor
        self.seen: torch.Tensor
        for name, tensor in (("mean", layer.running_mean), ("var", layer.running_var)):
            assert tensor is not None
            self.register_buffer(f"source_{name}", tensor)
            self.register_buffer(name, tensor.clone())
            self.register_buffer(f"pooled_{name}", torch.zeros_like(tensor))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64, device=self.source_mean.device))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise and scale, channels in dimension 1."""
        if self.use == "last" or (self.prior == float("inf") and self.use == "batch"):
            return F.batch_norm(inputs, self.mean, self.var, self.weight, self.bias, False, 0.0, self.eps)
        values = inputs.numel() // inputs.shape[1]
        if self.prior == 0 and values == 1:
            raise HoldfastError(
                f"one value per channel has no variance: a batch of {len(inputs)} of shape {tuple(inputs.shape)} "
                "needs a prior above 0, a window, or more samples"
            )
        if self.prior == 0 and self.use == "batch":
            out, mean, var = _train_mode(inputs, self.weight, self.bias, self.eps)
            self.mean.copy_(mean)
            self.var.copy_(var)
            return out
        with torch.no_grad():
            mean, var = _statistics(inputs, self.eps)
            share = self._take(mean, var, len(inputs))
        return _Blended.apply(inputs, self.weight, self.bias, mean, self.mean, self.var, share, self.eps)

    def _take(self, mean: torch.Tensor, var: torch.Tensor, n: int) -> float:
        """Bring the statistics in use up to date; the share of this batch in them."""
        if self.use == "running":
            share = n / (self.prior + int(self.seen) + n) if self.momentum is None else self.momentum
            self.seen += n
            self.mean.lerp_(mean, share)
            self.var.lerp_(var, share)
            return share
        share = n / (self.prior + n)
        torch.lerp(self.source_mean, mean, share, out=self.mean)
        torch.lerp(self.source_var, var, share, out=self.var)
        return share

    def pool(self, inputs: torch.Tensor) -> None:
        """Add a batch to the pooled statistics: mean and variance of the union of two sets, Chan's update."""
        mean, var = _statistics(inputs, self.eps)
        share = len(inputs) / (int(self.seen) + len(inputs))
        difference = mean - self.pooled_mean
        self.pooled_var.mul_(1 - share).add_(share * var + share * (1 - share) * difference**2)
        self.pooled_mean.add_(share * difference)
        self.seen += len(inputs)

    def settle(self) -> None:
        """Use what was pooled from now on, and begin to pool anew."""
        if int(self.seen):
            share = int(self.seen) / (self.prior + int(self.seen))
            torch.lerp(self.source_mean, self.pooled_mean, share, out=self.mean)
            torch.lerp(self.source_var, self.pooled_var, share, out=self.var)
        for buffer in (self.seen, self.pooled_mean, self.pooled_var):
            buffer.zero_()

    def plain(self, source: bool) -> _BatchNorm:
        """A layer of the class that was replaced, with this one's affine, and its statistics or the source's."""
        layer = copy.copy(self._replaced[0])
        layer._parameters = dict(self._parameters)
        mean, var = (self.source_mean, self.source_var) if source else (self.mean, self.var)
        layer._buffers = self._replaced[0]._buffers | {"running_mean": mean, "running_var": var}
        return layer


def _train_mode(
    inputs: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalised by the batch itself in one fused pass, and the mean and biased variance that it found."""
    values, channels = inputs.numel() // inputs.shape[1], inputs.shape[1]
    mean, unbiased = inputs.new_zeros(channels), inputs.new_zeros(channels)
    out = F.batch_norm(inputs, mean, unbiased, weight, bias, True, 1.0, eps)
    return out, mean, unbiased * ((values - 1) / values)


def _statistics(inputs: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance of each channel; the fused pass is several times as fast as `torch.var_mean`."""
    if inputs.numel() == inputs.shape[1]:
        return inputs.reshape(-1), inputs.new_zeros(inputs.shape[1])
    return _train_mode(inputs, None, None, eps)[1:]


def per_image(values: torch.Tensor) -> torch.Tensor:
    """`(batch, channels, ...)` to `(batch, 2, channels)`: mean and mean square over positions, per image."""
    if values.ndim == 2:
        return torch.stack([values, values**2], 1)
    dims = list(range(2, values.ndim))
    positions = values[0, 0].numel()
    if not values.is_contiguous() and values.ndim == 4:  # channels last, where a norm over positions is slow
        flat = values.permute(0, 2, 3, 1).flatten(1, 2)
        return torch.stack([flat.mean(1), flat.square().mean(1)], 1)
    norm = torch.linalg.vector_norm(values, dim=dims)
    return torch.stack([values.mean(dims), norm**2 / positions], 1)


class _Blended(torch.autograd.Function):
    """Normalisation by statistics of which a share comes from the inputs themselves."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        own: torch.Tensor,
        mean: torch.Tensor,
        var: torch.Tensor,
        share: float,
        eps: float,
    ) -> torch.Tensor:
        ctx.save_for_backward(inputs, weight, own, mean.clone(), var.clone())
        ctx.share, ctx.eps = share, eps
        return F.batch_norm(inputs, mean, var, weight, bias, False, 0.0, eps)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """µ = (1−s)µ₀ + s m(x), v = (1−s)v₀ + s var(x): the direct term, and s times those through m and var."""
        inputs, weight, own, mean, var = ctx.saved_tensors
        shape = [1, -1, *[1] * (inputs.ndim - 2)]
        dims = [dim for dim in range(inputs.ndim) if dim != 1]
        inverse = (var + ctx.eps).rsqrt()
        centred = inputs - mean.view(shape)
        d_bias = grad.sum(dims)
        d_weight = (grad * centred).sum(dims) * inverse
        scale = inverse if weight is None else weight * inverse
        values = inputs.numel() // inputs.shape[1]
        through_mean = -scale * d_bias * (ctx.share / values)
        through_var = -scale * inverse * d_weight * (ctx.share / values)
        d_inputs = scale.view(shape) * grad + through_mean.view(shape)
        d_inputs += through_var.view(shape) * (inputs - own.view(shape))
        d_affine = (None, None) if weight is None else (d_weight, d_bias)
        return d_inputs, *d_affine, None, None, None, None, None


def blended(model: nn.Module, prior: float, momentum: float | None = None) -> list[BlendedNorm]:
    """Put a blended layer in the place of every BatchNorm layer that has statistics; in order, shared ones once."""
    made: dict[int, BlendedNorm] = {}
    for outer in list(model.modules()):
        for name, child in list(outer.named_children()):
            if isinstance(child, _BatchNorm) and child.running_mean is not None:
                made.setdefault(id(child), BlendedNorm(child, prior, momentum))
                setattr(outer, name, made[id(child)])
    return list(made.values())


def use_statistics(model: nn.Module, use: str) -> None:
    """Say which statistics every blended layer shall use: `batch`, `running` or `last`."""
    for layer in model.modules():
        if isinstance(layer, BlendedNorm):
            layer.use = use


def unblended(model: nn.Module, source: bool) -> None:
    """Put plain BatchNorm layers back, with the statistics in use or with the source's."""
    made: dict[int, _BatchNorm] = {}
    for outer in list(model.modules()):
        for name, child in list(outer.named_children()):
            if isinstance(child, BlendedNorm):
                setattr(outer, name, made.setdefault(id(child), child.plain(source)))


def check_prior(prior: float | str) -> float:
    """Refuse anything but a number of images."""
    if isinstance(prior, bool) or not isinstance(prior, int | float) or isnan(prior) or prior < 0:
        raise HoldfastError(f"prior is {prior!r}; a number of images of at least 0 was expected")
    return float(prior)
