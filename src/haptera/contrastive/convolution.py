"""Convolution over one long sequence, or many short windows, as products of matrices; channels last.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. So are the rows `p` to `p + k − 1` of
every window. With vectors of 512 bits and numba, compiled products that take overlapping rows as they are come first
(see `tiles`): they are 2.6 times as quick. Elsewhere the library's convolution of images of height 1, channels last, is
quicker where there are enough of them (2.5 times on a processor with AVX-512 on which products use AVX2, 1.3 times with
AVX2), but not its gradient of the weights. It makes ready for every new shape, in half a millisecond, so lengths should
come again (`LIKE`).
Nothing here is recorded for gradients: `stack` puts layers and their gradients together.
"""

import logging
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from haptera.contrastive.gelu import activate, loops_for, weigh
from haptera.errors import first_line
from haptera.extras import import_loops

log = logging.getLogger("haptera")

LEAST = 2**16
"""Values that a convolution gives, from which on the library's is used."""
NARROW = 16
"""Channels that it must have on either side."""
LIKE = 64
"""Lengths of sequences are best multiples of this."""


def convolve(sequence: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Return the convolution of stride 1, without padding and without its bias, in `out` or in memory of its own.

    Args:
        sequence: `(time, channels)`, or windows `(batch, time, channels)`.
        matrix: `(outputs, kernel * channels)`.
        out: `(..., time − kernel + 1, outputs)`.
    """
    columns = matrix.T.contiguous()  # quicker than a transposed matrix
    if (tiles := _tiles_for(out, sequence, columns)) is not None:
        tiles.convolve(_blocks(sequence), columns.detach().numpy(), _blocks(out))
        return out
    if _by_library(sequence, out):
        weight = matrix.view(len(matrix), 1, -1, sequence.shape[-1]).permute(0, 3, 1, 2)
        return _library(sequence, weight, 0)
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
    slope: torch.Tensor,
    out: torch.Tensor,
) -> ModuleType | None:
    """Convolve a sequence, and go on as `activate` does, whose `kept` is the slope; return its loops."""
    loops = loops_for(out)
    tiles = _tiles_for(slope, sequence, out)
    if tiles is None or (shortcut is not None and not shortcut.is_contiguous()):
        activate(loops, convolve(sequence, matrix, slope), bias, shortcut, slope, out)
        return loops
    added = out.new_empty(1, 0, 1) if shortcut is None else shortcut
    columns, constant = matrix.T.contiguous().detach().numpy(), bias.detach().numpy()
    tiles.fill_layer(_blocks(sequence), columns, constant, _blocks(added), _blocks(slope), _blocks(out))
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
    """Return the gradient of the sequence, with a shortcut added to all but its ends.

    It is in `out`, which has its shape, or in memory of its own.
    """
    added = out.new_empty(1, 0, 1) if shortcut is None else shortcut
    if (tiles := _tiles_for(out, gradient, added)) is not None:
        outputs, channels = gradient.shape[-1], out.shape[-1]
        turned = matrix.detach().view(outputs, -1, channels).flip(1).transpose(0, 1).reshape(-1, channels)
        tiles.gradient_of_sequence(_blocks(gradient), turned.numpy(), _blocks(added), _blocks(out))
        return out
    found = _sequence_by_library(gradient, matrix, out)
    if shortcut is not None:
        found[..., 1:-1, :].add_(shortcut)
    return found


def _sequence_by_library(gradient: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    if _by_library(gradient, out):
        parts = matrix.view(len(matrix), 1, -1, out.shape[-1])
        turned = parts.flip(2).permute(3, 1, 2, 0).contiguous()  # as if stored with channels last
        return _library(gradient, turned.permute(0, 3, 1, 2), parts.shape[2] - 1)
    (phase, part), *others = _phases(out, gradient)
    torch.mm(gradient[phase], matrix, out=part)
    covered = (part[0] if out.ndim == 3 else part).numel() // out.shape[-1]
    out[..., covered:, :] = 0
    for phase, part in others:
        part.addmm_(gradient[phase], matrix)
    return out


def _by_library(given: torch.Tensor, out: torch.Tensor) -> bool:
    """Say whether the library's convolution is for these: single precision on a CPU, large, and not narrow."""
    plain = given.dtype == torch.float32 and given.device.type == "cpu" and torch.backends.mkldnn.is_available()
    return plain and out.numel() >= LEAST and min(given.shape[-1], out.shape[-1]) >= NARROW


def _library(sequence: torch.Tensor, weight: torch.Tensor, padding: int) -> torch.Tensor:
    """Convolve images of height 1 whose channels are last in memory."""
    images = sequence.reshape(-1, 1, *sequence.shape[-2:]).permute(0, 3, 1, 2)
    found = F.conv2d(images, weight, padding=(0, padding)).permute(0, 2, 3, 1).contiguous()
    return found.view(*sequence.shape[:-2], *found.shape[2:])


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
    """Return the compiled products; None where vectors are shorter than they are made for, or they do not compile."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    tiles = import_loops("haptera.contrastive.tiles", "convolutions go through the library")
    if tiles is None:
        return None
    try:
        tiles.convolve(*(np.zeros(shape, np.float32) for shape in ((1, 1, 1), (1, tiles.WIDTH), (1, 1, tiles.WIDTH))))
    except Exception as error:  # they build on parts of numba that may change, and compile when they are called
        log.info("convolutions go through the library, since their tiles do not compile: %s", first_line(error))
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
