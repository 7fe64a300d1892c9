"""Line: how accuracy on shifted data follows from accuracy on the reference, fitted in several ways.

Source: "Why do classifier accuracies show linear trends under distribution shift?", problem 1, figure 5 and section
5.3 (linear, probit, two pieces); the line with the least largest residual (Chebyshev) is the one that its corollary 1
speaks of.
Added: logit, a robust line (Huber), the best switch between two pieces, and the error for a left-out model, by which
fits can be compared that R² of the fitted models cannot. R² and residuals are in accuracy, whatever the scale of the
fit.
Cost: that of least squares; the best switch is sought at every model, or at 200 of them, spread evenly over their
ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.statistics.least_squares import SINGULAR, Solution, huber, least_squares
from haptera.statistics.scale import SCALES, inside

SCALE = {
    "linear": "linear", "probit": "probit", "logit": "logit", "two_piece": "linear",
    "chebyshev": "linear", "robust": "linear", "robust_probit": "probit",
}  # fmt: skip
"""Name of a fit -> the scale on which it is straight."""
FITS = tuple(SCALE)
HALVINGS = 45
EDGE = 1e-9
MOST_SWITCHES = 200


@dataclass(frozen=True, eq=False)
class Line:
    """A fitted trend, or a batch of them.

    Attributes:
        fit: one of `FITS`.
        coefficients: `(..., d)`, on the scale of the fit: intercept and slope; for two pieces that meet, then the
            change of slope at the switch; for two that do not, the changes of intercept and of slope.
        switch: for two pieces, the accuracy up to which the first one goes.
    """

    fit: str
    coefficients: np.ndarray
    switch: float | None = None

    def __call__(self, accuracy: Any) -> np.ndarray:
        """The accuracy on shifted data that goes with one on the reference; `(..., points)`."""
        return np.asarray(SCALES[SCALE[self.fit]][1](self.scaled(accuracy)))

    def scaled(self, accuracy: Any) -> np.ndarray:
        """The same on the scale of the fit."""
        there = SCALES[SCALE[self.fit]][0]
        basis = _basis(there(np.asarray(accuracy, float)), self.switch, self.coefficients.shape[-1])
        return (basis @ self.coefficients[..., None])[..., 0]

    @property
    def slope(self) -> np.ndarray:
        """Return that of the line on its scale; of two pieces, that of the first."""
        return self.coefficients[..., 1]

    @property
    def intercept(self) -> np.ndarray:
        """Return that of the line on its scale; of two pieces, that of the first."""
        return self.coefficients[..., 0]

    @property
    def pieces(self) -> list[dict[str, float]]:
        """Slope and intercept of each piece."""
        first, slope, *change = self.coefficients.tolist()
        pieces = [{"slope": slope, "intercept": first}]
        if len(change) == 1:
            assert self.switch is not None
            pieces.append({"slope": slope + change[0], "intercept": first - change[0] * self.switch})
        elif change:
            pieces.append({"slope": slope + change[1], "intercept": first + change[0]})
        return pieces


@dataclass(frozen=True, eq=False)
class LineFit:
    """A line, or a batch of them, with what it says about its own models.

    Attributes:
        line: the line.
        residual: `(..., models)`, accuracy on shifted data above the line.
        left_out: `(..., models)`, the same above the line of all other models.
        away: `(..., models)`, the same on the scale of the fit.
    """

    line: Line
    residual: np.ndarray
    left_out: np.ndarray
    away: np.ndarray


def fit(
    reference: np.ndarray,
    shifted: np.ndarray,
    kind: str = "linear",
    *,
    weights: np.ndarray | None = None,
    n: tuple[Any, Any] | None = None,
    switch: int | float | None = None,
    joined: bool = True,
) -> LineFit:
    """Fit a line to the accuracies of models.

    Args:
        reference: `(..., models)`, accuracies on the reference.
        shifted: `(..., models)`, on shifted data.
        kind: one of `FITS`.
        weights: `(..., models)`; by default all count the same, and one of weight 0 is not seen.
        n: examples on the reference and on shifted data, by which accuracies of 0 and 1 are moved inside.
        switch: for two pieces, a rank (6: at the sixth least accurate model, which belongs to the first piece) or, as a
            float, an accuracy; by default the one that leaves the least squared error.
        joined: whether two pieces meet at the switch.

    >>> fit(np.array([0.5, 0.6, 0.7]), np.array([0.3, 0.42, 0.54])).line.pieces[0]["slope"].__round__(6)
    1.2
    """
    if kind not in SCALE:
        raise unknown("fit", kind, FITS)
    x, y = np.asarray(reference, float), np.asarray(shifted, float)
    if x.shape[-1] != y.shape[-1] or x.shape[-1] < 3:
        raise HapteraError(f"there are {x.shape[-1]} and {y.shape[-1]} accuracies; three models or more were expected")
    there, back = SCALES[SCALE[kind]]
    if SCALE[kind] != "linear":
        x, y = inside(x, n and n[0]), inside(y, n and n[1])
    u, v = there(x), there(y)
    w = np.ones(u.shape[-1]) if weights is None else np.asarray(weights, float)
    if kind == "two_piece":
        solved, at = _two_pieces(u, v, w, switch, joined)
    else:
        method = {"chebyshev": _chebyshev, "robust": huber, "robust_probit": huber}.get(kind, least_squares)
        solved, at = method(_basis(u, None, 2), v, w), None
    line = Line(kind, solved.coefficients, at)
    return LineFit(line, y - back(solved.fitted), y - back(solved.left_out), v - solved.left_out)


def compare_fits(
    reference: np.ndarray,
    shifted: np.ndarray,
    models: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = FITS,
    n: tuple[Any, Any] | None = None,
    switch: int | float | None = None,
    joined: bool = True,
) -> pd.DataFrame:
    """One row for each fit, the one that predicts left-out models best first.

    Returns:
        `fit`, `slope`, `intercept` (on the scale of the fit; of two pieces, the first), `r2`, `max_residual` and the
        `worst` model that has it, `left_out`, the root mean square error for models that the line has not seen, and
        `left_out_max`, the largest.
    """
    names = np.array(models if models is not None else [str(i) for i in range(len(reference))], dtype=object)
    y = np.asarray(shifted, float)
    rows = []
    for kind in kinds:
        fitted = fit(reference, shifted, kind, n=n, switch=switch, joined=joined)
        size, left_out = np.abs(fitted.residual), np.abs(fitted.left_out)
        rows.append(
            {"fit": kind, "slope": float(fitted.line.slope), "intercept": float(fitted.line.intercept)}
            | {"r2": r_squared(y, fitted.residual), "max_residual": float(size.max()), "worst": names[size.argmax()]}
            | {"left_out": float(np.sqrt(np.mean(left_out**2))), "left_out_max": float(left_out.max())}
        )
    return pd.DataFrame(rows).sort_values("left_out", kind="stable", ignore_index=True)


def r_squared(values: np.ndarray, residual: np.ndarray) -> float:
    """One minus the squared residuals over the squared distances from the mean; NaN if all values are alike."""
    spread = ((values - values.mean()) ** 2).sum()
    return float(1 - (residual**2).sum() / spread) if spread else float("nan")


def _basis(u: np.ndarray, switch: Any, terms: int) -> np.ndarray:
    """`(..., points, terms)`: one and u; then what sets in behind the switch, which may be an array of switches."""
    columns = [np.ones_like(u), u]
    if terms > 2:
        behind = u > switch
        columns += [np.where(behind, u - switch, 0.0)] if terms == 3 else [behind * 1.0, np.where(behind, u, 0.0)]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _two_pieces(
    u: np.ndarray, v: np.ndarray, w: np.ndarray, switch: int | float | None, joined: bool
) -> tuple[Solution, float]:
    terms = 3 if joined else 4
    if switch is not None:
        at = float(switch) if isinstance(switch, float) else _ranked(u, switch)
        return least_squares(_basis(u, at, terms), v, w), at
    if u.ndim > 1:
        raise HapteraError("the best switch is sought for one set of accuracies; give the switch for a batch of them")
    levels, own, times = np.unique(u, return_inverse=True, return_counts=True)
    place = np.arange(1, len(levels) - 2)  # a piece needs two models at least, of different accuracy
    if not len(place):
        raise HapteraError(f"there are {len(levels)} different accuracies, too few for two pieces")
    place = place[np.unique(np.linspace(0, len(place) - 1, min(len(place), MOST_SWITCHES)).astype(int))][:, None]
    every = least_squares(_basis(u, levels[place], terms), v, w)
    best = int(np.nanargmin(every.squares))
    # Who is left out has no say in the choice of the switch: without it, the squares fall by e² / (1 - l), and if it
    # alone has its accuracy, the switch is not there, and its piece has one model less.
    residual, alone = v - every.fitted, times[own] == 1
    few = np.where(own <= place, place + 1, len(levels) - 1 - place) - alone < 2
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = every.squares[:, None] - w * residual**2 / (1 - every.leverage)
    barred = few | (alone & (own == place)) | ~np.isfinite(squares) | ~np.isfinite(every.left_out)
    chosen = np.argmin(np.where(barred, np.inf, squares), axis=0)
    left_out = np.take_along_axis(np.where(barred, np.nan, every.left_out), chosen[None], axis=0)[0]
    return Solution(*(field[best] for field in every))._replace(left_out=left_out), float(levels[place[best, 0]])


def _ranked(u: np.ndarray, rank: int) -> float:
    """The accuracy of the rank-th least accurate model."""
    if u.ndim > 1 or not 2 <= rank <= len(u) - 2:
        raise HapteraError(f"the switch is at model {rank} of {u.shape[-1]}; 2 to {u.shape[-1] - 2} was expected")
    return float(np.sort(u)[rank - 1])


def _chebyshev(basis: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Solution:
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
