"""JPEG on bytes, without the file: what the encoder's lossless part writes, the decoder reads again, so neither is run.

Source: ISO/IEC 10918-1 and JFIF in the arithmetic of libjpeg: colours to luma and two differences of colour, these at
half the side (the mean of four, rounded down and up by turns), blocks (`kernels.dct`), differences back to the full
side by a triangle filter (`h2v2_fancy_upsample`), and colours. Bit for bit the images that Pillow gives, from 5 pixels
a side on: the encoder repeats the last column, the last row of luma, and the last row of the halved differences.
Cost: about 2 ns per value, less than half of an encoder and a decoder.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled, copy, fill_line
from haptera.shifts.kernels.dct import quantise_plane, workplace
from haptera.shifts.kernels.points import join_colours, split_colours

_int = np.int32


@compiled
def through_grey(planes: np.ndarray, out: np.ndarray, table: np.ndarray) -> None:
    """`(planes, height, width)`, each an image of its own."""
    count, height, width = planes.shape
    padded = np.empty(((height + 7) // 8 * 8, (width + 7) // 8 * 8), np.uint8)
    work = workplace(*padded.shape)
    for plane in range(count):
        for y in range(padded.shape[0]):
            _extend(planes[plane, min(y, height - 1)], padded[y])
        quantise_plane(padded, table, work)
        for y in range(height):
            copy(padded[y], out[plane, y])


@compiled
def _extend(row: np.ndarray, wide: np.ndarray) -> None:
    """Copy a row and repeat its last value."""
    copy(row, wide[: len(row)])
    fill_line(wide[len(row) :], row[len(row) - 1])


@compiled
def through_colour(source: np.ndarray, out: np.ndarray, last: bool, luma: np.ndarray, chroma: np.ndarray) -> None:
    """`(images, height, width, 3)` where `last`, else `(images, 3, height, width)`; with the two tables, `(64,)`."""
    height, width = (source.shape[1], source.shape[2]) if last else (source.shape[2], source.shape[3])
    light = np.empty(((height + 15) // 16 * 16, (width + 7) // 8 * 8), np.uint8)
    both = np.empty((light.shape[0], (width + 15) // 16 * 8), np.uint8)
    blue, red = both[: len(both) // 2], both[len(both) // 2 :]
    work, half_work = workplace(*light.shape), workplace(*both.shape)
    halves = (height + 1) // 2
    runs, differences = np.empty((3, width), np.uint8), np.empty((4, 2 * blue.shape[1]), np.uint8)
    for image in range(len(source)):
        for y in range(2 * halves):
            _read(source[image], last, min(y, height - 1), runs)
            _to_luma(runs, light[y], differences[y % 2], differences[2 + y % 2])
            if y % 2:
                _halve(differences[0], differences[1], blue[y // 2])
                _halve(differences[2], differences[3], red[y // 2])
        for y in range(height, light.shape[0]):
            copy(light[height - 1], light[y])
        for y in range(halves, len(blue)):
            copy(blue[halves - 1], blue[y])
            copy(red[halves - 1], red[y])
        quantise_plane(light, luma, work)
        quantise_plane(both, chroma, half_work)
        _to_image(light, blue, red, out[image], last, height, width)


@compiled
def _read(image: np.ndarray, last: bool, y: int, runs: np.ndarray) -> None:
    if last:
        split_colours(image[y].reshape(-1), runs)
    else:
        for channel in range(3):
            copy(image[channel, y], runs[channel])


@compiled
def _to_luma(runs: np.ndarray, light: np.ndarray, blue: np.ndarray, red: np.ndarray) -> None:
    """One row, in fixed point with 16 bits, each to its padded width."""
    width = runs.shape[1]
    reds, greens, blues = runs[0], runs[1], runs[2]
    for x in range(width):
        r, g, b = _int(reds[x]), _int(greens[x]), _int(blues[x])
        light[x] = np.uint8(_int(_int(r * _int(19595) + g * _int(38470)) + _int(b * _int(7471) + _int(32768))) >> 16)
        blue[x] = np.uint8(_int(_int(b * _int(32768) - r * _int(11059)) + _int(_int(8421375) - g * _int(21709))) >> 16)
        red[x] = np.uint8(_int(_int(r * _int(32768) - g * _int(27439)) + _int(_int(8421375) - b * _int(5329))) >> 16)
    fill_line(light[width:], light[width - 1])
    fill_line(blue[width:], blue[width - 1])
    fill_line(red[width:], red[width - 1])


@compiled
def _halve(upper: np.ndarray, lower: np.ndarray, out: np.ndarray) -> None:
    """The mean of four, halves and quarters rounded down at even places and up at odd ones."""
    for x in range(len(out) // 2):
        total = _int(upper[4 * x]) + _int(upper[4 * x + 1]) + _int(lower[4 * x]) + _int(lower[4 * x + 1])
        out[2 * x] = np.uint8((total + _int(1)) >> 2)
        total = _int(upper[4 * x + 2]) + _int(upper[4 * x + 3]) + _int(lower[4 * x + 2]) + _int(lower[4 * x + 3])
        out[2 * x + 1] = np.uint8((total + _int(2)) >> 2)


@compiled
def _double(near: np.ndarray, far: np.ndarray, sums: np.ndarray, out: np.ndarray) -> None:
    """A row at the full side: 3 parts of the nearer and 1 of the farther, down and across."""
    width = len(sums)
    for x in range(width):
        sums[x] = np.int16(_int(near[x]) * _int(3) + _int(far[x]))
    inner = width - 1
    before, here, after = sums[: inner - 1], sums[1:inner], sums[2:]
    made = out[2 : 2 * inner]
    for x in range(inner - 1):
        triple = _int(here[x]) * _int(3)
        made[2 * x] = np.uint8(_int(triple + _int(before[x]) + _int(8)) >> 4)
        made[2 * x + 1] = np.uint8(_int(triple + _int(after[x]) + _int(7)) >> 4)
    first, last = _int(sums[0]), _int(sums[inner])
    out[0] = np.uint8((first * _int(4) + _int(8)) >> 4)
    out[1] = np.uint8((first * _int(3) + _int(sums[1]) + _int(7)) >> 4)
    out[2 * inner] = np.uint8((last * _int(3) + _int(sums[inner - 1]) + _int(8)) >> 4)
    out[2 * inner + 1] = np.uint8((last * _int(4) + _int(7)) >> 4)


@compiled
def _to_image(
    light: np.ndarray, blue: np.ndarray, red: np.ndarray, out: np.ndarray, last: bool, height: int, width: int
) -> None:
    halves, half_width = (height + 1) // 2, (width + 1) // 2
    sums = np.empty(half_width, np.int16)
    wide_blue, wide_red = np.empty(2 * half_width, np.uint8), np.empty(2 * half_width, np.uint8)
    runs = np.empty((3, width), np.uint8)
    for y in range(height):
        near = y // 2
        far = min(near + 1, halves - 1) if y % 2 else max(near - 1, 0)
        _double(blue[near, :half_width], blue[far, :half_width], sums, wide_blue)
        _double(red[near, :half_width], red[far, :half_width], sums, wide_red)
        _to_colours(light[y], wide_blue, wide_red, runs)
        if last:
            join_colours(runs, out[y].reshape(-1))
        else:
            for channel in range(3):
                copy(runs[channel], out[channel, y])


@compiled
def _to_colours(light: np.ndarray, blue: np.ndarray, red: np.ndarray, runs: np.ndarray) -> None:
    reds, greens, blues = runs[0], runs[1], runs[2]
    zero, full, half = _int(0), _int(255), _int(32768)
    for x in range(len(reds)):
        y, b, r = _int(light[x]), _int(blue[x]) - _int(128), _int(red[x]) - _int(128)
        b, r = _int(b), _int(r)
        more = _int(_int(_int(r * _int(91881)) + half) >> 16)
        less = _int(_int(_int(_int(b * _int(-22554)) + half) + _int(r * _int(-46802))) >> 16)
        other = _int(_int(_int(b * _int(116130)) + half) >> 16)
        reds[x] = np.uint8(min(max(_int(y + more), zero), full))
        greens[x] = np.uint8(min(max(_int(y + less), zero), full))
        blues[x] = np.uint8(min(max(_int(y + other), zero), full))
