"""Where compiled loops take the place of torch's operations in normalisation layers, and the loops as tensors see them.

They run on single-precision images with channels last on a CPU, on one thread, from a size at which memory is what
takes the time: `kernels.py` says how. Everywhere else, and without numba (the extra `bytes`), torch's operations run,
which use all threads; also where there is no memory to loop over, as in `torch.export`, in `torch.func` and with fake
tensors. Results differ by rounding, as they do between layouts and numbers of threads. The first use on a machine
compiles for some seconds; numba keeps what it made beside the package, or in the user's cache folder where it cannot
write there. The log says once, at level info, which of these it is.
"""

import logging
from functools import cache
from math import inf
from types import ModuleType

import numpy as np
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from haptera.adapters.sight import Sight
from haptera.extras import import_loops

log = logging.getLogger("haptera")

LEAST = 2**17
"""Values of a tensor that is large enough."""


@cache
def _kernels() -> ModuleType | None:
    """Return the compiled loops, and say in the log that they are used."""
    kernels = import_loops("haptera.adapters.kernels", "large images go through torch's normalisation")
    if kernels is not None:
        log.info("large images go through compiled loops of normalisation; the first use compiles for some seconds")
    return kernels


def in_memory(values: torch.Tensor) -> bool:
    """Say whether a tensor is memory that NumPy can see, and nothing records or replaces what is done to it."""
    if type(values) not in (torch.Tensor, torch.nn.Parameter) or values.layout != torch.strided:
        return False
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    if not all(isinstance(mode, Sight) for mode in _get_current_dispatch_mode_stack()):
        return False
    try:
        values.data_ptr()
    except RuntimeError:  # a tensor of torch.func
        return False
    return True


def suits(values: torch.Tensor, *, positions: bool = False) -> bool:
    """Say whether images, channels last in memory, can go, and are worth going, through compiled loops.

    Args:
        values: `(batch, channels, height, width)`.
        positions: they are `(batch, positions, channels)`, which sequences `(batch, channels, length)` look like.
    """
    return (
        values.numel() >= LEAST
        and values.dtype == torch.float32
        and values.device.type == "cpu"
        and (values.ndim == 3 if positions else values.ndim == 4 and not values.is_contiguous())
        and values.is_contiguous(memory_format=torch.contiguous_format if positions else torch.channels_last)
        and in_memory(values)
        and torch.get_num_threads() == 1
        and _kernels() is not None
    )


def image_moments(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance over positions, `(batch, channels)` in double precision."""
    rows = _rows(values)
    mean, variance = (np.empty((len(rows), rows.shape[2])) for _ in range(2))
    _loops().image_moments(rows, mean, variance)
    return torch.from_numpy(mean), torch.from_numpy(variance)


def batch_moments(values: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance over images and positions, `(channels,)`."""
    rows = _rows(values)
    mean, variance = torch.empty(2, rows.shape[2], dtype=dtype)
    _loops().batch_moments(rows, mean.numpy(), variance.numpy())
    return mean, variance


class Normalisation:
    """Values minus mean over the root of var + eps, times weight, plus bias; all of these are `(channels,)`."""

    def __init__(
        self,
        values: torch.Tensor,
        mean: torch.Tensor,
        var: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
    ) -> None:
        self.values = values.detach()
        self.scale, self.offset = np.empty((2, len(mean)), np.float32)
        factor = np.ones(len(mean), np.float32) if weight is None else _small(weight)
        constant = np.zeros(len(mean), np.float32) if bias is None else _small(bias)
        _loops().affine(_small(mean), _small(var), factor, constant, eps, self.scale, self.offset)

    def write(self, out: torch.Tensor, other: torch.Tensor | None = None, rectify: bool = False) -> torch.Tensor:
        """Normalise, add another tensor of that shape if there is one, and leave out what is negative if asked to."""
        least = 0.0 if rectify else -inf
        rows, target = _rows(self.values), _rows(out)
        if other is None:
            _loops().scale_images(rows, self.scale[None], self.offset[None], least, target)
        else:
            _loops().scale_and_add(rows, self.scale, self.offset, _rows(other), least, target)
        return out


def scale(values: torch.Tensor, factor: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Values times factor plus offset, both `(batch or 1, channels)`."""
    out = torch.empty_like(values)
    _loops().scale_images(_rows(values), _small(factor), _small(offset), -inf, _rows(out))
    return out


def gradient_sums(
    gradient: torch.Tensor, values: torch.Tensor, centre: torch.Tensor, rectified: Normalisation | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums over positions of the gradient, and of its product with values minus centre, `(batch, channels)` double.

    Args:
        gradient: of the shape of the values.
        values: what went into the layer.
        centre: `(channels,)`.
        rectified: how the values were normalised, where a ReLU came next and the gradient is that of its output.
    """
    rows = _rows(values)
    plain, product = (np.empty((len(rows), rows.shape[2])) for _ in range(2))
    _loops().gradient_sums(_rows(gradient), rows, _small(centre), *_counts(rows, rectified), plain, product)
    return torch.from_numpy(plain), torch.from_numpy(product)


def combine(
    gradient: torch.Tensor,
    values: torch.Tensor,
    factors: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    rectified: Normalisation | None = None,
) -> torch.Tensor:
    """Gradient times the first factor, plus values times the second, plus the third; `(batch or 1, channels)`."""
    out, rows = torch.empty_like(values), _rows(values)
    small = [_small(each) for each in factors]
    _loops().combine_images(_rows(gradient), rows, *small, *_counts(rows, rectified), _rows(out))
    return out


def _counts(rows: np.ndarray, rectified: Normalisation | None) -> tuple[np.ndarray, np.ndarray]:
    """Scale and offset of what has to be above 0 for a gradient to count; without a ReLU it always is."""
    if rectified is not None:
        return rectified.scale, rectified.offset
    return np.zeros(rows.shape[2], np.float32), np.ones(rows.shape[2], np.float32)


def _rows(values: torch.Tensor) -> np.ndarray:
    """Return images as `(batch, positions, channels)`, without a copy."""
    values = values.detach()
    if values.ndim == 3:
        return values.numpy()
    rows = values.permute(0, 2, 3, 1).numpy()
    return rows.reshape(len(rows), -1, rows.shape[3])


def _small(values: torch.Tensor) -> np.ndarray:
    """Single precision in the order of memory."""
    return np.ascontiguousarray(values.detach().numpy(), np.float32)


def _loops() -> ModuleType:
    kernels = _kernels()
    assert kernels is not None
    return kernels
