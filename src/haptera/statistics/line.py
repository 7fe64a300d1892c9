"""Lines: how accuracy on shifted data follows from accuracy on the reference, and error from the size of a shift.

Source: "Why do classifier accuracies show linear trends under distribution shift?", problem 1, figure 5 and section
5.3 (linear, probit, two pieces); the line with the least largest residual (Chebyshev) is the one that its corollary 1
speaks of. `ShiftLine` is that of thesis chapter 2 and table A.6: within a family of corruptions the error grows
linearly with the normalised distance of statistics.
Added: logit, a robust line (Huber), the best switch between two pieces, and the error for a left-out model, by which
fits can be compared that R² of the fitted models cannot. R² and residuals are in accuracy, whatever the scale of the
fit. An accuracy of 0 or 1 among n examples, where probit and logit are not defined, is moved inside by 1 / (2 n).
Cost: that of least squares; the best switch is sought at every model, or at 200 of them, spread evenly over their
ranks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, ndtri

from haptera.errors import HapteraError, unknown
from haptera.statistics.solvers import Solution, chebyshev, huber, least_squares

Map = Callable[[np.ndarray], np.ndarray]
SCALES: dict[str, tuple[Map, Map]] = {
    "linear": (np.asarray, np.asarray),
    "probit": (ndtri, ndtr),
    "logit": (logit, expit),
}
"""Name -> from accuracy to the scale, and back."""
SCALE = {
    "linear": "linear", "probit": "probit", "logit": "logit", "two_piece": "linear",
    "chebyshev": "linear", "robust": "linear", "robust_probit": "probit",
}  # fmt: skip
"""Name of a fit -> the scale on which it is straight."""
FITS = tuple(SCALE)
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
    def shape(self) -> dict[str, Any]:
        """Return slope and intercept; of two pieces, those of both and the switch."""
        return self.pieces[0] if self.switch is None else {"pieces": self.pieces, "switch": self.switch}

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
        x, y = move_inside(x, n and n[0]), move_inside(y, n and n[1])
    u, v = there(x), there(y)
    w = np.ones(u.shape[-1]) if weights is None else np.asarray(weights, float)
    if kind == "two_piece":
        solved, at = _two_pieces(u, v, w, switch, joined)
    else:
        method = {"chebyshev": chebyshev, "robust": huber, "robust_probit": huber}.get(kind, least_squares)
        solved, at = method(_basis(u, None, 2), v, w), None
    line = Line(kind, solved.coefficients, at)
    return LineFit(line, y - back(solved.fitted), y - back(solved.left_out), v - solved.left_out)


def compare_fits(
    reference: np.ndarray,
    shifted: np.ndarray,
    models: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = FITS,
    **settings: Any,
) -> pd.DataFrame:
    """One row for each fit, the one that predicts left-out models best first; `settings` are those of `fit`.

    Models of weight 0 are not judged.

    Returns:
        `fit`, `slope`, `intercept` (on the scale of the fit; of two pieces, the first), `r2`, `max_residual` and the
        `worst` model that has it, `left_out`, the root mean square error for models that the line has not seen, and
        `left_out_max`, the largest.
    """
    names = np.array(models if models is not None else [str(i) for i in range(len(reference))], dtype=object)
    y, weights = np.asarray(shifted, float), settings.get("weights")
    seen = np.ones(len(y), bool) if weights is None else np.asarray(weights) > 0
    rows = []
    for kind in kinds:
        fitted = fit(reference, shifted, kind, **settings)
        residual, left_out = fitted.residual[seen], np.abs(fitted.left_out[seen])
        size = np.abs(residual)
        rows.append(
            {"fit": kind, "slope": float(fitted.line.slope), "intercept": float(fitted.line.intercept)}
            | {"r2": r_squared(y[seen], residual), "max_residual": float(size.max())}
            | {"worst": names[seen][size.argmax()]}
            | {"left_out": float(np.sqrt(np.mean(left_out**2))), "left_out_max": float(left_out.max())}
        )
    return pd.DataFrame(rows).sort_values("left_out", kind="stable", ignore_index=True)


def r_squared(values: np.ndarray, residual: np.ndarray) -> float:
    """One minus the squared residuals over the squared distances from the mean; NaN if all values are alike."""
    spread = ((values - values.mean()) ** 2).sum()
    return float(1 - (residual**2).sum() / spread) if spread else float("nan")


def move_inside(accuracies: np.ndarray, n: np.ndarray | float | None) -> np.ndarray:
    """Accuracies with 0 and 1 moved inside by 1 / (2 n); an error where n is not known.

    >>> move_inside(np.array([0.0, 0.5, 1.0]), 50).tolist()
    [0.01, 0.5, 0.99]
    """
    accuracies = np.asarray(accuracies, float)
    at_the_ends = (accuracies <= 0) | (accuracies >= 1)
    if not at_the_ends.any():
        return accuracies
    margin = np.broadcast_to(np.asarray(np.nan if n is None else n, float), accuracies.shape)
    if np.isnan(margin[at_the_ends]).any():
        raise HapteraError(
            "an accuracy is 0 or 1, where probit and logit are not defined; with n it could be moved inside"
        )
    margin = 1 / (2 * np.where(at_the_ends, margin, 1.0))
    return np.where(at_the_ends, np.clip(accuracies, margin, 1 - margin), accuracies)


@dataclass(frozen=True)
class ShiftLine:
    """error = intercept + slope · size, fitted on one corruption of a family to predict the others.

    It does not say how far another corruption may be off it; `error_prediction` does.

    Attributes:
        slope: error per unit of size.
        intercept: error without a shift.
        sizes: that it was fitted on.
        r2: share of variance explained.
    """

    slope: float
    intercept: float
    sizes: np.ndarray
    r2: float

    @classmethod
    def fit(cls, sizes: np.ndarray, errors: np.ndarray) -> "ShiftLine":
        """Least squares; at least three points of different sizes."""
        sizes, errors = np.asarray(sizes, float), np.asarray(errors, float)
        if len(sizes) < 3 or np.ptp(sizes) == 0:
            raise HapteraError(f"a line needs at least three shifts of different sizes, found {len(np.unique(sizes))}")
        slope, intercept = np.polyfit(sizes, errors, 1)
        rest = errors - intercept - slope * sizes
        total = ((errors - errors.mean()) ** 2).sum()
        r2 = 1 - (rest**2).sum() / total if total > 1e-12 else 0.0
        return cls(float(slope), float(intercept), sizes, float(r2))

    def predict(self, size: float) -> float:
        """The error at a size, within 0 and 1."""
        return float(np.clip(self.intercept + self.slope * size, 0, 1))

    def inside(self, size: float) -> bool:
        """Return whether a size lies within those that the line was fitted on."""
        return bool(self.sizes.min() <= size <= self.sizes.max())


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
    if u.ndim == 1 and w.ndim == 1 and not w.all():  # the switch is sought among the models that are seen
        seen = w > 0
        among, at = _two_pieces(u[seen], v[seen], w[seen], None, joined)
        every = least_squares(_basis(u, at, terms), v, w)
        every.left_out[seen] = among.left_out
        return every, at
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
