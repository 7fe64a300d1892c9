"""Noise on bytes: every value gets the random number that it gets among floats, whatever the layout.

Images are `(images, values)`. Random numbers are drawn in the order channels, rows, columns, and brought into the order
of the image where its channels are last. Cost: 1 ns per value for the bits and about as much to look up a deviate.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled
from haptera.shifts.kernels.sfc64 import draw

_HALF, _ZERO, _FULL = np.float32(0.5), np.float32(0), np.float32(255)


@compiled
def _interleave(planes: np.ndarray, out: np.ndarray) -> None:
    """Red, green and blue planes, one after the other, as pixels."""
    size = len(out) // 3
    red, green, blue = planes[:size], planes[size : 2 * size], planes[2 * size : 3 * size]
    for index in range(size):
        out[3 * index] = red[index]
        out[3 * index + 1] = green[index]
        out[3 * index + 2] = blue[index]


@compiled
def add_normal(source: np.ndarray, out: np.ndarray, step: int, states: np.ndarray, levels: np.ndarray) -> None:
    """x + n; `levels` are `(65536,)` int16, deviates in 1/32 of a grey level."""
    images, values = source.shape
    words = np.empty((2, (values + 3) // 4), np.uint64)
    deviates, ordered = np.empty(values, np.int16), np.empty(values, np.int16)
    unit = np.float32(1 / 32)
    for image in range(images):
        halves = draw(states, image, words).view(np.uint16)
        for index in range(values):
            deviates[index] = levels[halves[index]]
        noise = deviates
        if step == 3:
            _interleave(deviates, ordered)
            noise = ordered
        pixels, changed = source[image], out[image]
        for index in range(values):
            level = np.float32(pixels[index]) + (np.float32(noise[index]) * unit + _HALF)
            changed[index] = np.uint8(min(max(level, _ZERO), _FULL))


@compiled
def scale_normal(source: np.ndarray, out: np.ndarray, step: int, states: np.ndarray, factors: np.ndarray) -> None:
    """x f; `factors` are `(65536,)` float32, 1 + σ n."""
    images, values = source.shape
    words = np.empty((2, (values + 3) // 4), np.uint64)
    deviates, ordered = np.empty(values, np.float32), np.empty(values, np.float32)
    for image in range(images):
        halves = draw(states, image, words).view(np.uint16)
        for index in range(values):
            deviates[index] = factors[halves[index]]
        noise = deviates
        if step == 3:
            _interleave(deviates, ordered)
            noise = ordered
        pixels, changed = source[image], out[image]
        for index in range(values):
            level = np.float32(pixels[index]) * noise[index] + _HALF
            changed[index] = np.uint8(min(max(level, _ZERO), _FULL))


@compiled
def add_impulses(source: np.ndarray, out: np.ndarray, step: int, states: np.ndarray, low: int, high: int) -> None:
    """0 where 24 random bits are below `low`, 255 where they are above `high`, else x."""
    images, values = source.shape
    words = np.empty((2, (values + 1) // 2), np.uint64)
    kinds, ordered = np.empty(values, np.uint8), np.empty(values, np.uint8)
    black, white = np.int32(low), np.int32(high)
    for image in range(images):
        halves = draw(states, image, words).view(np.uint32)
        for index in range(values):
            bits = np.int32(halves[index] >> np.uint32(8))
            kinds[index] = np.uint8(1) if bits < black else (np.uint8(2) if bits > white else np.uint8(0))
        marks = kinds
        if step == 3:
            _interleave(kinds, ordered)
            marks = ordered
        pixels, changed = source[image], out[image]
        for index in range(values):
            level = pixels[index]
            level = np.uint8(0) if marks[index] == 1 else level
            changed[index] = np.uint8(255) if marks[index] == 2 else level


@compiled
def count_photons(
    source: np.ndarray,
    out: np.ndarray,
    step: int,
    states: np.ndarray,
    table: np.ndarray,
    lowest: np.ndarray,
    shown: np.ndarray,
) -> None:
    """Poisson counts by Walker's alias table of `noise.alias_table`; `shown` is the grey level of each count."""
    images, values = source.shape
    words, ordered = np.empty((2, (values + 1) // 2), np.uint64), np.empty(values, np.uint32)
    bins = np.uint32(len(table) // 256)
    shift = np.uint32(24)
    while (np.uint32(1) << (np.uint32(24) - shift)) < bins:
        shift -= np.uint32(1)
    mask = (np.uint32(1) << shift) - np.uint32(1)
    for image in range(images):
        drawn = draw(states, image, words).view(np.uint32)
        if step == 3:
            _interleave(drawn, ordered)
            drawn = ordered
        pixels, changed = source[image], out[image]
        for index in range(values):
            level = np.uint32(pixels[index])
            bits = drawn[index] >> np.uint32(8)
            own = bits >> shift
            entry = np.uint32(table[level * bins + own])
            count = own if (bits & mask) < (entry & mask) else entry >> shift
            changed[index] = shown[count + lowest[level]]
