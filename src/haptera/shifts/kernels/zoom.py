"""Zoom blur and pixelation on bytes.

Zoom: every copy is enlarged row by row. A row is mixed from two rows, then every pixel from two neighbours. Along a row,
the pixel that is read moves on with the pixel that is written, but for one in 1 / (factor − 1); between these, a
run of pixels is read as it lies in memory. Cost: 0.3 ns per value and copy.
Pixelation: sums of blocks, divided once. Cost: half a nanosecond per value.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled

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
    row_edges: np.ndarray,
    column_edges: np.ndarray,
    shown_rows: np.ndarray,
    shown_columns: np.ndarray,
) -> None:
    """Show the mean of the block over each pixel; `edges` are `(blocks, 2)`, first and behind the last pixel."""
    count, height, width = planes.shape
    sums, blocks = np.empty(width, np.uint32), np.empty(len(column_edges) * step, np.uint8)
    tops = np.empty(len(row_edges), np.int64)
    for plane in range(count):
        tops[:] = -1
        for y in range(height):
            block, made = shown_rows[y], out[plane, y]
            if tops[block] >= 0:
                made[:] = out[plane, tops[block]]
                continue
            tops[block] = y
            first, behind = row_edges[block, 0], row_edges[block, 1]
            row = planes[plane, first]
            for index in range(width):
                sums[index] = np.uint32(row[index])
            for other in range(first + 1, behind):
                row = planes[plane, other]
                for index in range(width):
                    sums[index] += np.uint32(row[index])
            _mean_columns(sums, blocks, step, column_edges, behind - first)
            _spread_columns(blocks, made, step, shown_columns)


@compiled
def _mean_columns(sums: np.ndarray, blocks: np.ndarray, step: int, edges: np.ndarray, rows: int) -> None:
    for block in range(len(edges)):
        first, behind = edges[block, 0], edges[block, 1]
        scale = np.float32(1.0 / ((behind - first) * rows))
        if step == 3:
            red, green, blue = np.uint32(0), np.uint32(0), np.uint32(0)
            run = sums[3 * first : 3 * behind]
            for column in range(behind - first):
                red += run[3 * column]
                green += run[3 * column + 1]
                blue += run[3 * column + 2]
            three = blocks[3 * block : 3 * block + 3]
            three[0] = np.uint8(np.float32(red) * scale + _HALF)
            three[1] = np.uint8(np.float32(green) * scale + _HALF)
            three[2] = np.uint8(np.float32(blue) * scale + _HALF)
        else:
            total = np.uint32(0)
            for column in range(first, behind):
                total += sums[column]
            blocks[block] = np.uint8(np.float32(total) * scale + _HALF)


@compiled
def _spread_columns(blocks: np.ndarray, row: np.ndarray, step: int, shown: np.ndarray) -> None:
    if step == 3:
        for column in range(len(shown)):
            block = np.uint64(3 * shown[column])
            row[3 * column] = blocks[block]
            row[3 * column + 1] = blocks[block + np.uint64(1)]
            row[3 * column + 2] = blocks[block + np.uint64(2)]
    else:
        for column in range(len(shown)):
            row[column] = blocks[np.uint64(shown[column])]
