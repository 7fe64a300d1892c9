"""Instance statistics: every image is normalised by a mean and a variance that its own moments have a part in.

NOTE, Un-mixing TNS and TTAug have such layers in the place of BatchNorm; they differ in how statistics follow from the
moments of the images. That rule works on small tensors `(batch, channels)` and is differentiated by torch. What goes
over the images is written out here: with x the input of a layer, m and s² its moments over n positions, the output is
x a + b with a, b from the rule, and for a gradient g of the output, dx = g a + dm/n + 2 ds² (x − m)/n, where dm and ds²
are the rule's, for Σ g x and Σ g.
Cost: forward, two passes over the input for the moments and one or two to normalise, about as much as torch's fused
BatchNorm on the statistics of a batch; backward, five passes. Holds the input for the backward pass and nothing else.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from haptera.adapters import fused

Rule = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def normalise_each(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
    dtype: torch.dtype,
    rule: Rule,
) -> torch.Tensor:
    """Normalise and scale each image by statistics of its own.

    Args:
        inputs: `(batch, channels, ...)`.
        weight: of the channels.
        bias: likewise.
        eps: what is added to variances.
        dtype: of the statistics.
        rule: from means and biased variances of the images over positions, `(batch, channels)`, to those to use; called
            once, so that it may keep them.
    """
    needs = (value is not None and value.requires_grad for value in (inputs, weight, bias))
    if torch.is_grad_enabled() and any(needs):
        return InstanceFunction.apply(inputs, weight, bias, eps, dtype, rule)
    values, last = _by_position(inputs, dtype)
    scale, offset = _affine(*rule(*moments(values, last)), weight, bias, eps)
    return _restore(_scaled(values, scale, offset, last), inputs, last)


def moments(values: torch.Tensor, last: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance `(batch, channels)` over positions, which are dimension 1 where channels are last, or 2.

    In two passes, which are some twenty times as fast as `torch.var_mean`, or in a compiled loop.
    """
    if last and fused.suits(values, positions=True):
        mean, var = fused.image_moments(values)
        return mean.to(values.dtype), var.to(values.dtype)
    over = 1 if last else 2
    mean = values.mean(over, keepdim=True)
    return mean.squeeze(over), (values - mean).square_().mean(over)


class InstanceFunction(torch.autograd.Function):
    """`normalise_each` with a gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        dtype: torch.dtype,
        rule: Rule,
    ) -> torch.Tensor:
        """Normalise, and keep the graph of the rule."""
        values, last = _by_position(inputs, dtype)
        mean, var = (each.requires_grad_() for each in moments(values, last))
        weight, bias = (None if each is None else each.detach().requires_grad_() for each in (weight, bias))
        with torch.enable_grad():
            ends = _affine(*rule(mean, var), weight, bias, eps)
        ctx.leaves, ctx.ends, ctx.last = (mean, var, weight, bias), ends, last
        ctx.save_for_backward(inputs)
        return _restore(_scaled(values, ends[0].detach(), ends[1].detach(), last), inputs, last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the inputs, weight and bias."""
        (inputs,) = ctx.saved_tensors
        dtype, last = ctx.ends[0].dtype, ctx.last
        values, _ = _by_position(inputs, dtype, last)
        grads, _ = _by_position(grad, dtype, last)
        over = 1 if last else 2
        if loops := last and fused.suits(values, positions=True) and grads.is_contiguous():
            plain, product = fused.gradient_sums(grads, values, values.new_zeros(values.shape[2]))
            through = [product.to(dtype), plain.to(dtype)]
        else:
            through = [(grads * values).sum(over), grads.sum(over)]
        known = [leaf for leaf in ctx.leaves if leaf is not None]
        d_mean, d_var, *d_affine = torch.autograd.grad(
            ctx.ends, known, through, retain_graph=True, materialize_grads=True
        )
        found = iter(d_affine)
        others = (*(None if leaf is None else next(found) for leaf in ctx.leaves[2:]), None, None, None)
        if not ctx.needs_input_grad[0]:
            return None, *others
        n = values.shape[over]
        slope = d_var * (2 / n)
        constant = d_mean / n - slope * ctx.leaves[0].detach()
        if loops:
            d_values = fused.combine(grads, values, (ctx.ends[0].detach(), slope, constant))
            return _restore(d_values, inputs, last), *others
        d_values = _scaled(values, slope, constant, last)
        d_values.addcmul_(grads, ctx.ends[0].detach().unsqueeze(over))
        return _restore(d_values, inputs, last), *others


def _by_position(inputs: torch.Tensor, dtype: torch.dtype, last: bool | None = None) -> tuple[torch.Tensor, bool]:
    """`(batch, positions, channels)` where channels are last in memory, else `(batch, channels, positions)`; and which.

    The layout may be given, as that of a gradient is.
    """
    if last is None:
        last = inputs.ndim == 4 and not inputs.is_contiguous()
    if last:
        return inputs.permute(0, 2, 3, 1).flatten(1, 2).to(dtype), True
    return (inputs[..., None] if inputs.ndim == 2 else inputs.flatten(2)).to(dtype), False


def _restore(values: torch.Tensor, like: torch.Tensor, last: bool) -> torch.Tensor:
    """Return what `_by_position` made of a tensor to the shape and type of that."""
    if last:
        return values.unflatten(1, like.shape[2:]).permute(0, 3, 1, 2).to(like.dtype)
    return values.reshape(like.shape).to(like.dtype)


def _affine(
    mean: torch.Tensor, var: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and offset `(batch, channels)` that normalise by statistics, and by weight and bias."""
    scale = (var + eps).rsqrt() if weight is None else (var + eps).rsqrt() * weight
    return scale, -mean * scale if bias is None else bias - mean * scale


def _scaled(values: torch.Tensor, scale: torch.Tensor, offset: torch.Tensor, last: bool) -> torch.Tensor:
    """Values times scale plus offset; in one pass where channels are last, since it is slower than two elsewhere."""
    if last and fused.suits(values, positions=True):
        return fused.scale(values, scale, offset)
    if last:
        return torch.addcmul(offset[:, None], values, scale[:, None])
    return (values * scale[..., None]).add_(offset[..., None])
