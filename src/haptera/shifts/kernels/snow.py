"""Snow on bytes: the scene whitened, and flakes."""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled
from haptera.shifts.kernels.points import BLOCK, read_run, write_run

_ZERO, _FULL, _HALF = np.float32(0), np.float32(255), np.float32(0.5)


@compiled
def _whitened(runs: np.ndarray, flakes: np.ndarray, turned: np.ndarray, kept: Scalar) -> None:
    """mix · x + (1 − mix) · max(x, 1.5 grey + .5) + flakes + flakes turned by half a circle."""
    red, green, blue = runs[0], runs[1], runs[2]
    end = len(turned) - 1
    rest = np.float32(1) - kept
    for index in range(len(red)):
        r, g, b = np.float32(red[index]), np.float32(green[index]), np.float32(blue[index])
        white = np.float32(0.4485) * r + np.float32(0.8805) * g + np.float32(0.171) * b + np.float32(127.5)
        snow = (flakes[index] + turned[end - index]) * _FULL + _HALF
        red[index] = np.uint8(min(kept * r + rest * max(r, white) + snow, _FULL))
        green[index] = np.uint8(min(kept * g + rest * max(g, white) + snow, _FULL))
        blue[index] = np.uint8(min(kept * b + rest * max(b, white) + snow, _FULL))


@compiled
def lay_snow(source: np.ndarray, out: np.ndarray, last: bool, flakes: np.ndarray, mix: float) -> None:
    """`(images, values)` of colour images, and `(images, pixels)` float32, flakes in [0, 1]."""
    size, kept = source.shape[1] // 3, np.float32(mix)
    scratch = np.empty(3 * BLOCK, np.uint8)
    for image in range(len(source)):
        for start in range(0, size, BLOCK):
            count = min(BLOCK, size - start)
            runs = scratch[: 3 * count].reshape(3, count)
            read_run(source[image], last, start, runs)
            behind = size - start
            here, turned = flakes[image, start : start + count], flakes[image, behind - count : behind]
            _whitened(runs, here, turned, kept)
            write_run(runs, last, start, out[image])


@compiled
def lay_grey_snow(source: np.ndarray, out: np.ndarray, flakes: np.ndarray, mix: float) -> None:
    """The same for images of one channel."""
    size, kept = source.shape[1], np.float32(mix)
    for image in range(len(source)):
        pixels, made, layer = source[image], out[image], flakes[image]
        for index in range(size):
            value = np.float32(pixels[index])
            white = max(value, np.float32(1.5) * value + np.float32(127.5))
            snow = (layer[index] + layer[size - 1 - index]) * _FULL + _HALF
            made[index] = np.uint8(min(kept * value + (np.float32(1) - kept) * white + snow, _FULL))
