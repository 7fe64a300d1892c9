"""Compiled loops over activations with channels last: moments of images, scale and offset, and their gradients.

torch's fused BatchNorm reads its input three times, its backward pass walks channel by channel, and statistics of each
image take a tensor of their own size. Here every loop reads its input once, in the order of memory. Images are
`(positions, channels)`; several positions at once make one line, long enough for the vectors of any CPU.
Moments are found in short stretches, each around its own first value, and put together in double precision, so that a
mean far from 0 costs no digits. Needs numba; `fused.py` decides where these are used.
"""

from functools import partial
from typing import Any

import numpy as np

from haptera.extras import compile_loop

LINE = 256
"""Values of a line, at least."""
STRETCH = 16
"""Lines that are summed in single precision."""
compiled: Any = partial(compile_loop, fastmath={"contract", "nsz", "reassoc"})
Array = Any


@compiled
def image_moments(values: Array, mean: Array, variance: Array) -> None:
    """From `(batch, positions, channels)` to mean and biased variance of each image, `(batch, channels)` float64."""
    positions, channels = values.shape[1:]
    rows = min(max(1, LINE // channels), positions)
    width = rows * channels
    total, centre, spread = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    for image in range(len(values)):
        flat = values[image].reshape(-1)
        mean[image], variance[image] = 0.0, 0.0
        start, seen = 0, 0
        while start < len(flat):
            lines = min(STRETCH, (len(flat) - start) // width)
            if lines == 0:  # the last positions, fewer than a line
                rows, lines = (len(flat) - start) // channels, 1
                width = rows * channels
            centre[:width] = flat[start : start + width]
            total[:width], spread[:width] = 0, 0
            for line in range(1, lines):
                part = flat[start + line * width : start + (line + 1) * width]
                for lane in range(width):
                    apart = part[lane] - centre[lane]
                    total[lane] += apart
                    spread[lane] += apart * apart
            for lane in range(width):
                centre[lane] += total[lane] / np.float32(lines)
                spread[lane] -= total[lane] * total[lane] / np.float32(lines)
            for row in range(rows):
                seen += lines
                share = lines / seen
                for channel in range(channels):
                    lane = row * channels + channel
                    step = centre[lane] - mean[image, channel]
                    mean[image, channel] += share * step
                    variance[image, channel] += spread[lane] + step * step * share * (seen - lines)
            start += lines * width
        rows = min(max(1, LINE // channels), positions)
        width = rows * channels
        for channel in range(channels):
            variance[image, channel] /= positions


@compiled
def batch_moments(values: Array, mean: Array, variance: Array) -> None:
    """From `(batch, positions, channels)` to mean and biased variance over images and positions, `(channels,)`."""
    shape = (len(values), values.shape[2])
    means, variances = np.empty(shape), np.empty(shape)
    image_moments(values, means, variances)
    for channel in range(values.shape[2]):
        middle = means[:, channel].mean()
        spread = 0.0
        for image in range(len(values)):
            spread += variances[image, channel] + (means[image, channel] - middle) ** 2
        mean[channel], variance[channel] = middle, spread / len(values)


@compiled
def scale_images(values: Array, scale: Array, offset: Array, least: float, out: Array) -> None:
    """Values `(batch, positions, channels)` times scale plus offset, `(batch or 1, channels)`, but never below `least`.

    Images go by from the last to the first: the last ones are still in the cache after their moments were found.
    """
    positions, channels = values.shape[1:]
    rows = min(max(1, LINE // channels), positions)
    width = rows * channels
    factor, constant, bound = np.empty(width, np.float32), np.empty(width, np.float32), np.float32(least)
    for image in range(len(values) - 1, -1, -1):
        own = min(image, len(scale) - 1)
        if image == len(values) - 1 or len(scale) > 1:
            for lane in range(width):
                factor[lane], constant[lane] = scale[own, lane % channels], offset[own, lane % channels]
        flat, target = values[image].reshape(-1), out[image].reshape(-1)
        for start in range(0, len(flat), width):
            part, made = flat[start : start + width], target[start : start + width]
            for lane in range(len(part)):
                value = part[lane] * factor[lane] + constant[lane]
                made[lane] = bound if value <= bound else value  # what is not a number stays


@compiled
def scale_and_add(values: Array, scale: Array, offset: Array, other: Array, least: float, out: Array) -> None:
    """Values `(batch, positions, channels)` times scale plus offset, `(channels,)`, plus others, at least `least`."""
    positions, channels = values.shape[1:]
    rows = min(max(1, LINE // channels), positions)
    width = rows * channels
    factor, constant, bound = np.empty(width, np.float32), np.empty(width, np.float32), np.float32(least)
    for lane in range(width):
        factor[lane], constant[lane] = scale[lane % channels], offset[lane % channels]
    for image in range(len(values) - 1, -1, -1):
        flat, more, target = values[image].reshape(-1), other[image].reshape(-1), out[image].reshape(-1)
        for start in range(0, len(flat), width):
            part, extra, made = flat[start : start + width], more[start : start + width], target[start : start + width]
            for lane in range(len(part)):
                value = part[lane] * factor[lane] + constant[lane] + extra[lane]
                made[lane] = bound if value <= bound else value


@compiled
def affine(mean: Array, variance: Array, weight: Array, bias: Array, eps: float, scale: Array, offset: Array) -> None:
    """Write scale and offset, `(channels,)`, which normalise by statistics, weight and bias of that shape."""
    for channel in range(len(mean)):
        scale[channel] = weight[channel] / np.sqrt(variance[channel] + eps)
        offset[channel] = bias[channel] - mean[channel] * scale[channel]


@compiled
def gradient_sums(
    gradient: Array, values: Array, centre: Array, scale: Array, offset: Array, plain: Array, product: Array
) -> None:
    """Sums over positions of the gradient, and of gradient times value minus centre, `(batch, channels)` float64.

    The gradient counts where value times scale plus offset, `(channels,)`, is above 0, as behind a ReLU.
    """
    positions, channels = values.shape[1:]
    rows = min(max(1, LINE // channels), positions)
    width = rows * channels
    first, second, middle = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    factor, constant = np.empty(width, np.float32), np.empty(width, np.float32)
    for lane in range(width):
        middle[lane] = centre[lane % channels]
        factor[lane], constant[lane] = scale[lane % channels], offset[lane % channels]
    for image in range(len(values)):
        flat, slope = values[image].reshape(-1), gradient[image].reshape(-1)
        plain[image], product[image] = 0.0, 0.0
        for block in range(0, len(flat), STRETCH * width):
            first[:], second[:] = 0, 0
            for start in range(block, min(block + STRETCH * width, len(flat)), width):
                part, tilt = flat[start : start + width], slope[start : start + width]
                for lane in range(len(part)):
                    value = part[lane] * factor[lane] + constant[lane]
                    own = np.float32(0) if value <= 0 else tilt[lane]
                    first[lane] += own
                    second[lane] += own * (part[lane] - middle[lane])
            for row in range(rows):
                for channel in range(channels):
                    plain[image, channel] += first[row * channels + channel]
                    product[image, channel] += second[row * channels + channel]


@compiled
def combine_images(
    gradient: Array, values: Array, one: Array, two: Array, constant: Array, scale: Array, offset: Array, out: Array
) -> None:
    """Gradient times one, plus values times two, plus a constant; these are `(batch or 1, channels)`.

    The gradient counts where value times scale plus offset, `(channels,)`, is above 0.
    """
    positions, channels = values.shape[1:]
    rows = min(max(1, LINE // channels), positions)
    width = rows * channels
    factors = np.empty((5, width), np.float32)
    for lane in range(width):
        factors[3, lane], factors[4, lane] = scale[lane % channels], offset[lane % channels]
    for image in range(len(values) - 1, -1, -1):
        own = min(image, len(one) - 1)
        if image == len(values) - 1 or len(one) > 1:
            for lane in range(width):
                factors[0, lane], factors[1, lane] = one[own, lane % channels], two[own, lane % channels]
                factors[2, lane] = constant[own, lane % channels]
        a, b, c, factor, start_at = factors[0], factors[1], factors[2], factors[3], factors[4]
        flat, slope, target = values[image].reshape(-1), gradient[image].reshape(-1), out[image].reshape(-1)
        for start in range(0, len(flat), width):
            part, tilt = flat[start : start + width], slope[start : start + width]
            made = target[start : start + width]
            for lane in range(len(part)):
                value = part[lane] * factor[lane] + start_at[lane]
                counted = np.float32(0) if value <= 0 else tilt[lane]
                made[lane] = counted * a[lane] + part[lane] * b[lane] + c[lane]
