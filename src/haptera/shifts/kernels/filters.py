"""Filters on bytes: sums of neighbours with weights, row by row, in floats (`kernels.normal` has one in 16 bits).

`planes` are `(planes, height, width · step)`; a row is summed in floats that stay in the cache, four weights at a time,
so that a sum is read and written once for four products. Cost: per value and weight about 0.05 ns.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled, copy, fill_line


@compiled
def clamp(place: int, side: int) -> int:
    """The nearest pixel inside."""
    return min(max(place, 0), side - 1)


@compiled
def mirror(place: int, side: int) -> int:
    """The pixel that is seen in a mirror at the centre of the outermost one."""
    place = -place if place < 0 else place
    return 2 * side - 2 - place if place >= side else place


@compiled
def _mix_row(sums: np.ndarray, row: np.ndarray, width: int, step: int, weights: np.ndarray) -> None:
    """The weights along a row that has its margins."""
    reach = len(weights) - 1
    margin = reach * step
    middle = sums[margin : margin + width]
    if reach == 0:
        for index in range(width):
            row[index] = weights[0] * middle[index]
        return
    left, right = sums[margin - step :], sums[margin + step :]
    for index in range(width):
        row[index] = weights[0] * middle[index] + weights[1] * (left[index] + right[index])
    tap = 2
    while tap + 1 <= reach:
        near, far = weights[tap], weights[tap + 1]
        one, two = sums[margin - tap * step :], sums[margin + tap * step :]
        three, four = sums[margin - (tap + 1) * step :], sums[margin + (tap + 1) * step :]
        for index in range(width):
            row[index] += near * (one[index] + two[index]) + far * (three[index] + four[index])
        tap += 2
    if tap == reach:
        one, two = sums[margin - tap * step :], sums[margin + tap * step :]
        for index in range(width):
            row[index] += weights[tap] * (one[index] + two[index])


@compiled
def widen(pixels: np.ndarray, wide: np.ndarray, step: int, margin: int, mirrored: bool) -> None:
    """Copy `(height, width · step)` into the middle of a plane with `margin` pixels on every side."""
    height, length = pixels.shape
    width = length // step
    for y in range(height + 2 * margin):
        row = pixels[mirror(y - margin, height) if mirrored else clamp(y - margin, height)]
        made = wide[y]
        copy(row, made[margin * step : margin * step + length])
        for x in range(margin):
            left = mirror(x - margin, width) if mirrored else 0
            right = mirror(width + x, width) if mirrored else width - 1
            for channel in range(step):
                made[x * step + channel] = row[left * step + channel]
                made[(margin + width + x) * step + channel] = row[right * step + channel]


@compiled
def sum_taps(
    planes: np.ndarray,
    out: np.ndarray,
    step: int,
    margin: int,
    mirrored: bool,
    downs: np.ndarray,
    rights: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Σ w x(down, right) for each plane; `downs` and `rights` are `(planes, taps)`, `weights` `(taps,)` float32.

    Planes are uint8, or float32 for a layer, and `out` is of the same type; weights sum to at most 1.
    """
    half = np.float32(0.4999 if out.itemsize == 1 else 0)
    count, height, width = planes.shape
    taps = len(weights)
    wide = np.empty((height + 2 * margin, width + 2 * margin * step), planes.dtype)
    sums = np.empty(width, np.float32)
    zero = np.float32(0)
    tops, lefts = downs + margin, (rights + margin) * step
    for plane in range(count):
        widen(planes[plane], wide, step, margin, mirrored)
        for y in range(height):
            fill_line(sums, zero)
            tap = 0
            while tap + 3 < taps:
                one = wide[tops[plane, tap] + y, lefts[plane, tap] :]
                two = wide[tops[plane, tap + 1] + y, lefts[plane, tap + 1] :]
                three = wide[tops[plane, tap + 2] + y, lefts[plane, tap + 2] :]
                four = wide[tops[plane, tap + 3] + y, lefts[plane, tap + 3] :]
                w1, w2, w3, w4 = weights[tap], weights[tap + 1], weights[tap + 2], weights[tap + 3]
                for index in range(width):
                    sums[index] += (
                        w1 * np.float32(one[index])
                        + w2 * np.float32(two[index])
                        + w3 * np.float32(three[index])
                        + w4 * np.float32(four[index])
                    )
                tap += 4
            while tap < taps:
                one = wide[tops[plane, tap] + y, lefts[plane, tap] :]
                w1 = weights[tap]
                for index in range(width):
                    sums[index] += w1 * np.float32(one[index])
                tap += 1
            made = out[plane, y]
            for index in range(width):
                made[index] = sums[index] + half
