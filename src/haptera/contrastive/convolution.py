"""Convolution over one long sequence, or many short windows, as products of matrices; channels last.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. So are the rows `p` to `p + k − 1` of
every window. On a CPU this is faster than the library's convolution, which wants channels first. Faster yet, with
vectors of 512 bits and numba, are compiled products that take overlapping rows as they are (see `tiles`). Nothing here
is recorded for gradients: `stack` puts layers and their gradients together.
"""

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from haptera.contrastive.gelu import loops_for


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
        columns = gradient.new_empty(
            (sequence.shape[-2] - gradient.shape[-2] + 1) * sequence.shape[-1], gradient.shape[-1]
        )
        tiles.gradient_of_columns(_blocks(gradient), _blocks(sequence), columns.numpy())
        return columns.T
    (phase, part), *others = _phases(sequence, gradient)
    found = gradient[phase].T @ part
    for phase, part in others:
        found.addmm_(gradient[phase].T, part)
    return found


def gradient_of_sequence(gradient: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Fill `out`, which has the shape of the sequence, with its gradient."""
    if (tiles := _tiles_for(out, gradient)) is not None:
        outputs, channels = gradient.shape[-1], out.shape[-1]
        turned = matrix.detach().view(outputs, -1, channels).flip(1).transpose(0, 1).reshape(-1, channels)
        tiles.gradient_of_sequence(_blocks(gradient), turned.numpy(), _blocks(out))
        return out
    (phase, part), *others = _phases(out, gradient)
    torch.mm(gradient[phase], matrix, out=part)
    covered = (part[0] if out.ndim == 3 else part).numel() // out.shape[-1]
    out[..., covered:, :] = 0
    for phase, part in others:
        part.addmm_(gradient[phase], matrix)
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
    """Return the compiled products; None where vectors are shorter than they are made for."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    from haptera.contrastive import tiles

    return tiles


def _tiles_for(wide: torch.Tensor, *others: torch.Tensor) -> ModuleType | None:
    """Return the compiled products if they are for these, of which the first has the columns of the result's tiles."""
    if loops_for(wide) is None or (tiles := _tiles()) is None or wide.shape[-1] % tiles.WIDTH:
        return None
    return tiles if all(one.is_contiguous() for one in (wide, *others)) else None


def _blocks(values: torch.Tensor) -> np.ndarray:
    """`(batch, time, channels)`."""
    found: np.ndarray = values.detach().numpy()
    return found if found.ndim == 3 else found[None]
