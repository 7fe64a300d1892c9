"""log Σ_j exp(x_iᵀ y_j) of all pairs of rows, without ever holding the matrix of all pairs.

Products of one block of pairs fit into the processor's cache: they are made, raised and summed there, and made once
more for the gradient, in which their sums are one more column of the product. Points have few dimensions, so making a
block again costs less than bringing it back from memory. Where no product can be large, which the lengths of the rows
tell, the maximum of a row is not looked for.
Cost: for n and m rows of d dimensions, two times n·m exponentials, and n·m·d products four times.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.function import once_differentiable

BLOCK, DEVICE_BLOCK = 2**17, 2**24
"""Pairs that are held at once, on a CPU and on another device."""
SAFE = 40.0
"""Logarithm up to which 32-bit numbers, and sums of very many of them, are far from their ends."""


class _LogSumExp(torch.autograd.Function):
    """Of `(groups, rows, dimensions)` and `(groups, others, dimensions)`."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        found = rows.new_empty(rows.shape[:2])
        bound = rows.norm(dim=-1).amax() * others.norm(dim=-1).amax()
        small = bool(bound <= SAFE)  # not where it is NaN, which the other way hands on
        for group, part in _blocks(rows, others):
            products = rows[group, part] @ others[group].T
            if small:
                found[group, part] = products.exp_().sum(1).log_()
            else:
                top = products.amax(1)
                found[group, part] = products.sub_(top[:, None]).exp_().sum(1).log_().add_(top)
        ctx.save_for_backward(rows, others, found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, others, found = ctx.saved_tensors
        of_rows, of_others = torch.empty_like(rows), torch.zeros_like(others)
        shifted = torch.cat([rows, -found[..., None]], -1)
        columns = torch.cat([others, others.new_ones(*others.shape[:2], 1)], -1)
        weighted = rows * gradient[..., None]
        for group, part in _blocks(rows, others):
            shares = (shifted[group, part] @ columns[group].T).exp_()  # the softmax of a row
            of_rows[group, part] = shares @ others[group]
            of_others[group].addmm_(shares.T, weighted[group, part])
        return of_rows.mul_(gradient[..., None]), of_others


def log_sum_of_products(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return `(rows @ others.T).logsumexp(-1)`, with a gradient that has none itself.

    Args:
        rows: `(..., rows, dimensions)`; what comes before is groups that do not see each other.
        others: `(..., others, dimensions)`.

    >>> log_sum_of_products(torch.zeros(2, 3), torch.ones(4, 3)).exp()
    tensor([4., 4.])
    """
    groups = rows.shape[:-2]
    flat = (rows.reshape(-1, *rows.shape[-2:]), others.reshape(-1, *others.shape[-2:]))
    found: torch.Tensor = _LogSumExp.apply(*flat)
    return found.reshape(*groups, -1)


def _blocks(rows: torch.Tensor, others: torch.Tensor) -> Iterator[tuple[int, slice]]:
    """Yield groups, and rows of them whose products fit into a block."""
    size = max((BLOCK if rows.device.type == "cpu" else DEVICE_BLOCK) // max(others.shape[1], 1), 1)
    for group in range(len(rows)):
        for start in range(0, rows.shape[1], size):
            yield group, slice(start, start + size)
