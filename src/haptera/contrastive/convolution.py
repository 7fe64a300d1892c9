"""Convolution over one long sequence, or many short windows, as products of matrices; channels last.

Rows `p, p + k, p + 2k, …` of a sequence, with the k − 1 rows after each, are a plain matrix without any copy, so k
products give the whole convolution, and k products each give its two gradients. So are the rows `p` to `p + k − 1` of
every window. The library's convolution of images of height 1, channels last, is quicker where there are enough of them
(2.5 times on a processor with AVX-512 on which products use AVX2, 1.3 times with AVX2), but not its gradient of the
weights. It makes ready for every new shape, in half a millisecond, so lengths should come again (`LIKE`).
Nothing here is recorded for gradients: `stack` puts layers and their gradients together.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

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
    if _by_library(sequence, out):
        weight = matrix.view(len(matrix), 1, -1, sequence.shape[-1]).permute(0, 3, 1, 2)
        return _library(sequence, weight, 0)
    columns = matrix.T.contiguous()  # quicker than a transposed matrix
    for phase, part in _phases(sequence, out):
        torch.mm(part, columns, out=out[phase])
    return out


def gradient_of_matrix(gradient: torch.Tensor, sequence: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the matrix, `(outputs, kernel * channels)`."""
    (phase, part), *others = _phases(sequence, gradient)
    found = gradient[phase].T @ part
    for phase, part in others:
        found.addmm_(gradient[phase].T, part)
    return found


def gradient_of_sequence(gradient: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the sequence, in `out`, which has its shape, or in memory of its own."""
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
