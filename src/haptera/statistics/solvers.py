"""Solvers for many fits at once, with what each fit would predict for a point that it had not seen.

Least squares, Huber's estimate, and Chebyshev's line, which has the least largest residual. A batch of fits shares its
shapes: other data, other weights, or other switches between two pieces in each. The prediction of least squares for a
left-out point follows from its residual e and leverage l as y - e / (1 - l), which is exact; no fit is repeated.
Cost: one pass over (fits, points, terms); the normal equations are solved, which is safe for two to four terms of
order one.
"""

from typing import NamedTuple

import numpy as np

SINGULAR = 1e-11
CHANGE = 1e-7
HUBER = 1.345
"""Residuals beyond so many standard deviations lose weight; 95 % efficient where errors are normal."""
MEDIAN_OF_NORMAL = 0.6744897501960817
ROUNDS, SCALED = 50, 5
"""Rounds of reweighting at most, and in how many of them the scale is found anew."""
HALVINGS, EDGE = 45, 1e-9


class Solution(NamedTuple):
    """Fits `(...)`, terms `d`, points `h`.

    Attributes:
        coefficients: `(..., d)`; NaN where the points do not determine them.
        fitted: `(..., h)`.
        left_out: `(..., h)`, the prediction for each point of a fit to all others.
        leverage: `(..., h)`, how much of its own fitted value each point decides.
        squares: `(...)`, the weighted sum of squared residuals.
    """

    coefficients: np.ndarray
    fitted: np.ndarray
    left_out: np.ndarray
    leverage: np.ndarray
    squares: np.ndarray


def least_squares(basis: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Solution:
    """Weighted least squares.

    Args:
        basis: `(..., h, d)`.
        values: `(..., h)`.
        weights: `(..., h)`; a point of weight 0 is not seen.
    """
    coefficients, inverse = _coefficients(basis, values, weights)
    fitted = (basis @ coefficients[..., None])[..., 0]
    leverage = weights * ((basis @ inverse) * basis).sum(-1)
    residual = values - fitted
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = values - residual / np.where(leverage < 1 - SINGULAR, 1 - leverage, np.nan)
    return Solution(coefficients, fitted, left_out, leverage, (weights * residual**2).sum(-1))


def huber(basis: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Solution:
    """Huber's estimate: squares for small residuals, absolute values for large ones, by reweighting.

    The scale is the median absolute residual of the first rounds; from then on the rounds can only improve. What is
    predicted for a left-out point takes the weights of the others as they are, which is off by a second order of one
    point's influence.
    """
    coefficients, _ = _coefficients(basis, values, weights)
    factor, scale = np.ones(1), np.empty(0)
    for turn in range(ROUNDS):
        residual = np.abs(values - (basis @ coefficients[..., None])[..., 0])
        if turn < SCALED:
            scale = HUBER / MEDIAN_OF_NORMAL * _weighted_median(residual, weights)[..., None]
        factor = np.divide(scale, residual, out=np.ones_like(residual), where=residual > scale)
        before = coefficients
        coefficients, _ = _coefficients(basis, values, weights * factor)
        if turn >= SCALED and np.nanmax(np.abs(coefficients - before), initial=0.0) < CHANGE:
            break
    return least_squares(basis, values, weights * factor)


def _coefficients(basis: np.ndarray, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `(..., d)` and the inverse `(..., d, d)` of the normal equations."""
    outer = basis[..., :, None] * basis[..., None, :]
    fits = np.broadcast_shapes(basis.shape[:-2], weights.shape[:-1])
    normal = (weights[..., None, :] @ outer.reshape(*outer.shape[:-2], -1))[..., 0, :]
    inverse = _invert(normal.reshape(*fits, *2 * basis.shape[-1:]))
    right = ((weights * values)[..., None, :] @ basis)[..., 0, :]
    return (inverse @ right[..., None])[..., 0], inverse


def _invert(normal: np.ndarray) -> np.ndarray:
    """The inverse of each matrix, NaN where it is singular."""
    size = np.sqrt(np.maximum(np.diagonal(normal, axis1=-2, axis2=-1), np.finfo(float).tiny))
    scaled = normal / (size[..., :, None] * size[..., None, :])
    singular = np.linalg.eigvalsh(scaled)[..., 0] < SINGULAR
    scaled = np.where(singular[..., None, None], np.eye(normal.shape[-1]), scaled)
    inverse = np.linalg.inv(scaled) / (size[..., :, None] * size[..., None, :])
    return np.where(singular[..., None, None], np.nan, inverse)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return `(...)`, the least value that at least half of the weight does not exceed."""
    weights = np.broadcast_to(weights, values.shape)
    order = np.argsort(values, axis=-1)
    total = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1)
    place = np.argmax(total >= total[..., -1:] / 2, axis=-1)
    return np.take_along_axis(np.take_along_axis(values, order, -1), place[..., None], -1)[..., 0]


def chebyshev(basis: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Solution:
    """The line with the least largest residual."""
    u, v, seen = np.broadcast_arrays(basis[..., 1], values, weights > 0)
    line = _strip(u, v, seen)
    fitted = line[..., :1] + line[..., 1:] * u
    left_out = fitted.copy() if u.ndim == 1 else np.full(u.shape, np.nan)  # for a batch nobody asks
    size = np.where(seen, np.abs(v - fitted), 0.0)
    for place in np.flatnonzero(size > max(size.max() - EDGE, EDGE)) if u.ndim == 1 else ():
        # Only models at the edge of the strip have a say in where it lies; on a line without width, none has.
        other = _strip(u, v, seen & (np.arange(len(u)) != place))
        left_out[place] = other[0] + other[1] * u[place]
    return Solution(line, fitted, left_out, np.zeros_like(fitted), (weights * (v - fitted) ** 2).sum(-1))


def _strip(u: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return `(..., 2)`, intercept and slope of the middle of the narrowest upright strip that holds all points.

    The width is convex in the slope, so halving finds it. The two outermost points alone make the strip wider than that
    along their own line, once the slope is further from theirs than that width over their distance.
    """

    def strip(slope: np.ndarray) -> list[np.ndarray]:
        above = v - slope[..., None] * u
        top, bottom = np.where(seen, above, -np.inf).argmax(-1), np.where(seen, above, np.inf).argmin(-1)
        return [*_at(above, top, bottom), *_at(u, top, bottom)]

    last, first = np.where(seen, u, -np.inf).argmax(-1), np.where(seen, u, np.inf).argmin(-1)
    (end, start), (to, origin) = _at(u, last, first), _at(v, last, first)
    span = np.where(end - start > SINGULAR, end - start, np.nan)
    slope = (to - origin) / span
    high, low, _, _ = strip(slope)
    least, most = slope - (high - low) / span, slope + (high - low) / span
    for _ in range(HALVINGS):
        slope = (least + most) / 2
        _, _, top, bottom = strip(slope)
        falls = top > bottom  # with the slope, the width changes by bottom - top
        least, most = np.where(falls, slope, least), np.where(falls, most, slope)
    high, low, _, _ = strip(slope)
    return np.stack([(high + low) / 2, slope], axis=-1)


def _at(values: np.ndarray, *places: np.ndarray) -> list[np.ndarray]:
    """Return `(...)`, the values at each of the places `(...)`."""
    return [np.take_along_axis(values, place[..., None], -1)[..., 0] for place in places]
