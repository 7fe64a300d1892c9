"""Convolution over one long sequence, or many short windows, as products of matrices; channels last.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. So are the rows `p` to `p + k − 1` of
every window. On a CPU this is faster than the library's convolution, which wants channels first. A skip block is one
operation with one gradient, which spares it four passes over the sequence. Gradients are made of operations that have
gradients.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(sequence: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        out = sequence.new_empty(*sequence.shape[:-2], _places(sequence, weight), len(weight))
        columns = weight.T.contiguous()  # quicker than a transposed matrix, and than the bias in the product
        for phase, part in _phases(sequence, weight):
            torch.mm(part, columns, out=out[phase])
        return out.add_(bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        sequence, weight = ctx.saved_tensors
        of_sequence = None
        if ctx.needs_input_grad[0]:
            of_sequence = _add_transposed(torch.zeros_like(sequence), gradient, weight)
        return of_sequence, _of_weight(gradient, sequence, weight), gradient.flatten(0, -2).sum(0)


class _SkipBlock(torch.autograd.Function):
    """Gives the convolution beside the block's output, so that the gradient of its gradient goes through it."""

    @staticmethod
    def forward(sequence: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = _Convolve.forward(sequence, weight, bias)
        return F.gelu(before).add_(sequence[..., 1:-1, :]), before

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:2], output[1])

    @staticmethod
    def backward(
        ctx: Any, gradient: torch.Tensor | None, of_before: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        sequence, weight, before = ctx.saved_tensors
        if gradient is None and of_before is None:
            return None, None, None
        gradient = torch.zeros_like(before) if gradient is None else gradient
        inner = torch.ops.aten.gelu_backward(gradient, before)
        if of_before is not None:
            inner = inner + of_before
        of_sequence = _add_transposed(F.pad(gradient, (0, 0, 1, 1)), inner, weight)
        return of_sequence, _of_weight(inner, sequence, weight), inner.flatten(0, -2).sum(0)


def convolve(sequence: torch.Tensor, layer: nn.Conv1d) -> torch.Tensor:
    """What a convolution of stride 1 without padding makes of a sequence.

    Args:
        sequence: `(time, channels)`, or windows `(batch, time, channels)`.
        layer: with a bias.

    Returns:
        `(..., time − kernel + 1, outputs)`.
    """
    return _Convolve.apply(sequence.contiguous(), _matrix(layer), layer.bias)


def skip_block(sequence: torch.Tensor, layer: nn.Conv1d) -> torch.Tensor:
    """The sequence without its ends, plus the GELU of its convolution of 3.

    Args:
        sequence: `(time, channels)`, or windows `(batch, time, channels)`.
        layer: with a bias, and as many outputs as channels.

    Returns:
        `(..., time − 2, channels)`.
    """
    found: torch.Tensor = _SkipBlock.apply(sequence.contiguous(), _matrix(layer), layer.bias)[0]
    return found


def _matrix(layer: nn.Conv1d) -> torch.Tensor:
    """`(outputs, kernel * channels)`."""
    return layer.weight.transpose(1, 2).flatten(1)


def _of_weight(gradient: torch.Tensor, sequence: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    (phase, part), *others = _phases(sequence, weight)
    found = gradient[phase].T @ part
    for phase, part in others:
        found = found.addmm_(gradient[phase].T, part)
    return found


def _add_transposed(onto: torch.Tensor, gradient: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Add what a gradient of the outputs is for the sequence."""
    for phase, part in _phases(onto, weight):
        part.addmm_(gradient[phase], weight)
    return onto


def _places(sequence: torch.Tensor, weight: torch.Tensor) -> int:
    return sequence.shape[-2] - weight.shape[1] // sequence.shape[-1] + 1


def _phases(sequence: torch.Tensor, weight: torch.Tensor) -> Iterator[tuple[Any, torch.Tensor]]:
    """Parts of the output, and for each the matrix `(rows, kernel * channels)` that gives it."""
    places = _places(sequence, weight)
    kernel = sequence.shape[-2] - places + 1
    for phase in range(min(kernel, places) if sequence.ndim == 2 else places):
        if sequence.ndim == 2:
            rows = len(range(phase, places, kernel))
            yield slice(phase, None, kernel), sequence[phase : phase + rows * kernel].view(rows, -1)
        else:
            yield (slice(None), phase), sequence[:, phase : phase + kernel].flatten(1)
