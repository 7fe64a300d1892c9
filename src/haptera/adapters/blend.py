"""Blend: the statistics by which one BatchNorm layer normalises, from training and from the data at hand.

Source: thesis chapter 2, (2.2): mean = N/(N+n) source + n/(N+n) batch, the same for the variance, n counts images. The
batch variance is the biased one, so that N = 0 is exactly train-mode normalisation and N = ∞ the unadapted layer.
The gradient flows through the batch's share of the statistics, as it does in train mode.
Cost: N = 0 is torch's own fused pass; otherwise one more pass over the input. Large images with channels last on one
thread go through compiled loops (`fused.py`), which take one more pass for any N. Holds four vectors per layer.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters import deferred, fused
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


def train_mode(
    inputs: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalised by the batch itself in one fused pass, and the mean and biased variance that it found."""
    if fused.suits(inputs):
        mean, var = fused.batch_moments(inputs, dtype)
        return normalise(inputs, weight, bias, mean, mean, var, 1.0, eps), mean, var
    values, channels = inputs.numel() // inputs.shape[1], inputs.shape[1]
    mean, unbiased = inputs.new_zeros(channels, dtype=dtype), inputs.new_zeros(channels, dtype=dtype)
    out = F.batch_norm(inputs, mean, unbiased, weight, bias, True, 1.0, eps)
    return out, mean, unbiased * ((values - 1) / values)


def statistics(inputs: torch.Tensor, eps: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance of each channel; the fused pass is several times as fast as `torch.var_mean`."""
    if inputs.numel() == inputs.shape[1]:
        return inputs.reshape(-1).to(dtype), inputs.new_zeros(inputs.shape[1], dtype=dtype)
    if fused.suits(inputs):
        return fused.batch_moments(inputs, dtype)
    return train_mode(inputs, None, None, eps, dtype)[1:]


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


def normalise(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    own: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    share: float,
    eps: float,
) -> torch.Tensor:
    """Normalise by statistics of which a share comes from the inputs; with a gradient where one is wanted."""
    needs = (value is not None and value.requires_grad for value in (inputs, weight, bias))
    if torch.is_grad_enabled() and any(needs):
        return _with_gradient(inputs, weight, bias, own, Settings(mean, var, share, eps))
    if not fused.suits(inputs):
        return F.batch_norm(inputs, mean, var, weight, bias, False, 0.0, eps)
    normalisation, out = fused.Normalisation(inputs, mean, var, weight, bias, eps), torch.empty_like(inputs)
    room = deferred.room()
    return normalisation.write(out) if room is None else room.put(deferred.Waiting(out, normalisation))


@dataclass
class Settings:
    """How a layer normalises.

    Attributes:
        mean: to take off, and the variance, `(channels,)`.
        share: of the inputs in both.
        eps: of the layer.
        rectify: whether a ReLU is a part of it, or came next in place; known when the backward pass begins.
    """

    mean: torch.Tensor
    var: torch.Tensor
    share: float
    eps: float
    rectify: bool = False


def _with_gradient(
    inputs: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, own: torch.Tensor, settings: Settings
) -> torch.Tensor:
    """Normalise now, or let the output wait."""
    room = deferred.room() if fused.suits(inputs) else None
    if room is None:
        return BlendedFunction.apply(inputs, weight, bias, own, settings, True)

    def again() -> torch.Tensor:
        return BlendedFunction.apply(inputs, weight, bias, own, replace(settings, rectify=True), True)

    out = BlendedFunction.apply(inputs, weight, bias, own, settings, False)
    normalisation = fused.Normalisation(inputs, settings.mean, settings.var, weight, bias, settings.eps)
    return room.put(deferred.Waiting(out, normalisation, again, settings))


class BlendedFunction(torch.autograd.Function):
    """Normalisation by statistics of which a share comes from the inputs themselves."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        own: torch.Tensor,
        settings: Settings,
        write: bool,
    ) -> torch.Tensor:
        """Normalise `(batch, channels, ...)` as the settings say, if not later; `own` is the mean of the inputs."""
        ctx.save_for_backward(inputs, weight, bias, own, settings.mean, settings.var)
        ctx.settings, ctx.share, ctx.eps = settings, settings.share, settings.eps
        if not write:
            return torch.empty_like(inputs)
        if fused.suits(inputs):
            loops = fused.Normalisation(inputs, settings.mean, settings.var, weight, bias, settings.eps)
            return loops.write(torch.empty_like(inputs), rectify=settings.rectify)
        return F.batch_norm(inputs, settings.mean, settings.var, weight, bias, False, 0.0, settings.eps)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """µ = (1−s)µ₀ + s m(x), v = (1−s)v₀ + s var(x): the direct term, and s times those through m and var."""
        inputs, weight, bias, own, mean, var = ctx.saved_tensors
        if not torch.is_grad_enabled() and fused.suits(inputs):  # a second derivative is left to torch
            return *_fused_backward(ctx, grad), None, None, None
        kind, grad, inputs = grad.dtype, grad.to(mean.dtype), inputs.to(mean.dtype)
        shape = [1, -1, *[1] * (inputs.ndim - 2)]
        dims = [dim for dim in range(inputs.ndim) if dim != 1]
        inverse = (var + ctx.eps).rsqrt()
        centred = inputs - mean.view(shape)
        if ctx.settings.rectify:
            out = F.batch_norm(inputs, mean, var, weight, bias, False, 0.0, ctx.eps)
            grad = grad.masked_fill(out <= 0, 0)
        d_bias = grad.sum(dims)
        d_weight = (grad * centred).sum(dims) * inverse
        scale, through_mean, through_var = _slopes(ctx, d_weight, d_bias, inverse)
        d_inputs = scale.view(shape) * grad + through_mean.view(shape)
        d_inputs += through_var.view(shape) * (inputs - own.view(shape))
        d_affine = (None, None) if weight is None else (d_weight, d_bias)
        return d_inputs.to(kind), *d_affine, None, None, None


def _slopes(
    ctx: Any, d_weight: torch.Tensor, d_bias: torch.Tensor, inverse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradient of an input with respect to its output, and through mean and variance."""
    inputs, weight, *_ = ctx.saved_tensors
    scale = inverse if weight is None else weight * inverse
    share = ctx.share * inputs.shape[1] / inputs.numel()
    return scale, -scale * d_bias * share, -scale * inverse * d_weight * share


def _fused_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """The same in compiled loops: sums in one pass over input and gradient, the gradient of the input in another."""
    inputs, weight, bias, own, mean, var = ctx.saved_tensors
    grad = grad.contiguous(memory_format=torch.channels_last)
    inverse = (var + ctx.eps).rsqrt()
    rectified = fused.Normalisation(inputs, mean, var, weight, bias, ctx.eps) if ctx.settings.rectify else None
    plain, product = fused.gradient_sums(grad, inputs, mean, rectified)
    d_bias, d_weight = plain.sum(0).to(mean.dtype), product.sum(0).to(mean.dtype) * inverse
    d_affine = (None, None) if weight is None else (d_weight, d_bias)
    if not ctx.needs_input_grad[0]:
        return None, *d_affine
    scale, through_mean, through_var = _slopes(ctx, d_weight, d_bias, inverse)
    constant = through_mean - through_var * own
    return fused.combine(grad, inputs, (scale[None], through_var[None], constant[None]), rectified), *d_affine
