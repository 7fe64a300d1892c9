"""Forward selection: the few classes that say most about each class, for all classes at once, one after the other.

Definition 1 of "Neural Dependencies Emerging from Learning Massive Categories" asks for a few classes and any constant
coefficients. The first classes of the lasso of (2) are those most like a class, and shrunk; a sum in which classes
cancel comes late, so what it loses is not what three classes must lose. Here the class that lowers the error the most
joins next, and coefficients are those of least squares on the classes so far (orthogonal least squares; Chen, Billings
and Luo, 1989).
Each step takes the part of every logit that lies along the last choice out of all that are left: with r the moments of
the residual with each candidate and v what is left of the candidate's own square, the gain of a candidate is r²/v. No
unit matters: rescaling a logit rescales r² and v alike.
Cost: K² n² multiplications for K classes chosen for each of n; a piece of the problems is held at a time.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from haptera.analyses.dependencies.lasso import RIDGE, pieces_of

LEFT = 1e-9
"""A candidate of whose square less than this share is left is a combination of those that were chosen."""


def choose(matrix: np.ndarray, right: np.ndarray, left_out: np.ndarray, count: int) -> np.ndarray:
    """Return for each problem the classes in the order in which they join, `(problems, count)`; -1 where none is left.

    Args:
        matrix: C, `(classes, classes)`.
        right: b, `(problems, classes)`.
        left_out: `(problems,)`, a class that may not join, or -1.
        count: how many.

    >>> moment = np.array([[2.0, 1.0, 1.3], [1.0, 1.0, 0.0], [1.3, 0.0, 2.0]])
    >>> choose(moment, moment[:1], np.array([0]), 2)
    array([[1, 2]])
    """
    pieces = pieces_of(len(right))

    def piece(rows: slice) -> np.ndarray:
        return _choose_piece(matrix, right[rows], left_out[rows], count)

    if len(pieces) == 1:
        return piece(pieces[0])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(len(pieces), cores)) as pool:
        return np.concatenate(list(pool.map(piece, pieces)))


def _choose_piece(matrix: np.ndarray, right: np.ndarray, left_out: np.ndarray, count: int) -> np.ndarray:
    diagonal = matrix.diagonal()
    rest = np.array(right, dtype=np.float64)
    own = np.tile(diagonal, (len(rest), 1))
    rows = np.flatnonzero(left_out >= 0)
    own[rows, left_out[rows]] = 0
    rows = np.arange(len(rest))
    order = np.full((len(rest), count), -1)
    along = np.empty((count, *rest.shape))
    for step in range(min(count, len(matrix))):
        free = own > LEFT * diagonal
        gain = np.where(free, rest**2 / np.where(free, own, 1.0), 0.0)
        best = gain.argmax(1)
        found = gain[rows, best] > 0
        root = np.sqrt(np.where(found, own[rows, best], np.inf))  # of a problem that is done nothing changes
        direction = matrix[best] - np.einsum("sp,spn->pn", along[:step, rows, best], along[:step])
        direction /= root[:, None]
        along[step] = direction
        rest -= (rest[rows, best] / root)[:, None] * direction
        own -= direction**2
        own[rows[found], best[found]] = 0
        order[found, step] = best[found]
    return order


def refit(matrix: np.ndarray, right: np.ndarray, order: np.ndarray) -> csr_array:
    """Return the coefficients of least squares on the classes of each problem, `(problems, classes)`.

    Args:
        matrix: C, `(classes, classes)`.
        right: b, `(problems, classes)`.
        order: the classes of each problem, `(problems, places)`; -1 for a place that is not used.

    >>> refit(np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([[2.0, 1.0]]), np.array([[1, -1]])).toarray()
    array([[0., 1.]])
    """
    values = np.empty(order.shape)
    for rows in pieces_of(len(order)):
        used = order[rows] >= 0
        places = np.where(used, order[rows], 0)
        system = matrix[places[:, :, None], places[:, None, :]] * (used[:, :, None] & used[:, None, :])
        diagonal = np.einsum("pii->pi", system)
        diagonal[...] = np.where(used, diagonal * (1 + RIDGE), 1.0)
        aim = np.where(used, np.take_along_axis(right[rows], places, 1), 0.0)
        values[rows] = np.linalg.solve(system, aim[..., None])[..., 0]
    used = order >= 0
    ends = np.append(0, used.sum(1).cumsum())
    found = csr_array((values[used], order[used], ends), shape=(len(order), len(matrix)))
    found.sort_indices()
    return found
