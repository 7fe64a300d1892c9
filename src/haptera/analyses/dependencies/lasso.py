"""Many lasso problems on one second moment, each solved exactly: working sets, signs on them, and the path over λ.

Solves min θᵀCθ − 2bᵀθ + λ‖θ‖₁ for every row b: (6) of "Neural Dependencies Emerging from Learning Massive Categories",
each with its λ. A round takes the gradient of all problems, lets the coordinates that break (8) the most join a
problem's working set, at least `FEWEST` and at most as many as its support has, and solves the small problem on that
set, after which zeros leave it again. It ends when no coordinate outside breaks its condition, so the answer is the
optimum up to rounding, not up to a step size.

On a working set, with signs s on a support, the optimum solves C θ = b − (λ/2) s there: (7). From the present θ one
moves towards that point. A new coordinate that would go against its sign leaves at once; where an old one would cross
zero, the move ends there and the coordinate leaves. After a whole move, coordinates that break (8) come back. Every
move lowers the objective, so no support comes twice and the method ends (feature-sign search; Lee, Battle, Raina and
Ng, 2006). Duplicate and dependent classes make C singular. Each move therefore also pays `RIDGE` for its own length (a
proximal step), which changes where it goes but not where it ends; one more whole move at the end polishes. Where λ is
so small that rounding hides the condition, a coordinate that came and left without a move is not tried again before
the next one.

Along λ the solution is linear between knots: dθ/dλ = −½ C_AA⁻¹ s on the support A. The next knot below is where a
coefficient reaches zero or another derivative reaches λ/2 (homotopy; Osborne, Presnell and Turlach, 2000). Each knot is
passed by a small step and solved anew, so ties and dependent classes need no care of their own.

Cost: about 7 rounds, each a product of the supports with C, and in it 5 to 15 moves, each a factorisation of the
working set. Problems are independent, and pieces of them run in threads, which NumPy leaves free to run side by side.
To keep K coefficients takes K knots, and each problem that comes back after a detour a few more.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array, vstack

FEWEST = 10
PIECE = 64
"""Problems in one piece: small enough for the cache, large enough for array operations."""
ROUNDS = 1000
RIDGE = 1e-13
"""What a move pays for its length, as a share of the diagonal of C."""
TOLERANCE = 1e-10
"""How far beyond λ/2 a derivative may be before its coordinate joins, as a share of it."""
ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""What rounding may make of a derivative, as a share of the size of its terms."""
MOVES = 20
"""Moves for each coordinate of a working set; the method ends by itself long before, but for rounding."""
PAST = 1e-6
"""The step past a knot, as a share of λ."""
LEAST = 1e-4
"""The share of λ_max below which no more coefficients are looked for."""
KNOTS = 20
"""Times K: after so many knots a problem keeps the best that was seen."""


def solve(
    matrix: np.ndarray,
    right: np.ndarray,
    lam: np.ndarray,
    left_out: np.ndarray,
    start: csr_array | None = None,
) -> csr_array:
    """Return the coefficients that minimise each problem.

    Args:
        matrix: C, `(classes, classes)`, symmetric and positive semidefinite.
        right: b, `(problems, classes)`.
        lam: λ, `(problems,)`, positive.
        left_out: `(problems,)`, a class whose coefficient stays 0, or -1.
        start: coefficients to begin with, such as those at a larger λ.

    Returns:
        `(problems, classes)`.
    """
    start = csr_array(right.shape) if start is None else start
    pieces = pieces_of(len(right))

    def piece(rows: slice) -> csr_array:
        return _solve_piece(matrix, right[rows], lam[rows] / 2, left_out[rows], start[rows])

    if len(pieces) == 1:
        return piece(pieces[0])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(len(pieces), cores)) as pool:
        return vstack(list(pool.map(piece, pieces)), format="csr")


def pieces_of(problems: int) -> list[slice]:
    """Slices of the problems that are small enough to be looked at whole."""
    return [slice(first, first + PIECE) for first in range(0, problems, PIECE)]


def gradient(matrix: np.ndarray, right: np.ndarray, left_out: np.ndarray, theta: csr_array) -> np.ndarray:
    """Cθ − b of each problem, `(problems, classes)`, 0 for the class left out."""
    result = theta @ matrix - right
    rows = np.flatnonzero(left_out >= 0)
    result[rows, left_out[rows]] = 0
    return result


def _solve_piece(
    matrix: np.ndarray, right: np.ndarray, half: np.ndarray, left_out: np.ndarray, start: csr_array
) -> csr_array:
    """Rounds until every problem is solved; `half` is λ/2."""
    theta = start.toarray()
    root = np.sqrt(matrix.diagonal())
    waiting = np.arange(len(right))
    for _ in range(ROUNDS):
        now, bar = theta[waiting], half[waiting, None]
        slope = gradient(matrix, right[waiting], left_out[waiting], csr_array(now))
        noise = ROUNDING * (root * (np.abs(now) @ root)[:, None] + np.abs(right[waiting]))
        support = now != 0
        excess = np.where(support, -np.inf, np.abs(slope) - bar * (1 + TOLERANCE) - noise)
        # The first round of a start from another λ finds every problem off.
        off = np.abs(slope + bar * np.sign(now)) > bar * TOLERANCE + noise
        broken = ((excess > 0) | (off & support)).any(1)
        if not broken.any():
            break
        waiting, now, slope, support, excess = (part[broken] for part in (waiting, now, slope, support, excess))
        working, used, signs = _working_sets(now, slope, support, excess)
        small = np.take_along_axis(now, working, 1) * used
        gram = matrix[working[:, :, None], working[:, None, :]]
        _solve_supports(gram, np.take_along_axis(right[waiting], working, 1), half[waiting], small, signs)
        theta[waiting] = 0
        rows, places = np.nonzero(used)
        theta[waiting[rows], working[rows, places]] = small[rows, places]
        waiting = waiting[(theta[waiting] != now).any(1)]  # what no longer moves is as exact as rounding lets it be
    return csr_array(theta)


def _working_sets(
    theta: np.ndarray, slope: np.ndarray, support: np.ndarray, excess: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each problem its support and the coordinates that join it.

    Returns:
        Indices `(problems, places)`, which of them are used, and the sign a coordinate begins with, 0 where unused.
    """
    size = support.sum(1)
    joining = np.minimum(np.maximum(size, FEWEST), (excess > 0).sum(1))
    width = int((size + joining).max())
    # Support first (+inf), then what breaks its condition, the most first.
    rank = np.where(support, np.inf, excess)
    order = np.argpartition(-rank, width - 1, axis=1)[:, :width]
    order = np.take_along_axis(order, np.argsort(-np.take_along_axis(rank, order, 1), axis=1, kind="stable"), 1)
    used = np.arange(width) < (size + joining)[:, None]
    own, down = np.take_along_axis(theta, order, 1), np.take_along_axis(slope, order, 1)
    return order, used, np.where(used, np.where(own != 0, np.sign(own), -np.sign(down)), 0.0)


def _solve_supports(
    gram: np.ndarray, right: np.ndarray, half: np.ndarray, theta: np.ndarray, signs: np.ndarray
) -> None:
    """Solve every problem in place.

    Args:
        gram: C on the working sets, `(problems, places, places)`.
        right: b on them, `(problems, places)`.
        half: λ/2, `(problems,)`.
        theta: where to begin, and the answer; 0 outside the support.
        signs: of the coordinates to begin with, 0 for places that are not in use; overwritten.
    """
    usable = signs != 0
    tired = np.zeros_like(usable)
    polished = np.zeros(len(right), bool)
    diagonal = np.einsum("pii->pi", gram)
    root = np.sqrt(diagonal)
    waiting = np.arange(len(right))
    for _ in range(MOVES * right.shape[1]):
        now, sign, bar = theta[waiting], signs[waiting], half[waiting, None]
        active = sign != 0
        ridge = RIDGE * diagonal[waiting]
        system = gram[waiting]
        system *= active[:, :, None] & active[:, None, :]
        np.einsum("pii->pi", system)[...] += np.where(active, ridge, 1.0)
        aim = np.where(active, right[waiting] - bar * sign + ridge * now, 0.0)
        goal = np.linalg.solve(system, aim[..., None])[..., 0]

        against = active & (goal * sign < 0)
        fresh = against & (now == 0)
        halted = fresh.any(1)
        crossing = against & ~halted[:, None]
        share = np.where(crossing, now / np.where(crossing, now - goal, 1.0), 1.0)
        step = np.where(halted, 0.0, share.min(1))
        landing = crossing & (share <= step[:, None])
        now = np.where(step[:, None] == 1, goal, now + step[:, None] * (goal - now))
        now[landing] = 0
        sign[fresh | landing] = 0
        tired[waiting] = fresh | (tired[waiting] & (now == theta[waiting]).all(1, keepdims=True))

        whole = np.flatnonzero(step == 1)
        rows, sign_there, bar = waiting[whole], sign[whole], bar[whole]
        slope = np.matmul(gram[rows], now[whole, :, None])[..., 0] - right[rows]
        noise = ROUNDING * (root[rows] * (root[rows] * np.abs(now[whole])).sum(1, keepdims=True) + np.abs(right[rows]))
        missing = (np.abs(slope) > bar * (1 + TOLERANCE) + noise) & (sign_there == 0) & (usable & ~tired)[rows]
        complete = ~missing.any(1)
        done = complete & polished[rows]
        polished[rows] = complete
        sign[whole] = np.where(missing, -np.sign(slope), sign_there)
        theta[waiting], signs[waiting] = now, sign
        waiting = np.delete(waiting, whole[done])
        if not len(waiting):
            break


def largest_lambda(right: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """λ_max of each problem, from which on all coefficients are 0: 2 max |b_j| without the class left out."""
    sizes = np.abs(right)
    rows = np.flatnonzero(left_out >= 0)
    sizes[rows, left_out[rows]] = 0
    return 2 * sizes.max(1)


def _next_knots(
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
        knots = _next_knots(matrix, right[waiting], lam[waiting], left_out[waiting], rows)
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
