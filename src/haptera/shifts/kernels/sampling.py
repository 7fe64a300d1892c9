"""Bilinear sampling of bytes at positions between pixels, as `torch.nn.functional.grid_sample` has it.

Positions of some rows are worked out together, then pixels are fetched one by one. The three colours of a pixel are
packed into one number, 21 bits for each, so that they are weighed by one product; weights are 8,192ths, which sum to 1,
so that an even image stays as it is. Cost: about 4 ns per pixel in colour.
"""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled

_TOGETHER = 1024  # positions: in a small image, a row is too short to be worth a loop of its own
_ONE, _TWO, _HALF, _ZERO = np.float32(1), np.float32(2), np.float32(0.5), np.float32(0)
_BITS, _LANE, _PARTS = np.uint64(13), np.uint64(21), np.float32(2**13)
_HALVES = np.uint64(2**12 * (1 + 2**21 + 2**42))


@compiled
def _reflect(places: np.ndarray, low: Scalar, span: Scalar, most: Scalar) -> None:
    """Into [low, low + span], by mirrors at both ends, and then into [0, most]; what is not a number becomes 0."""
    for index in range(len(places)):
        place = abs(places[index] - low)
        turns = np.floor(place / span)
        rest = place - turns * span
        odd = turns - _TWO * np.floor(turns * _HALF)
        place = (span - rest if odd > _HALF else rest) + low
        places[index] = min(place, most) if place > _ZERO else _ZERO


@compiled
def _fetch(pixels: np.ndarray, made: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> None:
    """Some rows of a grey image, one after the other."""
    height, width = pixels.shape
    flat = pixels.reshape(-1)
    for x in range(len(columns)):
        left, top = np.int64(columns[x]), np.int64(rows[x])
        right, low = columns[x] - np.float32(left), rows[x] - np.float32(top)
        here = np.uint64(top * width + left)
        beside = np.uint64(0 if left + 1 >= width else 1)
        below = np.uint64(0 if top + 1 >= height else width)
        one, two = np.float32(flat[here]), np.float32(flat[here + below])
        one += right * (np.float32(flat[here + beside]) - one)
        two += right * (np.float32(flat[here + below + beside]) - two)
        made[x] = np.uint8(np.int32(one + low * (two - one) + _HALF))


@compiled
def _weigh(column: Scalar, row: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]:
    """The pixel above and left of a position, and weights of it, of that beside it, of that below, and of the last."""
    left, top = np.int32(column), np.int32(row)
    right, low = (column - np.float32(left)) * _PARTS, row - np.float32(top)
    last = np.int32(right * low + _HALF)
    second, third = np.int32(right + _HALF) - last, np.int32(low * _PARTS + _HALF) - last
    # −1 at least, where the other three are 8,193: the sum of all values is never negative
    return left, top, np.int32(_PARTS) - second - third - last, second, third, last


@compiled
def _pack(pixels: np.ndarray, step: int, apart: int, packed: np.ndarray) -> None:
    """The colours of each pixel as one number; pixels are `step` values from each other, and colours `apart`."""
    for index in range(len(pixels) // 3):
        place = index * step
        red, green, blue = pixels[place], pixels[place + apart], pixels[place + 2 * apart]
        packed[index] = np.uint64(red) | np.uint64(green) << _LANE | np.uint64(blue) << (_LANE + _LANE)


@compiled
def _fetch_colours(
    packed: np.ndarray, width: int, step: int, apart: int, made: np.ndarray, columns: np.ndarray, rows: np.ndarray
) -> None:
    """The same of packed colours, behind which there is room for a row and a pixel that count nothing."""
    beside, below, across = packed[1:], packed[width:], packed[width + 1 :]
    for x in range(len(columns)):
        left, top, first, second, third, last = _weigh(columns[x], rows[x])
        here = np.uint32(top * np.int32(width) + left)
        mixed = (
            packed[here] * np.uint64(np.int64(first))
            + beside[here] * np.uint64(second)
            + below[here] * np.uint64(third)
            + across[here] * np.uint64(last)
            + _HALVES
        )
        red, green = np.uint8(mixed >> _BITS), np.uint8(mixed >> (_LANE + _BITS))
        blue = np.uint8(mixed >> (_LANE + _LANE + _BITS))
        if step == 3:
            made[3 * x], made[3 * x + 1], made[3 * x + 2] = red, green, blue
        else:
            made[x], made[x + apart], made[x + 2 * apart] = red, green, blue


@compiled
def sample_affine(planes: np.ndarray, out: np.ndarray, step: int, linear: np.ndarray, offset: np.ndarray) -> None:
    """See `(planes, height, width · step)` through maps; mirrored at the centre of the outermost pixel.

    Maps are `(images, 2, 2)` and `(images, 2)`, as `elastic.affine_map` has them.
    """
    images, height, width = len(linear), planes.shape[1], planes.shape[2] // step
    size = height * width
    colours, apart = planes.size == 3 * images * size, 1 if step == 3 else size
    source, target = planes.reshape(images, -1), out.reshape(images, -1)
    together = max(_TOGETHER // width, 1)
    columns, rows = np.empty(together * width, np.float32), np.empty(together * width, np.float32)
    across, down = np.float32(width - 1), np.float32(height - 1)
    packed = np.zeros(size + width + 1, np.uint64)
    for image in range(images):
        turn, move = linear[image], offset[image]
        if colours:
            _pack(source[image], step, apart, packed)
        for top in range(0, height, together):
            bottom = min(top + together, height)
            for y in range(top, bottom):
                first, second = turn[0, 1] * np.float32(y) + move[0], turn[1, 1] * np.float32(y) + move[1]
                column, row = columns[(y - top) * width :], rows[(y - top) * width :]
                for x in range(width):
                    column[x] = (turn[0, 0] * np.float32(x) + first + _ONE) * _HALF * across
                    row[x] = (turn[1, 0] * np.float32(x) + second + _ONE) * _HALF * down
            some = (bottom - top) * width
            _reflect(columns[:some], _ZERO, max(across, np.float32(1e-6)), across)
            _reflect(rows[:some], _ZERO, max(down, np.float32(1e-6)), down)
            made = target[image, top * width * step :]
            if colours:
                _fetch_colours(packed, width, step, apart, made, columns[:some], rows[:some])
            else:
                _fetch(planes[image], made, columns[:some], rows[:some])


@compiled
def sample_moved(planes: np.ndarray, out: np.ndarray, step: int, fields: np.ndarray, scale: float) -> None:
    """The same, pixels moved by `scale` times `(images, 2, height, width)`, x and y; mirrored at a pixel's edge."""
    images, height, width = len(fields), planes.shape[1], planes.shape[2] // step
    size = height * width
    colours, apart = planes.size == 3 * images * size, 1 if step == 3 else size
    source, target = planes.reshape(images, -1), out.reshape(images, -1)
    together = max(_TOGETHER // width, 1)
    columns, rows = np.empty(together * width, np.float32), np.empty(together * width, np.float32)
    factor = np.float32(scale)
    packed = np.zeros(size + width + 1, np.uint64)
    for image in range(images):
        if colours:
            _pack(source[image], step, apart, packed)
        for top in range(0, height, together):
            bottom = min(top + together, height)
            for y in range(top, bottom):
                across, down = fields[image, 0, y], fields[image, 1, y]
                column, row = columns[(y - top) * width :], rows[(y - top) * width :]
                for x in range(width):
                    column[x] = np.float32(x) + across[x] * factor
                    row[x] = np.float32(y) + down[x] * factor
            some = (bottom - top) * width
            _reflect(columns[:some], -_HALF, np.float32(width), np.float32(width - 1))
            _reflect(rows[:some], -_HALF, np.float32(height), np.float32(height - 1))
            made = target[image, top * width * step :]
            if colours:
                _fetch_colours(packed, width, step, apart, made, columns[:some], rows[:some])
            else:
                _fetch(planes[image], made, columns[:some], rows[:some])
