"""Compiled products of matrices for layers of few channels: a tile of the result stays in registers until it is whole.

With channels last, a convolution is a product whose rows overlap: each begins one sample after the one before. The
library wants rows that do not, so it is called once for every phase (see `convolution`), and reads and writes the
result as often. Here 8 rows of 32 values are summed in registers, over all that they are the sum of, and rows begin
wherever they do. The same tile gives the convolution, and the gradients of its weights and of its sequence.
For processors with vectors of 512 bits, of which a tile fills 16 of 32. Needs numba; `convolution` decides where these
are used.
"""

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from haptera.contrastive.kernels import Array, activate, compiled, weigh

ROWS, LANES = 8, 16
"""Rows of a tile, and values of a vector."""
WIDTH = 2 * LANES
"""Values of a row of a tile."""
CHUNK = 128
"""Samples over which a gradient of weights is summed before the next rows of it are: they stay in the first cache."""


def _generate(rows: int, onto: bool, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """Write the code of a tile: the sums are variables that the compiler keeps in registers."""
    a, a_at, a_row, a_step, b, b_at, b_step, c, c_at, c_row, count, d, d_at, d_row = given
    vector = ir.VectorType(ir.FloatType(), LANES)
    nothing, spread = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)

    def begin(argument: int, array: Any, at: Any) -> Any:
        return builder.gep(context.make_array(signature.args[argument])(context, builder, array).data, [at])

    def place(pointer: Any, number: int) -> Any:
        beside = builder.gep(pointer, [ir.Constant(count.type, number * LANES)])
        return builder.bitcast(beside, ir.PointerType(vector))

    def lines(pointer: Any, step: Any) -> list[Any]:
        return [builder.gep(pointer, [builder.mul(step, ir.Constant(count.type, row))]) for row in range(rows)]

    first, left, made = begin(0, a, a_at), begin(4, b, b_at), lines(begin(7, c, c_at), c_row)
    sums = [[cgutils.alloca_once(builder, vector) for _ in range(2)] for _ in range(rows)]
    for line, each in zip(lines(begin(11, d, d_at), d_row), sums, strict=True):
        for half, total in enumerate(each):
            start = builder.load(place(line, half), align=4) if onto else ir.Constant(vector, None)
            builder.store(start, total)
    taken = lines(first, a_row)
    with cgutils.for_range(builder, count) as loop:
        line = builder.gep(left, [builder.mul(loop.index, b_step)])
        columns = [builder.load(place(line, half), align=4) for half in range(2)]
        beside = builder.mul(loop.index, a_step)
        for pointer, each in zip(taken, sums, strict=True):
            value = builder.load(builder.gep(pointer, [beside]), align=4)
            one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
            factor = builder.shuffle_vector(one, nothing, spread)
            for column, total in zip(columns, each, strict=True):
                product = builder.fmul(factor, column, flags=("contract",))
                builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
    for line, each in zip(made, sums, strict=True):
        for half, total in enumerate(each):
            builder.store(builder.load(total), place(line, half), align=4)
    return context.get_dummy_value()


def _tile(rows: int, onto: bool) -> Any:
    """Return what writes to `c[row, :WIDTH]` the sum over `count` of `a[row, i] · b[i, :WIDTH]`, onto that of `d` or 0.

    Arrays are flat; of each is said where it begins, and how far the next row or value is.
    """

    def tile(
        typing: Any,
        a: Any,
        a_at: Any,
        a_row: Any,
        a_step: Any,
        b: Any,
        b_at: Any,
        b_step: Any,
        c: Any,
        c_at: Any,
        c_row: Any,
        count: Any,
        d: Any,
        d_at: Any,
        d_row: Any,
    ) -> Any:
        del typing, a_at, a_row, a_step, b_at, b_step, c_at, c_row, count, d_at, d_row
        whole = types.intp
        declared = types.void(a, whole, whole, whole, b, whole, whole, c, whole, whole, whole, d, whole, whole)
        return declared, partial(_generate, rows, onto)

    return intrinsic(tile)


_tall, _tall_onto, _single, _single_onto = _tile(ROWS, False), _tile(ROWS, True), _tile(1, False), _tile(1, True)


@compiled
def _multiply(
    a: Array,
    a_at: int,
    a_row: int,
    a_step: int,
    b: Array,
    b_at: int,
    b_step: int,
    c: Array,
    c_at: int,
    c_row: int,
    rows: int,
    count: int,
    columns: int,
    onto: bool,
    d: Array,
    d_at: int,
    d_row: int,
) -> None:
    """The same for any number of rows, and columns that are a multiple of `WIDTH`."""
    for left in range(0, columns, WIDTH):
        right, made, before, row = b_at + left, c_at + left, d_at + left, 0
        while row < rows:
            taken, put, start = a_at + row * a_row, made + row * c_row, before + row * d_row
            if row + ROWS <= rows:
                if onto:
                    _tall_onto(a, taken, a_row, a_step, b, right, b_step, c, put, c_row, count, d, start, d_row)
                else:
                    _tall(a, taken, a_row, a_step, b, right, b_step, c, put, c_row, count, d, start, d_row)
                row += ROWS
            else:
                if onto:
                    _single_onto(a, taken, a_row, a_step, b, right, b_step, c, put, c_row, count, d, start, d_row)
                else:
                    _single(a, taken, a_row, a_step, b, right, b_step, c, put, c_row, count, d, start, d_row)
                row += 1


@compiled
def convolve(sequence: Array, columns: Array, out: Array) -> None:
    """Fill `out` with the convolution of stride 1.

    Args:
        sequence: `(batch, time, channels)`.
        columns: `(kernel * channels, outputs)`.
        out: `(batch, time − kernel + 1, outputs)`.
    """
    batch, time, channels = sequence.shape
    places, outputs = out.shape[1], out.shape[2]
    one, two, three = sequence.reshape(-1), columns.reshape(-1), out.reshape(-1)
    each, rows = (1, places) if batch == 1 else (places, batch)
    a_row, c_row = (channels, outputs) if batch == 1 else (time * channels, places * outputs)
    for place in range(each):
        _multiply(
            one, place * channels, a_row, 1, two, 0, outputs, three, place * outputs, c_row,
            rows, len(columns), outputs, False, three, 0, 0,
        )  # fmt: skip


@compiled
def fill_layer(sequence: Array, columns: Array, bias: Array, shortcut: Array, slope: Array, out: Array) -> None:
    """Convolve a sequence, or windows, and go on as `activate` does.

    Some rows at a time, so that what a product makes is still in the first cache when it is activated.

    Args:
        sequence: `(batch, time, channels)`.
        columns: `(kernel * channels, outputs)`.
        bias: `(outputs,)`.
        shortcut: `(batch, places + 2, outputs)`, the first and the last of which are left out; or of length 0.
        slope: `(batch, time − kernel + 1, outputs)`.
        out: the same.
    """
    batch, time, channels = sequence.shape
    places, outputs = out.shape[1], out.shape[2]
    one, two, added = sequence.reshape(-1), columns.reshape(-1), shortcut.reshape(-1)
    steep, made = slope.reshape(-1), out.reshape(-1)
    along = CHUNK if batch == 1 else places
    together = 1 if batch == 1 else max(CHUNK // places, 1)
    values = np.empty(together * along * outputs, np.float32)
    for group in range(0, batch, together):
        windows = min(together, batch - group)
        for start in range(0, places, along):
            rows = min(along, places - start)
            for place in range(1 if batch == 1 else places):
                _multiply(
                    one, (group * time + start + place) * channels, channels if batch == 1 else time * channels, 1,
                    two, 0, outputs, values, place * outputs, outputs if batch == 1 else places * outputs,
                    rows if batch == 1 else windows, len(columns), outputs, False, values, 0, 0,
                )  # fmt: skip
            first, size = (group * places + start) * outputs, windows * rows * outputs
            begin = (group * (places + 2) + start) * outputs
            beside = added[begin : begin + windows * (rows + 2) * outputs]  # of length 0 where there is none
            activate(
                values[:size].reshape(windows, -1), bias, beside.reshape(windows, -1), outputs,
                steep[first : first + size].reshape(windows, -1), made[first : first + size].reshape(windows, -1),
            )  # fmt: skip


@compiled
def gradient_of_columns(gradient: Array, sequence: Array, out: Array) -> None:
    """Fill `out` `(kernel * channels, outputs)` with the gradient of the columns, from that of what was made."""
    batch, time, channels = sequence.shape
    places, outputs = gradient.shape[1], gradient.shape[2]
    one, two, three = sequence.reshape(-1), gradient.reshape(-1), out.reshape(-1)
    each, inner = (1, places) if batch == 1 else (places, batch)
    a_step, b_step = (channels, outputs) if batch == 1 else (time * channels, places * outputs)
    for place in range(each):
        for start in range(0, inner, CHUNK):
            count = min(CHUNK, inner - start)
            _multiply(
                one, place * channels + start * a_step, 1, a_step, two, place * outputs + start * b_step, b_step,
                three, 0, outputs, len(out), count, outputs, place + start > 0, three, 0, outputs,
            )  # fmt: skip


@compiled
def weigh_layer(slope: Array, gradient: Array, sequence: Array, out: Array, total: Array) -> None:
    """Do what `weigh` does, and find the gradient of the columns, some rows at a time as above.

    Args:
        slope: `(1, places, outputs)`, which becomes the gradient of the values.
        gradient: of what the layer gave, the same.
        sequence: `(1, time, channels)`.
        out: `(kernel * channels, outputs)`.
        total: `(outputs,)`, the gradient of the bias.
    """
    channels = sequence.shape[2]
    places, outputs = slope.shape[1], slope.shape[2]
    one, two, three, four = sequence.reshape(-1), slope.reshape(-1), out.reshape(-1), gradient.reshape(-1)
    part = np.empty(outputs, np.float32)
    total[:] = 0
    for start in range(0, places, CHUNK):
        count = min(CHUNK, places - start)
        first, last = start * outputs, (start + count) * outputs
        weigh(two[first:last], four[first:last], part)
        for channel in range(outputs):
            total[channel] += part[channel]
        _multiply(
            one, start * channels, 1, channels, two, first, outputs, three, 0, outputs,
            len(out), count, outputs, start > 0, three, 0, outputs,
        )  # fmt: skip


@compiled
def gradient_of_sequence(gradient: Array, turned: Array, shortcut: Array, out: Array) -> None:
    """Fill `out` `(batch, time, channels)` with the gradient of the sequence.

    Args:
        gradient: `(batch, time − kernel + 1, outputs)`.
        turned: `(kernel * outputs, channels)`, the last sample of the kernel first.
        shortcut: `(batch, time − 2, channels)`, which is added to all but the outermost samples; or of length 0.
        out: see above.
    """
    batch, time, channels = out.shape
    places, outputs = gradient.shape[1], gradient.shape[2]
    kernel = time - places + 1
    one, two, three, four = gradient.reshape(-1), turned.reshape(-1), out.reshape(-1), shortcut.reshape(-1)
    place = 0
    while place < time:
        low, high = max(0, kernel - 1 - place), min(kernel, time - place)  # part of the kernel that reaches it
        onto = len(four) > 0 and 0 < place < time - 1
        along = batch == 1 and high - low == kernel and onto == (len(four) > 0)
        rows = min(places, time - 1 if onto else time) - place if along else batch
        _multiply(
            one, (place - kernel + 1 + low) * outputs, outputs if along else places * outputs, 1,
            two, low * outputs * channels, channels, three, place * channels, channels if along else time * channels,
            rows, (high - low) * outputs, channels,
            onto, four, (place - 1) * channels, channels if along else (time - 2) * channels,
        )  # fmt: skip
        place += rows if along else 1
