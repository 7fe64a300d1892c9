"""Small lasso problems solved exactly, many at once: guess the signs, solve a linear system, drop the wrong signs.

With signs s on a support, the optimum solves C θ = b − (λ/2) s there: (7) of "Neural Dependencies Emerging from
Learning Massive Categories". From the present θ one moves towards that point. A new coordinate that would go
against its sign leaves at once; where an old one would cross zero, the move ends there and the coordinate leaves.
After a whole move, coordinates that break (8) come back. Every move lowers the objective, so no support comes twice
and the method ends (feature-sign search; Lee, Battle, Raina and Ng, 2006).

Duplicate and dependent classes make C singular. Each move therefore also pays `RIDGE` for its own length (a proximal
step), which changes where it goes but not where it ends; one more whole move at the end polishes.
Where λ is so small that rounding hides the condition, a coordinate that came and left without a move is not tried
again before the next one. Cost: one factorisation of the working set for each move, 5 to 15 of them.
"""

import numpy as np

RIDGE = 1e-13
"""What a move pays for its length, as a share of the diagonal of C."""
TOLERANCE = 1e-10
"""How far beyond λ/2 a derivative may be before its coordinate joins, as a share of it."""
ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""What rounding may make of a derivative, as a share of the size of its terms."""
MOVES = 20
"""Moves for each coordinate of a working set; the method ends by itself long before, but for rounding."""


def solve_supports(gram: np.ndarray, right: np.ndarray, half: np.ndarray, theta: np.ndarray, signs: np.ndarray) -> None:
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
        goal = _solved(system, np.where(active, right[waiting] - bar * sign + ridge * now, 0.0))

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


def _solved(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.linalg.solve(matrices, vectors[..., None])[..., 0]
