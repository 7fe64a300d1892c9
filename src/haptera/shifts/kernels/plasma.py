"""The diamond-square method of `haptera.shifts.plasma`, level by level in the finished map."""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled

_ONE, _TWO, _QUARTER = np.float32(1), np.float32(2), np.float32(0.25)


@compiled
def _squares(heights: np.ndarray, noise: np.ndarray, step: int, gain: Scalar) -> None:
    """Give the middle of every square the mean of its corners and noise; `noise` is `(side, side)`."""
    side, half, last = len(noise), step // 2, len(heights) - 1
    for row in range(side):
        above, below = heights[row * step], heights[(row + 1) * step & last]
        middle, fresh = heights[row * step + half], noise[row]
        for column in range(side - 1):
            here = column * step
            corners = above[here] + below[here] + above[here + step] + below[here + step]
            middle[here + half] = corners * _QUARTER + fresh[column] * gain
        here = (side - 1) * step
        corners = above[here] + below[here] + above[0] + below[0]
        middle[here + half] = corners * _QUARTER + fresh[side - 1] * gain


@compiled
def _diamonds(heights: np.ndarray, right: np.ndarray, down: np.ndarray, step: int, gain: Scalar) -> None:
    """Give the middle of every side of a square the mean of its four neighbours and noise."""
    side, half, last = len(right), step // 2, len(heights) - 1
    for row in range(side):
        line, below = heights[row * step], heights[(row + 1) * step & last]
        middle, before = heights[row * step + half], heights[(row * step - half) & last]
        fresh, other = right[row], down[row]
        for column in range(side - 1):
            here = column * step
            around = line[here] + line[here + step] + middle[here + half] + before[here + half]
            line[here + half] = around * _QUARTER + fresh[column] * gain
        here = (side - 1) * step
        around = line[here] + line[0] + middle[here + half] + before[here + half]
        line[here + half] = around * _QUARTER + fresh[side - 1] * gain
        around = line[0] + below[0] + middle[half] + middle[last + 1 - half]
        middle[0] = around * _QUARTER + other[0] * gain
        for column in range(1, side):
            here = column * step
            around = line[here] + below[here] + middle[here + half] + middle[here - half]
            middle[here] = around * _QUARTER + other[column] * gain


@compiled
def grow(noise: np.ndarray, heights: np.ndarray, decay: float) -> None:
    """Fill maps, whatever their lowest and highest point.

    Args:
        noise: `(samples, size² - 1)` uniform deviates in [0, 1), which are overwritten.
        heights: `(samples, size, size)`, size a power of two.
        decay: the noise of a level is divided by its square at the next.
    """
    size = heights.shape[1]
    for sample in range(len(noise)):
        fresh, map_ = noise[sample], heights[sample]
        for index in range(len(fresh)):
            fresh[index] = fresh[index] * _TWO - _ONE
        map_[0, 0] = 0
        side, used, gain = 1, 0, 1.0
        while side < size:
            area = side * side
            three = fresh[used : used + 3 * area].reshape(3, side, side)
            _squares(map_, three[0], size // side, np.float32(gain))
            _diamonds(map_, three[1], three[2], size // side, np.float32(gain))
            side, used, gain = 2 * side, used + 3 * area, gain / decay**2
