"""log Σ_j exp(x_iᵀ y_j) of all pairs of rows, without ever holding the matrix of all pairs.

Products of one block of pairs fit into the processor's cache: they are made, raised and summed there, and meanwhile
their sums with both kinds of points are, which are the gradient where every row counts the same, as in a mean.
Where rows count differently, blocks are made once more for it: points have few dimensions, so that costs less than
bringing a block back from memory. Sums over a block are products of few rows, the dimensions, and many columns, the
points: the library takes four times as long for the same thing turned. Where no product can be large, which the lengths
of the rows tell, the maximum of a row is not looked for.
Cost: for n and m rows of d dimensions, n·m exponentials, and n·m·d products three times; where rows count differently,
twice as many exponentials, and five times.
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
    def forward(ctx: Any, rows: torch.Tensor, others: torch.Tensor, keep: bool) -> torch.Tensor:
        found = rows.new_empty(rows.shape[:2])
        bound = rows.norm(dim=-1).amax() * others.norm(dim=-1).amax()
        small = bool(bound <= SAFE)  # not where it is NaN, which the other way hands on
        mean, weighted = torch.empty_like(rows), torch.zeros_like(others.mT, memory_format=torch.contiguous_format)
        columns = torch.cat([others.mT, others.new_ones(len(others), 1, others.shape[1])], 1)
        for group, part in _blocks(rows, others):
            products = rows[group, part] @ others[group].T
            top = None if small else products.amax(1)
            shares = (products if top is None else products.sub_(top[:, None])).exp_()
            if keep:
                sums = columns[group] @ shares.T  # the last row is the sum of the shares
                total = sums[-1]
                torch.div(sums[:-1].T, total[:, None], out=mean[group, part])
                weighted[group].addmm_(rows[group, part].T / total, shares)
            else:
                total = shares.sum(1)
            found[group, part] = total.log() if top is None else total.log() + top
        if keep:
            ctx.save_for_backward(rows, others, found, mean, weighted.mT)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        rows, others, found, mean, weighted = ctx.saved_tensors
        of_rows = mean * gradient[..., None]
        first = gradient.reshape(-1)[0]
        if bool((gradient == first).all()):  # every row counts the same, as in a mean
            return of_rows, weighted * first, None
        of_others = torch.zeros_like(others.mT, memory_format=torch.contiguous_format)
        shifted = torch.cat([rows, -found[..., None]], -1)
        columns = torch.cat([others, others.new_ones(*others.shape[:2], 1)], -1)
        weighted = (rows * gradient[..., None]).mT
        for group, part in _blocks(rows, others):
            shares = (shifted[group, part] @ columns[group].T).exp_()  # the softmax of a row
            of_others[group].addmm_(weighted[group, :, part], shares)
        return of_rows, of_others.mT, None


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
    keep = torch.is_grad_enabled() and (rows.requires_grad or others.requires_grad)
    found: torch.Tensor = _LogSumExp.apply(*flat, keep)
    return found.reshape(*groups, -1)


def _blocks(rows: torch.Tensor, others: torch.Tensor) -> Iterator[tuple[int, slice]]:
    """Yield groups, and rows of them whose products fit into a block."""
    size = max((BLOCK if rows.device.type == "cpu" else DEVICE_BLOCK) // max(others.shape[1], 1), 1)
    for group in range(len(rows)):
        for start in range(0, rows.shape[1], size):
            yield group, slice(start, start + size)
