"""Bilinear sampling of bytes at positions between pixels, as `torch.nn.functional.grid_sample` has it.

Positions of some rows are worked out together, then pixels are fetched one by one. Cost: about 6 ns per pixel in
colour.
"""

import numpy as np

from haptera.shifts.kernels.compiled import Scalar, compiled

_TOGETHER = 1024  # positions: in a small image, a row is too short to be worth a loop of its own
_ONE, _TWO, _HALF, _ZERO = np.float32(1), np.float32(2), np.float32(0.5), np.float32(0)


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
def _mix(flat: np.ndarray, here: Scalar, beside: Scalar, below: Scalar, right: Scalar, low: Scalar) -> Scalar:
    """The value between four."""
    one, two = np.float32(flat[here]), np.float32(flat[here + below])
    one += right * (np.float32(flat[here + beside]) - one)
    two += right * (np.float32(flat[here + below + beside]) - two)
    return np.uint8(np.int32(one + low * (two - one) + _HALF))


@compiled
def _fetch(pixels: np.ndarray, made: np.ndarray, step: int, columns: np.ndarray, rows: np.ndarray) -> None:
    """Some rows of an image, one after the other."""
    height, length = pixels.shape
    flat = pixels.reshape(-1)
    for x in range(len(columns)):
        left, top = np.int64(columns[x]), np.int64(rows[x])
        right, low = columns[x] - np.float32(left), rows[x] - np.float32(top)
        start = left * step
        here = np.uint64(top * length + start)
        beside = np.uint64(0 if start + step >= length else step)
        below = np.uint64(0 if top + 1 >= height else length)
        if step == 3:
            made[3 * x] = _mix(flat, here, beside, below, right, low)
            made[3 * x + 1] = _mix(flat, here + np.uint64(1), beside, below, right, low)
            made[3 * x + 2] = _mix(flat, here + np.uint64(2), beside, below, right, low)
        else:
            made[x] = _mix(flat, here, beside, below, right, low)


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
    for plane in range(count):
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
            _fetch(planes[plane], made[top * length : bottom * length], step, columns[:some], rows[:some])


@compiled
def sample_moved(planes: np.ndarray, out: np.ndarray, step: int, fields: np.ndarray, scale: float) -> None:
    """The same, pixels moved by `scale` times `(images, 2, height, width)`, x and y; mirrored at a pixel's edge."""
    count, height, length = planes.shape
    width = length // step
    each = count // len(fields)
    together = max(_TOGETHER // width, 1)
    columns, rows = np.empty(together * width, np.float32), np.empty(together * width, np.float32)
    factor = np.float32(scale)
    for plane in range(count):
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
            _fetch(planes[plane], made[top * length : bottom * length], step, columns[:some], rows[:some])
