"""Convolution over one long sequence, or many short windows, as products of matrices; channels last.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. So are the rows `p` to `p + k − 1` of
every window. On a CPU this is faster than the library's convolution, which wants channels first. Faster yet, with
vectors of 512 bits and numba, are compiled products that take overlapping rows as they are (see `tiles`). Nothing here
is recorded for gradients: `stack` puts layers and their gradients together.
"""

import logging
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from haptera.contrastive.gelu import activate, loops_for, weigh
from haptera.errors import first_line

log = logging.getLogger("haptera")


def convolve(sequence: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Fill `out` with the convolution of stride 1, without padding and without its bias.

    Args:
        sequence: `(time, channels)`, or windows `(batch, time, channels)`.
        matrix: `(outputs, kernel * channels)`.
        out: `(..., time − kernel + 1, outputs)`.
    """
    columns = matrix.T.contiguous()  # quicker than a transposed matrix
    if (tiles := _tiles_for(out, sequence, columns)) is not None:
        tiles.convolve(_blocks(sequence), columns.detach().numpy(), _blocks(out))
        return out
    for phase, part in _phases(sequence, out):
        torch.mm(part, columns, out=out[phase])
    return out


def gradient_of_matrix(gradient: torch.Tensor, sequence: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the matrix, `(outputs, kernel * channels)`."""
    if (tiles := _tiles_for(gradient, sequence)) is not None:
        columns = _room(gradient, sequence)
        tiles.gradient_of_columns(_blocks(gradient), _blocks(sequence), columns.numpy())
        return columns.T
    (phase, part), *others = _phases(sequence, gradient)
    found = gradient[phase].T @ part
    for phase, part in others:
        found.addmm_(gradient[phase].T, part)
    return found


def fill_layer(
    sequence: torch.Tensor,
    matrix: torch.Tensor,
    bias: torch.Tensor,
    shortcut: torch.Tensor | None,
    values: torch.Tensor,
    out: torch.Tensor,
) -> ModuleType | None:
    """Convolve a sequence into `values`, and go on as `activate` does; return its loops."""
    loops = loops_for(values)
    tiles = _tiles_for(values, sequence, out)
    if tiles is None or (shortcut is not None and not shortcut.is_contiguous()) or values.ndim == 3:
        activate(loops, convolve(sequence, matrix, values), bias, shortcut, out)
        return loops
    added = out.new_empty(1, 0, 1) if shortcut is None else shortcut
    columns, constant = matrix.T.contiguous().detach().numpy(), bias.detach().numpy()
    tiles.fill_layer(_blocks(sequence), columns, constant, _blocks(added), _blocks(values), _blocks(out))
    return loops


def weigh_layer(
    loops: ModuleType | None, kept: torch.Tensor, gradient: torch.Tensor, sequence: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `weigh` does; return the gradient of the matrix as above, and that of the bias."""
    tiles = _tiles_for(kept, gradient, sequence)
    if tiles is None or loops is None or kept.ndim == 3:
        of_bias = weigh(loops, kept, gradient)
        return gradient_of_matrix(kept, sequence), of_bias
    columns, of_bias = _room(kept, sequence), kept.new_empty(kept.shape[-1])
    given = _blocks(kept), _blocks(gradient), _blocks(sequence)
    tiles.weigh_layer(*given, columns.numpy(), of_bias.numpy())
    return columns.T, of_bias


def gradient_of_sequence(
    gradient: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor, shortcut: torch.Tensor | None = None
) -> torch.Tensor:
    """Fill `out`, which has the shape of the sequence, with its gradient; add a shortcut to all but its ends."""
    added = out.new_empty(1, 0, 1) if shortcut is None else shortcut
    if (tiles := _tiles_for(out, gradient, added)) is not None:
        outputs, channels = gradient.shape[-1], out.shape[-1]
        turned = matrix.detach().view(outputs, -1, channels).flip(1).transpose(0, 1).reshape(-1, channels)
        tiles.gradient_of_sequence(_blocks(gradient), turned.numpy(), _blocks(added), _blocks(out))
        return out
    (phase, part), *others = _phases(out, gradient)
    torch.mm(gradient[phase], matrix, out=part)
    covered = (part[0] if out.ndim == 3 else part).numel() // out.shape[-1]
    out[..., covered:, :] = 0
    for phase, part in others:
        part.addmm_(gradient[phase], matrix)
    if shortcut is not None:
        out[..., 1:-1, :].add_(shortcut)
    return out


def _phases(sequence: torch.Tensor, outputs: torch.Tensor) -> Iterator[tuple[Any, torch.Tensor]]:
    """Yield parts of the outputs, and for each the matrix `(rows, kernel * channels)` that gives it."""
    places = outputs.shape[-2]
    kernel = sequence.shape[-2] - places + 1
    for phase in range(min(kernel, places) if sequence.ndim == 2 else places):
        if sequence.ndim == 2:
            rows = len(range(phase, places, kernel))
            yield slice(phase, None, kernel), sequence[phase : phase + rows * kernel].view(rows, -1)
        else:
            yield (slice(None), phase), sequence[:, phase : phase + kernel].flatten(1)


@cache
def _tiles() -> ModuleType | None:
    """Return the compiled products; None where vectors are shorter than they are made for, or they do not import."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    try:
        from haptera.contrastive import tiles
    except Exception as error:  # as of the loops: what it builds on changes with numba's versions
        log.info("convolutions go through the library, since their tiles do not import: %s", first_line(error))
        return None
    return tiles


def _tiles_for(wide: torch.Tensor, *others: torch.Tensor) -> ModuleType | None:
    """Return the compiled products if they are for these, of which the first has the columns of the result's tiles."""
    if loops_for(wide) is None or (tiles := _tiles()) is None or wide.shape[-1] % tiles.WIDTH:
        return None
    return tiles if all(one.is_contiguous() for one in (wide, *others)) else None


def _room(gradient: torch.Tensor, sequence: torch.Tensor) -> torch.Tensor:
    """Memory for the gradient of the columns, `(kernel * channels, outputs)`."""
    kernel = sequence.shape[-2] - gradient.shape[-2] + 1
    return gradient.new_empty(kernel * sequence.shape[-1], gradient.shape[-1])


def _blocks(values: torch.Tensor) -> np.ndarray:
    """`(batch, time, channels)`."""
    found: np.ndarray = values.detach().numpy()
    return found if found.ndim == 3 else found[None]
