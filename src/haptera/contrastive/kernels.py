"""Compiled loops of an encoder's layers: bias, GELU and shortcut in one, with the slope of the GELU; their gradients.

torch's operations read and write the activations of a layer eight times, and find the error function twice. Here each
loop reads them once, and what the forward pass leaves for the gradient is the slope of the GELU, Φ(x) + xφ(x).
The error function is a rational function of degree 13 over 8, the exponential a polynomial of degree 7 times a power
of two; the result differs from double precision as torch's does. Needs numba; `gelu` decides where these are used.
"""

from functools import partial
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from haptera.extras import compile_loop

LINE = 256
"""Values that a loop goes over at once, at least."""
Array = Any
number = np.float32
compiled: Any = partial(compile_loop, fastmath={"contract", "nsz"})  # no other order of operations: digits would go


def _read_bits(context: Any, bits: Any) -> Any:
    """Read the bits of a whole number as a floating-point one."""
    del context, bits
    return numba.float32(numba.int32), lambda _context, builder, _types, found: builder.bitcast(
        found[0], ir.FloatType()
    )


_from_bits: Any = intrinsic(_read_bits)


@numba.njit(inline="always")
def _exponential(x: Any) -> Any:
    """e to the power of −87 to 0."""
    power = np.floor(x * number(1.44269504) + number(0.5))
    rest = x - power * number(0.693359375)
    rest = rest + power * number(2.12194440e-4)
    found = number(1 / 5040)
    for factor in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        found = found * rest + number(factor)
    return found * _from_bits((np.int32(power) + np.int32(127)) << np.int32(23))


@numba.njit(inline="always")
def _error_function(x: Any) -> Any:
    """erf, from odd over even powers; beyond 4 it is 1 in single precision."""
    x = min(max(x, number(-4)), number(4))
    square = x * x
    above = number(-2.72614225801306e-10)
    above = above * square + number(2.77068142495902e-08)
    above = above * square + number(-2.10102402082508e-06)
    above = above * square + number(-5.69250639462346e-05)
    above = above * square + number(-7.34990630326855e-04)
    above = above * square + number(-2.95459980854025e-03)
    above = above * square + number(-1.60960333262415e-02)
    below = number(-1.45660718464996e-05)
    below = below * square + number(-2.13374055278905e-04)
    below = below * square + number(-1.68282697438203e-03)
    below = below * square + number(-7.37332916720468e-03)
    below = below * square + number(-1.42647390514189e-02)
    return x * above / below


@compiled
def activate(values: Array, bias: Array, shortcut: Array, skip: int, slope: Array, out: Array) -> None:
    """Write GELU(values + bias), plus a shortcut, into `out`, and the slope of the GELU into `slope`.

    Args:
        values: `(batch, positions * channels)`.
        bias: `(channels,)`.
        shortcut: `(batch, more)`; the one of the first value is at `skip`. Of length 0 there is none.
        skip: see there.
        slope: as the values, or the values themselves.
        out: as the values.
    """
    channels, positions = len(bias), values.shape[1] // len(bias)
    width = min(max(1, LINE // channels), positions) * channels
    line = np.empty(width, np.float32)
    for lane in range(width):
        line[lane] = bias[lane % channels]
    for row in range(len(values)):
        for start in range(0, values.shape[1], width):
            part, made = values[row, start : start + width], out[row, start : start + width]
            steep = slope[row, start : start + width]
            for lane in range(len(part)):
                x = part[lane] + line[lane]
                share = number(0.5) + number(0.5) * _error_function(x * number(0.70710678))
                density = number(0.39894228) * _exponential(max(x * x * number(-0.5), number(-87)))
                made[lane] = x * share
                steep[lane] = share + x * density
            if shortcut.shape[1]:
                added = shortcut[row, skip + start : skip + start + len(part)]
                for lane in range(len(part)):
                    made[lane] += added[lane]


@compiled
def weigh(slope: Array, gradient: Array, total: Array) -> None:
    """Multiply slopes `(values,)` by a gradient in place, and sum the products of each channel `(channels,)`."""
    channels = len(total)
    width = max(1, LINE // channels) * channels
    sums = np.zeros(width, np.float32)
    for start in range(0, len(slope), width):
        part, factor = slope[start : start + width], gradient[start : start + width]
        for lane in range(len(part)):
            part[lane] *= factor[lane]
            sums[lane] += part[lane]
    total[:] = 0
    for lane in range(width):
        total[lane % channels] += sums[lane]


@compiled
def add_rows(onto: Array, starts: Array, values: Array) -> None:
    """Add `values[i]`, positions in a row `(positions * channels,)`, to `onto`, from value `starts[i]` on."""
    for row in range(len(starts)):
        part, added = onto[starts[row] : starts[row] + values.shape[1]], values[row]
        for lane in range(len(part)):
            part[lane] += added[lane]
