"""Bilinear sampling of bytes at positions between pixels, as `torch.nn.functional.grid_sample` has it.

Positions of some rows are worked out together, then pixels are fetched one by one. The three colours of a pixel are
packed into one number, 21 bits for each, so that they are weighed by one product; weights are 8,192ths, which sum to 1,
so that an even image stays as it is. Cost: COST
"""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled

_TOGETHER = 1024  # positions: in a small image, a row is too short to be worth a loop of its own
_ONE, _TWO, _HALF, _ZERO = np.float32(1), np.float32(2), np.float32(0.5), np.float32(0)
_BITS, _LANE, _PARTS = np.uint64(13), np.uint64(21), np.float32(2**13)
_HALVES, _ALONE = np.uint64(2**12 * (1 + 2**21 + 2**42)), np.uint64(2**21 - 1)


@compiled
def _reflect(places: np.ndarray, low: Scalar, span: Scalar, most: Scalar) -> None:
    """Into [low, low + span], by mirrors at both ends, and then into [0, most]."""
    for index in range(len(places)):
        place = abs(places[index] - low)
        turns = np.floor(place / span)
        rest = place - turns * span
        odd = turns - _TWO * np.floor(turns * _HALF)
        place = (span - rest if odd > _HALF else rest) + low
        places[index] = min(max(place, _ZERO), most)


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
def _fetch(pixels: np.ndarray, made: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> None:
    """Some rows of an image with one channel, one after the other."""
    height, width = pixels.shape
    flat = pixels.reshape(-1)
    for x in range(len(columns)):
        left, top, first, second, third, last = _weigh(columns[x], rows[x])
        here = np.uint32(top * np.int32(width) + left)
        beside = np.uint32(0 if left + 1 >= width else 1)
        below = np.uint32(0 if top + 1 >= height else width)
        above = first * np.int32(flat[here]) + second * np.int32(flat[here + beside])
        under = third * np.int32(flat[here + below]) + last * np.int32(flat[here + below + beside])
        made[x] = np.uint8((above + under + np.int32(_HALVES & _ALONE)) >> np.int32(_BITS))


@compiled
def _pack(pixels: np.ndarray, packed: np.ndarray) -> None:
    """The colours of each pixel as one number."""
    flat = pixels.reshape(-1)
    for index in range(len(flat) // 3):
        red, green, blue = np.uint64(flat[3 * index]), np.uint64(flat[3 * index + 1]), np.uint64(flat[3 * index + 2])
        packed[index] = red | green << _LANE | blue << (_LANE + _LANE)


@compiled
def _fetch_colours(packed: np.ndarray, width: int, made: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> None:
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
        made[3 * x] = np.uint8(mixed >> _BITS)
        made[3 * x + 1] = np.uint8(mixed >> (_LANE + _BITS))
        made[3 * x + 2] = np.uint8(mixed >> (_LANE + _LANE + _BITS))


@compiled
def sample_affine(planes: np.ndarray, out: np.ndarray, step: int, linear: np.ndarray, offset: np.ndarray) -> None:
    """See `(planes, height, width · step)` through maps; mirrored at the centre of the outermost pixel.

    Maps are `(images, 2, 2)` and `(images, 2)`, as `elastic.affine_map` has them.
    """
    count, height, length = planes.shape
    width = length // step
    each = count // len(linear)
    together = max(_TOGETHER // width, 1)
    columns, rows = np.empty(together * width, np.float32), np.empty(together * width, np.float32)
    across, down = np.float32(width - 1), np.float32(height - 1)
    packed = np.zeros((height + 1) * width + 1 if step == 3 else 0, np.uint64)
    for plane in range(count):
        if step == 3:
            _pack(planes[plane], packed)
        turn, move, made = linear[plane // each], offset[plane // each], out[plane].reshape(-1)
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
            part = made[top * length : bottom * length]
            if step == 3:
                _fetch_colours(packed, width, part, columns[:some], rows[:some])
            else:
                _fetch(planes[plane], part, columns[:some], rows[:some])


@compiled
def sample_moved(planes: np.ndarray, out: np.ndarray, step: int, fields: np.ndarray, scale: float) -> None:
    """The same, pixels moved by `scale` times `(images, 2, height, width)`, x and y; mirrored at a pixel's edge."""
    count, height, length = planes.shape
    width = length // step
    each = count // len(fields)
    together = max(_TOGETHER // width, 1)
    columns, rows = np.empty(together * width, np.float32), np.empty(together * width, np.float32)
    factor = np.float32(scale)
    packed = np.zeros((height + 1) * width + 1 if step == 3 else 0, np.uint64)
    for plane in range(count):
        if step == 3:
            _pack(planes[plane], packed)
        made = out[plane].reshape(-1)
        for top in range(0, height, together):
            bottom = min(top + together, height)
            for y in range(top, bottom):
                across, down = fields[plane // each, 0, y], fields[plane // each, 1, y]
                column, row = columns[(y - top) * width :], rows[(y - top) * width :]
                for x in range(width):
                    column[x] = np.float32(x) + across[x] * factor
                    row[x] = np.float32(y) + down[x] * factor
            some = (bottom - top) * width
            _reflect(columns[:some], -_HALF, np.float32(width), np.float32(width - 1))
            _reflect(rows[:some], -_HALF, np.float32(height), np.float32(height - 1))
            part = made[top * length : bottom * length]
            if step == 3:
                _fetch_colours(packed, width, part, columns[:some], rows[:some])
            else:
                _fetch(planes[plane], part, columns[:some], rows[:some])
