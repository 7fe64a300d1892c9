"""Normalisation by statistics of which a share comes from the inputs themselves, and its gradient.

Large images with channels last on one thread go through compiled loops (`fused.py`), and their output may wait for the
ReLU after them (`deferred.py`); everything else goes through torch's operations.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional as F

from haptera.adapters import deferred, fused
from haptera.adapters.waiting import Waiting


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
    return normalisation.write(out) if room is None else room.put(Waiting(out, normalisation))


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
    return room.put(Waiting(out, normalisation, again, settings))


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
        d_affine = (None if weight is None else d_weight, None if bias is None else d_bias)
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
    d_affine = (None if weight is None else d_weight, None if bias is None else d_bias)
    if not ctx.needs_input_grad[0]:
        return None, *d_affine
    scale, through_mean, through_var = _slopes(ctx, d_weight, d_bias, inverse)
    constant = through_mean - through_var * own
    return fused.combine(grad, inputs, (scale[None], through_var[None], constant[None]), rectified), *d_affine
