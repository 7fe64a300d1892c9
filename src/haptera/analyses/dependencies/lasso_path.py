"""The path of a lasso over λ, from knot to knot: where a coordinate joins or leaves, and the λ that keeps K of them.

Between knots the solution is linear in λ: with signs s on the support A, dθ/dλ = −½ C_AA⁻¹ s. The next knot below is
where a coefficient reaches zero or another derivative reaches λ/2 (homotopy; Osborne, Presnell and Turlach, 2000). Each
knot is passed by a small step and solved anew, so ties and dependent classes need no care of their own.
Cost: K knots, and each problem that comes back after a detour a few more; about the solution of the problems for each.
"""

import numpy as np
from scipy.sparse import csr_array, vstack

from haptera.analyses.dependencies.lasso_rounds import gradient, solve
from haptera.analyses.dependencies.lasso_support import RIDGE

PAST = 1e-6
"""The step past a knot, as a share of λ."""
LEAST = 1e-4
"""The share of λ_max below which no more coefficients are looked for."""
KNOTS = 20
"""Times K: after so many knots a problem keeps the best that was seen."""


def largest_lambda(right: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """λ_max of each problem, from which on all coefficients are 0: 2 max |b_j| without the class left out."""
    sizes = np.abs(right)
    rows = np.flatnonzero(left_out >= 0)
    sizes[rows, left_out[rows]] = 0
    return 2 * sizes.max(1)


def next_knots(
    matrix: np.ndarray, right: np.ndarray, lam: np.ndarray, left_out: np.ndarray, theta: csr_array
) -> np.ndarray:
    """The largest λ below the present one at which the support of each solution changes; 0 where none does."""
    slope = gradient(matrix, right, left_out, theta)
    turn = theta.copy()  # how θ grows for each unit by which λ/2 falls
    falls = np.full(len(lam), np.inf)
    for row in range(len(lam)):
        own = slice(theta.indptr[row], theta.indptr[row + 1])
        support, values = theta.indices[own], theta.data[own]
        system = matrix[np.ix_(support, support)]
        system[np.diag_indices(len(support))] *= 1 + RIDGE
        turn.data[own] = np.linalg.solve(system, np.sign(values)) if len(support) else 0
        leaving = -values / np.where(turn.data[own] == 0, np.inf, turn.data[own])
        falls[row] = leaving.min(where=leaving > 0, initial=np.inf)
    half = lam[:, None] / 2
    away = turn @ matrix  # and how the derivative does
    outside = theta.toarray() == 0
    rows = np.flatnonzero(left_out >= 0)
    outside[rows, left_out[rows]] = False
    for sign in (1.0, -1.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            joining = (half - sign * slope) / (1 + sign * away)
        falls = np.minimum(falls, joining.min(1, where=outside & (joining > 0), initial=np.inf))
    return np.maximum(lam - 2 * falls, 0.0)


def keep(matrix: np.ndarray, right: np.ndarray, left_out: np.ndarray, count: int) -> tuple[np.ndarray, csr_array]:
    """Find for each problem the λ just above the first knot at which more than `count` coefficients are not 0.

    That is the smallest λ for which no larger one keeps more, so the coefficients that are kept shrink the least. Fewer
    are kept where several join at once, or where there are not so many down to `LEAST` of λ_max.

    Returns:
        λ `(problems,)` and the coefficients `(problems, classes)`.
    """
    lam = np.maximum(largest_lambda(right, left_out) * (1 + PAST), np.finfo(np.float64).tiny)  # above the first knot
    least = LEAST * lam
    theta = csr_array(right.shape)
    waiting = np.arange(len(lam))
    for _ in range(KNOTS * count + 1):
        rows = theta[waiting]
        knots = next_knots(matrix, right[waiting], lam[waiting], left_out[waiting], rows)
        beyond = np.maximum(knots * (1 - PAST), least[waiting])
        further = solve(matrix, right[waiting], beyond, left_out[waiting], rows)
        fits = np.diff(further.indptr) <= count
        full = waiting[~fits]
        lam[full] = np.minimum(lam[full], np.maximum(knots[~fits], least[full]) * (1 + PAST))
        lam[waiting[fits]] = beyond[fits]
        theta = _with_rows(theta, waiting[fits], further[np.flatnonzero(fits)])
        waiting = waiting[fits & (beyond > least[waiting])]
        if not len(waiting):
            break
    return lam, solve(matrix, right, lam, left_out, theta)


def _with_rows(theta: csr_array, rows: np.ndarray, new: csr_array) -> csr_array:
    """The array with some rows replaced."""
    place = np.arange(theta.shape[0])
    place[rows] = theta.shape[0] + np.arange(len(rows))
    return vstack([theta, new], format="csr")[place]
