"""Bias, GELU and shortcut of a layer in one, and their gradients: by compiled loops where they pay, or by torch.

The loops (see `kernels`) run in single precision on a CPU with at most two threads, from a size at which a call counts
for nothing. Everywhere else, and without numba (the extra `bytes`), torch's operations give the same within rounding.
"""

import logging
from functools import cache
from types import ModuleType

import numpy as np
import torch
from torch.nn import functional as F

from haptera.errors import first_line

log = logging.getLogger("haptera")

LEAST = 2**14
"""Values of a layer that are enough."""
THREADS = 2
"""Threads up to which loops on one of them are no slower than torch's operations on all."""


@cache
def _kernels() -> ModuleType | None:
    """Return the compiled loops; None, and a line in the log, where numba is missing or does not import."""
    try:
        from haptera.contrastive import kernels
    except Exception as error:  # numba refuses a NumPy that is too new, or fails in its own libraries, in many ways
        log.info("encoders go through torch's operations, since numba does not import: %s", first_line(error))
        return None
    return kernels


def loops_for(values: torch.Tensor) -> ModuleType | None:
    """Return the compiled loops if they are for a layer of these values."""
    single = values.dtype == torch.float32 and values.device.type == "cpu"
    if not single or values.numel() < LEAST or torch.get_num_threads() > THREADS:
        return None
    return _kernels()


def activate(
    loops: ModuleType | None,
    values: torch.Tensor,
    bias: torch.Tensor,
    shortcut: torch.Tensor | None,
    kept: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """Write GELU(values + bias) plus the shortcut into `out`, and what the gradient needs into `kept`.

    Args:
        loops: compiled ones, or None.
        values: `(positions, channels)`, or `(batch, positions, channels)`, contiguous.
        bias: `(channels,)`.
        shortcut: one position more at either end.
        kept: as the values, or the values themselves.
        out: as the values.
    """
    if loops is not None:
        batch = len(values) if values.ndim == 3 else 1
        added = np.empty((batch, 0), np.float32) if shortcut is None else _lines(shortcut, batch)
        lines = [_lines(some, batch) for some in (kept, out)]
        loops.activate(_lines(values, batch), bias.detach().numpy(), added, len(bias), *lines)
        return
    out.copy_(F.gelu(torch.add(values, bias, out=kept)))
    if shortcut is not None:
        out.add_(shortcut[..., 1:-1, :])


def weigh(loops: ModuleType | None, kept: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Turn what was kept into the gradient of the values, in place; return that of the bias."""
    if loops is not None:
        total = np.empty(kept.shape[-1], np.float32)
        loops.weigh(_lines(kept, 1)[0], _lines(gradient, 1)[0], total)
        return torch.from_numpy(total)
    kept.copy_(torch.ops.aten.gelu_backward(gradient, kept))
    return kept.flatten(0, -2).sum(0)


def add_windows(loops: ModuleType | None, onto: torch.Tensor, starts: torch.Tensor, windows: torch.Tensor) -> None:
    """Add windows `(batch, positions, channels)` to a sequence `(time, channels)`, each from its start on."""
    if loops is not None:
        lines = _lines(windows, len(windows))
        loops.add_rows(_lines(onto, 1)[0], starts.numpy() * onto.shape[1], lines)
        return
    places = starts[:, None] + torch.arange(windows.shape[1])
    onto.index_add_(0, places.flatten(), windows.flatten(0, 1))


def _lines(values: torch.Tensor, batch: int) -> np.ndarray:
    found: np.ndarray = values.detach().numpy().reshape(batch, -1)
    return found
