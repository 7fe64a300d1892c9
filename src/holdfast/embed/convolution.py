"""Convolution over one long sequence as products of matrices, time first.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. On a CPU this is faster than the
library's convolution, which is made for many short sequences. The gradient is made of operations that have gradients.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(sequence: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        out = sequence.new_empty(len(sequence) - _kernel(sequence, weight) + 1, len(weight))
        for phase, part in _phases(sequence, weight):
            torch.addmm(bias, part, weight.T, out=out[phase])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        sequence, weight = ctx.saved_tensors
        of_weight = torch.stack([gradient[phase].T @ part for phase, part in _phases(sequence, weight)]).sum(0)
        of_sequence = None
        if ctx.needs_input_grad[0]:
            of_sequence = torch.zeros_like(sequence)
            for phase, part in _phases(of_sequence, weight):
                part.addmm_(gradient[phase], weight)
        return of_sequence, of_weight, gradient.sum(0)


def convolve(sequence: torch.Tensor, layer: nn.Conv1d) -> torch.Tensor:
    """What a convolution of stride 1 without padding makes of a sequence.

    Args:
        sequence: `(time, channels)`.
        layer: with a bias.

    Returns:
        `(time − kernel + 1, outputs)`.
    """
    return _Convolve.apply(sequence.contiguous(), layer.weight.transpose(1, 2).flatten(1), layer.bias)


def _kernel(sequence: torch.Tensor, weight: torch.Tensor) -> int:
    return weight.shape[1] // sequence.shape[1]


def _phases(sequence: torch.Tensor, weight: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """For each phase which rows of the output it gives, and the matrix `(rows, kernel * channels)` of their windows."""
    kernel = _kernel(sequence, weight)
    places = len(sequence) - kernel + 1
    for phase in range(min(kernel, places)):
        rows = len(range(phase, places, kernel))
        yield slice(phase, None, kernel), sequence[phase : phase + rows * kernel].view(rows, -1)
