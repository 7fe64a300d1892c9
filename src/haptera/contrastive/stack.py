"""All layers of a convolutional encoder as one operation with one gradient, on a CPU, channels last.

A convolution, skip blocks with convolutions of 3, and a last convolution: the layers of `encoder.ConvolutionalEncoder`.
Activations are views of one buffer, which a `Pool` lends again once the gradient is known, so that a step of training
asks the system for no memory; in the gradient, what a layer gave makes place for the gradient of it. The samples that
are wanted are taken from the signal here, for the same reason. The gradient has no gradient itself.
Cost: activations twice for each layer; without gradients, those of two layers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from haptera.contrastive.convolution import (
    LIKE,
    convolve,
    fill_layer,
    gradient_of_matrix,
    gradient_of_sequence,
    weigh_layer,
)
from haptera.contrastive.gelu import add_windows, weigh

SPARE = 1.1
"""Room of a new buffer over what is asked for: batches differ in how many samples they have."""


class Pool:
    """Buffers that are not in use."""

    def __init__(self) -> None:
        self._free: list[torch.Tensor] = []

    def take(self, size: int, like: torch.Tensor) -> torch.Tensor:
        """Return a flat buffer of at least this size, which is the caller's until it is given back."""
        for number, buffer in enumerate(self._free):
            if len(buffer) >= size and buffer.dtype == like.dtype:
                return self._free.pop(number)
        if self._free:
            self._free.pop()  # too small, so the new one takes its place
        return like.new_empty(int(size * SPARE))

    def give(self, buffer: torch.Tensor) -> None:
        """Take it back."""
        self._free.append(buffer)


def encode(
    source: torch.Tensor,
    layers: Sequence[nn.Conv1d],
    *,
    chosen: torch.Tensor | None = None,
    rows: torch.Tensor | None = None,
    pool: Pool | None = None,
) -> torch.Tensor:
    """Return points `(places, dimensions)` of a sequence, not yet of unit length.

    Args:
        source: `(samples, channels)`.
        layers: the first one, those of the skip blocks, and the last one; each with a bias.
        chosen: samples that make up the sequence; None is all of them.
        rows: places that are wanted; None is all of them.
        pool: lends the buffer.
    """
    if source.requires_grad and chosen is not None:
        source, chosen = source.index_select(0, chosen), None
    if chosen is not None and rows is not None:  # no place that is wanted sees what comes after the last sample
        chosen = torch.cat([chosen, chosen[-1:].expand(-len(chosen) % LIKE)])
    weights = [part for layer in layers for part in (layer.weight, layer.bias)]
    keep = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in (source, *weights))
    found: torch.Tensor = _Stack.apply(source, chosen, rows, pool or Pool(), keep, *weights)
    return found


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        source: torch.Tensor,
        chosen: torch.Tensor | None,
        rows: torch.Tensor | None,
        pool: Pool,
        keep: bool,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        (stem, stem_bias), *blocks, (last, last_bias) = _pairs(weights)
        time, channels = (len(source) if chosen is None else len(chosen)), source.shape[1]
        places, reach = time - stem.shape[2] + 1, last.shape[2]
        # The last blocks run only where a point sees them, if that is less than everywhere.
        wanted = places if rows is None else len(rows)
        alone = 0 if rows is None else sum((reach + 2 * more) * wanted < places for more in range(len(blocks)))
        shapes = _shapes(places, wanted, reach, len(blocks), None if rows is None else alone)
        buffer = pool.take(_size(shapes, len(stem), keep) + (chosen is not None) * time * channels, source)
        views = _views(buffer, shapes, len(stem), keep)
        sequence = source.contiguous()
        if chosen is not None:
            sequence = buffer[-time * channels :].view(time, channels)
            torch.index_select(source, 0, chosen, out=sequence)
        kept: list[Any] = []
        hidden = whole = sequence
        for number, (weight, bias) in enumerate([(stem, stem_bias), *blocks]):
            if rows is not None and number == len(blocks) - alone + 1:
                hidden = _gather(whole, rows, next(views))
            slope, out = next(views), next(views)
            loops = fill_layer(hidden, _matrix(weight), bias, hidden if number else None, slope, out)
            kept.append((loops, hidden, slope))
            hidden = out
            whole = out if out.ndim == 2 else whole
        if rows is not None and not alone:
            hidden = _gather(whole, rows, next(views))
        found = hidden.new_empty(*hidden.shape[:-2], hidden.shape[-2] - reach + 1, len(last))
        found = convolve(hidden, _matrix(last), found).add_(last_bias)
        if keep:
            ctx.save_for_backward(*weights)
            ctx.kept, ctx.hidden, ctx.whole, ctx.rows, ctx.lent = kept, hidden, whole, rows, (pool, buffer)
        else:
            pool.give(buffer)
        return found if rows is None else found[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if ctx.lent is None:
            raise RuntimeError("the gradient was already asked for, and what it needs is gone; encode once more")
        needed = ctx.needs_input_grad[5:]
        pairs = _pairs(ctx.saved_tensors)
        gradient = (gradient if ctx.rows is None else gradient[:, None]).contiguous()
        found: list[torch.Tensor | None] = [None] * len(needed)

        def note(number: int, of_matrix: torch.Tensor | None, of_bias: torch.Tensor) -> None:
            if of_matrix is not None:
                weight = pairs[number][0]
                found[2 * number] = of_matrix.view(len(weight), weight.shape[2], -1).transpose(1, 2).contiguous()
            found[2 * number + 1] = of_bias

        of_matrix = gradient_of_matrix(gradient, ctx.hidden) if needed[-2] else None
        note(len(pairs) - 1, of_matrix, gradient.flatten(0, -2).sum(0))
        gradient = gradient_of_sequence(gradient, _matrix(pairs[-1][0]), ctx.hidden)
        of_source = None
        for number in reversed(range(len(pairs) - 1)):
            loops, sequence, kept = ctx.kept[number]
            if gradient.ndim == 3 and kept.ndim == 2:
                add_windows(loops, ctx.whole.zero_(), ctx.rows, gradient)
                gradient = ctx.whole
            if needed[2 * number]:
                note(number, *weigh_layer(loops, kept, gradient, sequence))
            else:
                note(number, None, weigh(loops, kept, gradient))
            if number:
                gradient = gradient_of_sequence(kept, _matrix(pairs[number][0]), sequence, gradient)
            elif ctx.needs_input_grad[0]:
                of_source = gradient_of_sequence(kept, _matrix(pairs[0][0]), torch.empty_like(sequence))
        pool, buffer = ctx.lent
        ctx.kept = ctx.hidden = ctx.whole = ctx.lent = None
        pool.give(buffer)
        return of_source, None, None, None, None, *found


def _gather(hidden: torch.Tensor, rows: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Fill `out` with windows `(rows, positions, channels)`."""
    places = (rows[:, None] + torch.arange(out.shape[1])).flatten()
    torch.index_select(hidden, 0, places, out=out.view(-1, out.shape[2]))
    return out


def _matrix(weight: torch.Tensor) -> torch.Tensor:
    """`(outputs, kernel * channels)`."""
    return weight.transpose(1, 2).flatten(1)


def _pairs(weights: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(weights[::2], weights[1::2], strict=True))


def _shapes(places: int, wanted: int, reach: int, blocks: int, alone: int | None) -> list[tuple[int, ...]]:
    """Shapes, less their channels, of activations in their order: of every layer before and after its GELU."""
    together = blocks if alone is None else blocks - alone
    found: list[tuple[int, ...]] = [(places - 2 * number,) for number in range(together + 1) for _ in range(2)]
    if alone is not None:
        found.append((wanted, reach + 2 * alone))
        found += [(wanted, reach + 2 * more) for more in reversed(range(alone)) for _ in range(2)]
    return found


def _size(shapes: Sequence[tuple[int, ...]], hidden: int, keep: bool) -> int:
    sizes = [hidden * torch.Size(shape).numel() for shape in shapes]
    return sum(sizes) if keep else 3 * max(sizes)


def _views(buffer: torch.Tensor, shapes: Sequence[tuple[int, ...]], hidden: int, keep: bool) -> Iterator[torch.Tensor]:
    """Yield views of a buffer; without `keep` every one takes the place of the third before it."""
    biggest, start = _size(shapes, hidden, False) // 3, 0
    for number, shape in enumerate(shapes):
        size = hidden * torch.Size(shape).numel()
        first = start if keep else number % 3 * biggest
        yield buffer[first : first + size].view(*shape, hidden)
        start += size
