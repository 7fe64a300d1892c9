"""Zoom blur and pixelation on bytes.

Zoom: every copy is enlarged row by row. A row is mixed from two rows, then every pixel from two neighbours. Along it,
the pixel that is read moves on with the pixel that is written, but for one in 1 / (factor − 1); between these, a
run of pixels is read as it lies in memory. Cost: 0.3 ns per value and copy.
Pixelation: sums of blocks, divided once. Cost: half a nanosecond per value.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled, copy

_HALF = np.float32(0.5)


@compiled
def add_zoomed(
    planes: np.ndarray,
    out: np.ndarray,
    step: int,
    copies: int,
    rows: np.ndarray,
    row_shares: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    shares: np.ndarray,
) -> None:
    """The mean of `copies` of the image itself and of its enlarged copies.

    Args:
        planes: `(planes, height, width · step)`.
        out: the same.
        step: values from a pixel to the next.
        copies: how often the image itself counts.
        rows: `(factors, height)`, the upper one of the two rows that are mixed.
        row_shares: `(factors, height)` float32, the share of the lower one.
        starts: `(factors, runs + 1)`, where runs begin, in values, and where the last one ends.
        offsets: `(factors, runs)`, from a value that is written to the left one that is read.
        shares: `(factors, width · step)` float32, the share of the right one.
    """
    count, height, width = planes.shape
    sums, mixed = np.empty(width, np.float32), np.empty(width + step, np.float32)
    mixed[width:] = 0
    scale = np.float32(1 / (copies + len(rows)))
    own = np.float32(copies)
    for plane in range(count):
        pixels = planes[plane]
        for y in range(height):
            row = pixels[y]
            for index in range(width):
                sums[index] = np.float32(row[index]) * own
            for factor in range(len(rows)):
                upper = pixels[rows[factor, y]]
                lower = pixels[min(rows[factor, y] + 1, height - 1)]
                share = row_shares[factor, y]
                low = np.uint64(starts[factor, 0] + offsets[factor, 0])
                above, below, made = upper[low:], lower[low:], mixed[low:]
                for index in range(len(above)):
                    one = np.float32(above[index])
                    made[index] = one + share * (np.float32(below[index]) - one)
                for run in range(offsets.shape[1]):
                    start, stop = starts[factor, run], starts[factor, run + 1]
                    begin = start + offsets[factor, run]
                    length = stop - start
                    if length <= 0:
                        break
                    left, right = mixed[begin:], mixed[begin + step :]
                    weights, total = shares[factor, start:], sums[start:]
                    for index in range(length):
                        total[index] += left[index] + weights[index] * (right[index] - left[index])
            done = out[plane, y]
            for index in range(width):
                done[index] = np.uint8(sums[index] * scale + _HALF)


@compiled
def show_blocks(
    planes: np.ndarray,
    out: np.ndarray,
    step: int,
    rows: np.ndarray,
    shown_rows: np.ndarray,
    narrow: int,
    shown: np.ndarray,
) -> None:
    """Show the mean of the block over each pixel.

    Blocks are `narrow` pixels wide or one more. The means of both widths are made at every place of a row, which
    whole vectors do faster than the few that are wanted.

    Args:
        planes: `(planes, height, width · step)`.
        out: the same.
        step: values from a pixel to the next.
        rows: `(blocks, 2)`, the first row of each and the one behind its last.
        shown_rows: `(height,)`, the block that a row shows, never less than the one before.
        narrow: the smaller width.
        shown: `(width · step,)` uint32, the first value of the block that each value shows, for the larger width
            `width · step` further on.
    """
    count, height, width = planes.shape
    sums, means = np.zeros(width + narrow * step, np.uint16), np.empty(2 * width, np.uint8)
    few, many = means[:width], means[width:]
    totals = np.empty(width, np.uint16)
    for plane in range(count):
        previous = -1
        for y in range(height):
            block, made = shown_rows[y], out[plane, y]
            if block == previous:
                copy(out[plane, y - 1], made)
                continue
            previous = block
            tall = rows[block, 1] - rows[block, 0]
            _add_rows(planes[plane, rows[block, 0] : rows[block, 1]], sums)
            copy(sums, totals)
            for column in range(1, narrow):
                further = sums[column * step :]
                for index in range(width):
                    totals[index] += further[index]
            one, two = np.float32(1 / (tall * narrow)), np.float32(1 / (tall * (narrow + 1)))
            further = sums[narrow * step :]
            for index in range(width):
                few[index] = np.uint8(np.int32(np.float32(totals[index]) * one + _HALF))
                more = np.uint16(totals[index] + further[index])
                many[index] = np.uint8(np.int32(np.float32(more) * two + _HALF))
            for index in range(width):
                made[index] = means[shown[index]]


@compiled
def _add_rows(rows: np.ndarray, sums: np.ndarray) -> None:
    """Sums of up to 257 rows, two at a time."""
    width = rows.shape[1]
    one = rows[0]
    for index in range(width):
        sums[index] = np.uint16(one[index])
    row = 1
    while row + 1 < len(rows):
        one, two = rows[row], rows[row + 1]
        for index in range(width):
            sums[index] += np.uint16(one[index]) + np.uint16(two[index])
        row += 2
    if row < len(rows):
        one = rows[row]
        for index in range(width):
            sums[index] += np.uint16(one[index])
