"""Point operations on bytes: what becomes of a pixel depends on its own colour and on numbers of its image.

Images are `(images, values)`. Colour images are taken apart into runs of red, green and blue that stay in the cache, so
that channels may be first or last. Cost: a quarter of a nanosecond per value.
"""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled, copy

_HALF, _ZERO, _ONE, _FULL = np.float32(0.5), np.float32(0), np.float32(1), np.float32(255)
_PARTS, _HALF_PARTS = np.float32(256), np.uint16(128)
_BLACK, _DARKEST, _WHITE = np.uint8(0), np.uint8(1), np.uint8(255)
_RUN = 96  # values, a multiple of three channels and of a vector
_SUMMED = 256  # runs, whose sums 16 bits hold
BLOCK = 2048
"""Pixels at once: few enough for the nearest cache, and so many that calls and loops cost little."""


@compiled
def split_colours(pixels: np.ndarray, runs: np.ndarray) -> None:
    """Pixels into `(3, pixels)`."""
    red, green, blue = runs[0], runs[1], runs[2]
    for index in range(len(red)):
        red[index] = pixels[3 * index]
        green[index] = pixels[3 * index + 1]
        blue[index] = pixels[3 * index + 2]


@compiled
def join_colours(runs: np.ndarray, pixels: np.ndarray) -> None:
    """The way back."""
    red, green, blue = runs[0], runs[1], runs[2]
    for index in range(len(red)):
        pixels[3 * index] = red[index]
        pixels[3 * index + 1] = green[index]
        pixels[3 * index + 2] = blue[index]


@compiled
def read_run(pixels: np.ndarray, last: bool, start: int, runs: np.ndarray) -> None:
    """Fill `(3, count)` with the colours of pixels from `start` on."""
    count, size = runs.shape[1], len(pixels) // 3
    if last:
        split_colours(pixels[3 * start : 3 * (start + count)], runs)
    else:
        for channel in range(3):
            copy(pixels[channel * size + start :], runs[channel])


@compiled
def write_run(runs: np.ndarray, last: bool, start: int, pixels: np.ndarray) -> None:
    """The way back."""
    count, size = runs.shape[1], len(pixels) // 3
    if last:
        join_colours(runs, pixels[3 * start : 3 * (start + count)])
    else:
        for channel in range(3):
            copy(runs[channel], pixels[channel * size + start : channel * size + start + count])


@compiled
def pull_to_mean(source: np.ndarray, out: np.ndarray, channels: int, step: int, factor: float) -> None:
    """(x − mean) f + mean, of every image and channel by itself.

    In 256ths, which 16 bits hold, so that twice as many values as in floats are made at once. The factor is rounded to
    a 256th as well, which is half a grey level where a value is 255 from the mean, and a tenth for most.
    """
    planes = source.size // source.shape[1] * (channels // step)
    pixels, changed = source.reshape(planes, -1), out.reshape(planes, -1)
    values = pixels.shape[1]
    whole = values // _RUN * _RUN
    sums, rests = np.empty(_RUN, np.uint16), np.empty(_RUN, np.uint16)
    totals = np.empty(step, np.int64)
    gain = np.uint16(round(256 * factor))
    for plane in range(planes):
        before, after = pixels[plane], changed[plane]
        totals[:] = 0
        for first in range(0, whole, _SUMMED * _RUN):
            sums[:] = 0
            for start in range(first, min(first + _SUMMED * _RUN, whole), _RUN):
                run = before[start : start + _RUN]
                for index in range(_RUN):
                    sums[index] += np.uint16(run[index])
            for index in range(_RUN):
                totals[index % step] += sums[index]
        for index in range(whole, values):
            totals[index % step] += before[index]
        for index in range(_RUN):
            rests[index] = np.uint16(totals[index % step] * step / values * (256 - gain) + 128)
        for start in range(0, whole, _RUN):
            run, made = before[start : start + _RUN], after[start : start + _RUN]
            for index in range(_RUN):
                made[index] = np.uint8(np.uint16(run[index] * gain + rests[index]) >> 8)
        for index in range(whole, values):
            after[index] = np.uint8(np.uint16(before[index] * gain + rests[index % step]) >> 8)


@compiled
def add_everywhere(source: np.ndarray, out: np.ndarray, added: float) -> None:
    """x + c, at most 255."""
    more = np.float32(added + 0.5)
    pixels, changed = source.reshape(-1), out.reshape(-1)
    for index in range(len(pixels)):
        changed[index] = np.uint8(min(np.float32(pixels[index]) + more, _FULL))


@compiled
def _find_values(runs: np.ndarray, values: np.ndarray) -> Scalar:
    """The largest of red, green and blue, at least 1; return the least of them, 0 where a pixel is black."""
    red, green, blue = runs[0], runs[1], runs[2]
    least = _WHITE
    for index in range(len(values)):
        value = max(max(red[index], green[index]), blue[index])
        least = min(least, value)
        values[index] = max(value, _DARKEST)
    return least


@compiled
def _find_gains(values: np.ndarray, gains: np.ndarray, added: Scalar) -> None:
    """v' / v in 256ths, with v' = min(v + c, 255); `added` is c in 256ths."""
    for index in range(len(gains)):
        value = np.float32(values[index])
        gains[index] = np.uint16(np.int32(min(value * _PARTS + added, _FULL * _PARTS) / value + _HALF))


@compiled
def _multiply(run: np.ndarray, gains: np.ndarray) -> None:
    """x v' / v of one colour, in 16 bits."""
    for index in range(len(run)):
        run[index] = np.uint8(np.uint16(np.uint16(run[index]) * gains[index] + _HALF_PARTS) >> 8)


@compiled
def _lift_black(runs: np.ndarray, grey: Scalar) -> None:
    """Make black grey; no other pixel is black, since none got darker."""
    red, green, blue = runs[0], runs[1], runs[2]
    for index in range(len(red)):
        shade = _BLACK if red[index] | green[index] | blue[index] else grey
        red[index] |= shade
        green[index] |= shade
        blue[index] |= shade


@compiled
def brighten(source: np.ndarray, out: np.ndarray, last: bool, added: float) -> None:
    """x v' / v with v' = min(v + c, 255), more value in HSV, for colour images; black becomes grey.

    Products are made in 16 bits, twice as many at once as in floats. The gain is rounded to a 256th, which is half a
    grey level at most, where a value is 255.
    """
    size, more, grey = source.shape[1] // 3, np.float32(256 * added), np.uint8(min(round(added), 255))
    scratch = np.empty(3 * BLOCK, np.uint8)
    whole_values, whole_gains = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint16)
    for image in range(len(source)):
        for start in range(0, size, BLOCK):
            count = min(BLOCK, size - start)
            runs = scratch[: 3 * count].reshape(3, count)
            values, gains = whole_values[:count], whole_gains[:count]
            read_run(source[image], last, start, runs)
            least = _find_values(runs, values)
            _find_gains(values, gains, more)
            for channel in range(3):
                _multiply(runs[channel], gains)
            if least == 0:
                _lift_black(runs, grey)
            write_run(runs, last, start, out[image])


@compiled
def _saturated(runs: np.ndarray, factor: Scalar, added: Scalar) -> None:
    """v − (v − x) s' / s; grey has hue 0, so green and blue of it lose what is added."""
    red, green, blue = runs[0], runs[1], runs[2]
    for index in range(len(red)):
        value = np.float32(max(max(red[index], green[index]), blue[index]))
        spread = value - np.float32(min(min(red[index], green[index]), blue[index]))
        wanted = min(spread * factor + value * added, value)
        share = wanted / max(spread, _ONE)
        top = value + _HALF
        paler = top - (wanted if spread == _ZERO else _ZERO)
        red[index] = np.uint8(top - (value - np.float32(red[index])) * share)
        green[index] = np.uint8(paler - (value - np.float32(green[index])) * share)
        blue[index] = np.uint8(paler - (value - np.float32(blue[index])) * share)


@compiled
def saturate(source: np.ndarray, out: np.ndarray, last: bool, factor: float, added: float) -> None:
    """More or less saturation, in HSV, for colour images."""
    size, times, plus = source.shape[1] // 3, np.float32(factor), np.float32(added)
    scratch = np.empty(3 * BLOCK, np.uint8)
    for image in range(len(source)):
        for start in range(0, size, BLOCK):
            count = min(BLOCK, size - start)
            runs = scratch[: 3 * count].reshape(3, count)
            read_run(source[image], last, start, runs)
            _saturated(runs, times, plus)
            write_run(runs, last, start, out[image])
