"""Disks and smooth fields: filters that are not a product of two lines, or not of bytes.

A disk is a sum of columns, and a column of pixels the difference of two sums from the top. These sums are kept in
16 bits, in which they wrap; their differences, of up to 257 pixels, are exact. Cost: per value a difference for each
pixel of the disk's width, 16 values at a time.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled, fill_line
from haptera.shifts.kernels.filters import _mix_row, mirror, widen

_HALF = np.float32(0.5)


@compiled
def blur_disks(
    planes: np.ndarray,
    out: np.ndarray,
    step: int,
    heights: np.ndarray,
    weights: np.ndarray,
    softening: np.ndarray,
) -> None:
    """A mixture of disks, softened; images are mirrored at their edges.

    Args:
        planes: `(planes, height, width · step)`.
        out: the same.
        step: values from a pixel to the next.
        heights: `(disks, reach + 1)`, how far a disk reaches up and down at each distance from its centre; −1 outside.
        weights: `(disks,)` float32, of each pixel of a disk.
        softening: `(softened + 1,)` float32, weights from the centre on.
    """
    count, height, width = planes.shape
    reach = heights.shape[1] - 1
    wide = np.empty((height + 2 * reach, width + 2 * reach * step), np.uint8)
    tops = np.zeros((height + 2 * reach + 1, wide.shape[1]), np.uint16)
    sums, blurred = np.empty(width, np.uint32), np.empty((height, width), np.float32)
    for plane in range(count):
        widen(planes[plane], wide, step, reach, True)
        for y in range(len(wide)):
            above, row, below = tops[y], wide[y], tops[y + 1]
            for index in range(len(row)):
                below[index] = np.uint16(above[index] + row[index])
        for y in range(height):
            made = blurred[y]
            fill_line(made, np.float32(0))
            for disk in range(len(heights)):
                _add_columns(tops, sums, y + reach, step, reach, heights[disk])
                weight = weights[disk]
                for index in range(width):
                    made[index] += np.float32(np.int32(sums[index])) * weight
        _soften(blurred, out[plane], step, softening)


@compiled
def _add_columns(tops: np.ndarray, sums: np.ndarray, y: int, step: int, reach: int, heights: np.ndarray) -> None:
    """Sums over a disk, for one row."""
    tall = heights[0]
    high, low = tops[y - tall, reach * step :], tops[y + tall + 1, reach * step :]
    for index in range(len(sums)):
        sums[index] = np.uint32(np.uint16(low[index] - high[index]))
    for away in range(1, reach + 1):
        tall = heights[away]
        if tall < 0:
            break
        top, bottom = tops[y - tall], tops[y + tall + 1]
        high, low = top[(reach - away) * step :], bottom[(reach - away) * step :]
        other_high, other_low = top[(reach + away) * step :], bottom[(reach + away) * step :]
        for index in range(len(sums)):
            one, two = np.uint16(low[index] - high[index]), np.uint16(other_low[index] - other_high[index])
            sums[index] += np.uint32(np.uint16(one + two))


@compiled
def _soften(blurred: np.ndarray, out: np.ndarray, step: int, weights: np.ndarray) -> None:
    """Weights both ways, mirrored at the edges, and bytes."""
    height, width = blurred.shape
    reach, pixels = len(weights) - 1, width // step
    margin = reach * step
    sums, row = np.empty(width + 2 * margin, np.float32), np.empty(width, np.float32)
    middle = sums[margin : margin + width]
    for y in range(height):
        centre = blurred[y]
        for index in range(width):
            middle[index] = weights[0] * centre[index]
        for tap in range(1, reach + 1):
            above, below, weight = blurred[mirror(y - tap, height)], blurred[mirror(y + tap, height)], weights[tap]
            for index in range(width):
                middle[index] += weight * (above[index] + below[index])
        for x in range(reach):
            left, right = mirror(x - reach, pixels) * step, mirror(pixels + x, pixels) * step
            for channel in range(step):
                sums[x * step + channel] = middle[left + channel]
                sums[margin + width + x * step + channel] = middle[right + channel]
        _mix_row(sums, row, width, step, weights)
        made = out[y]
        for index in range(width):
            made[index] = np.uint8(row[index] + _HALF)


@compiled
def smooth_fields(fields: np.ndarray, weights: np.ndarray) -> None:
    """Symmetric weights both ways on `(fields, height, width)` float32, in place; mirrored at the edge of a pixel."""
    count, height, width = fields.shape
    reach = len(weights) - 1
    sums = np.empty((height, width + 2 * reach), np.float32)
    first, second = weights[0], weights[1] if reach else np.float32(0)
    for field in range(count):
        values = fields[field]
        for y in range(height):
            made, centre = sums[y, reach : reach + width], values[y]
            above, below = values[_fold(y - 1, height)], values[_fold(y + 1, height)]
            for index in range(width):  # in small images, each loop over a row counts
                made[index] = first * centre[index] + second * (above[index] + below[index])
            for tap in range(2, reach + 1):
                above, below = values[_fold(y - tap, height)], values[_fold(y + tap, height)]
                weight = weights[tap]
                for index in range(width):
                    made[index] += weight * (above[index] + below[index])
            for x in range(reach):
                sums[y, x] = made[_fold(x - reach, width)]
                sums[y, reach + width + x] = made[_fold(width + x, width)]
        for y in range(height):
            _mix_row(sums[y], values[y], width, 1, weights)


@compiled
def _fold(place: int, side: int) -> int:
    """The pixel that is seen in a mirror at the edge of the outermost one."""
    place = -1 - place if place < 0 else place
    return 2 * side - 1 - place if place >= side else place
