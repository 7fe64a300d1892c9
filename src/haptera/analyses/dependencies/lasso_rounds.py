"""Many lasso problems on one second moment: a working set for each, solved exactly, grown until nothing is missing.

Solves min θᵀCθ − 2bᵀθ + λ‖θ‖₁ for every row b: (6) of "Neural Dependencies Emerging from Learning Massive Categories",
each with its λ. A round takes the gradient of all problems, lets the coordinates that break (8) the most join a
problem's working set, at least `FEWEST` and at most as many as its support has, and solves the small problem on that
set by an active-set method (`lasso_support`), after which zeros leave it again. It ends when no coordinate outside
breaks its condition, so the answer is the optimum up to rounding, not up to a step size.

Cost: about 7 rounds, each a product of the supports with C. Problems are independent, and pieces of them run in
threads, which NumPy leaves free to run side by side.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array, vstack

from haptera.analyses.dependencies.lasso_support import ROUNDING, TOLERANCE, solve_supports

FEWEST = 10
PIECE = 64
"""Problems in one piece: small enough for the cache, large enough for array operations."""
ROUNDS = 1000


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
    with ThreadPoolExecutor(min(len(pieces), _cores())) as pool:
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
        solve_supports(gram, np.take_along_axis(right[waiting], working, 1), half[waiting], small, signs)
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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
