"""A layer of one shade, such as a cloud or frost, laid on bytes."""

import numpy as np

from haptera.shifts.kernels.compiled import compiled
from haptera.shifts.kernels.points import BLOCK, read_run, write_run

_HALF, _ZERO, _FULL = np.float32(0.5), np.float32(0), np.float32(255)


@compiled
def _lay(run: np.ndarray, layer: np.ndarray, factors: np.ndarray) -> None:
    kept, slope, constant = factors[0], factors[1], factors[2] + _HALF
    for index in range(len(run)):
        value = kept * np.float32(run[index]) + slope * layer[index] + constant
        run[index] = np.uint8(max(_ZERO, min(value, _FULL)))


@compiled
def lay_layer(source: np.ndarray, out: np.ndarray, last: bool, layer: np.ndarray, factors: np.ndarray) -> None:
    """kept · x + slope · layer + constant, in grey levels.

    Args:
        source: `(images, values)` bytes.
        out: likewise.
        last: whether channels are last.
        layer: `(images, pixels)` float32.
        factors: `(images, channels, 3)` float32: kept, slope and constant.
    """
    channels, size = factors.shape[1], layer.shape[1]
    scratch = np.empty(3 * BLOCK, np.uint8)
    for image in range(len(source)):
        for start in range(0, size, BLOCK):
            count = min(BLOCK, size - start)
            here = layer[image, start : start + count]
            if channels == 1:
                made = out[image, start : start + count]
                made[:] = source[image, start : start + count]
                _lay(made, here, factors[image, 0])
                continue
            runs = scratch[: 3 * count].reshape(3, count)
            read_run(source[image], last, start, runs)
            for channel in range(3):
                _lay(runs[channel], here, factors[image, channel])
            write_run(runs, last, start, out[image])
