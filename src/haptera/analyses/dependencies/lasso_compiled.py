"""`lasso_support` once more, problem by problem and compiled by numba (the extra `fast`); the method is told there.

Cost: the first call ever compiles for some seconds; the machine code is kept beside this file, or in the user's cache.
The compiled code holds no lock, so pieces run side by side in threads.
"""

import numba
import numpy as np

from haptera.analyses.dependencies.lasso_support import MOVES, RIDGE, ROUNDING, TOLERANCE

_compiled = numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})


@_compiled
def solve_supports(gram: np.ndarray, right: np.ndarray, half: np.ndarray, theta: np.ndarray, signs: np.ndarray) -> None:
    """Solve every problem in place; arguments as in `lasso_support.solve_supports`."""
    places = right.shape[1]
    factor = np.empty((places, places))
    goal, slope = np.empty(places), np.empty(places)
    active, tired = np.empty(places, np.int64), np.empty(places, np.bool_)
    for row in range(len(right)):
        used = 0
        while used < places and signs[row, used] != 0:
            used += 1
        tired[:] = False
        polished = False
        for _ in range(MOVES * places):
            size = _factorise(gram[row], signs[row], used, active, factor)
            for i in range(size):
                at = active[i]
                goal[i] = right[row, at] - half[row] * signs[row, at] + RIDGE * gram[row, at, at] * theta[row, at]
            _substitute(factor, size, goal)
            if not _move(theta[row], signs[row], active, size, goal, tired):
                continue
            complete = _complete(
                gram[row], right[row], half[row], theta[row], signs[row], used, active, size, slope, tired
            )
            if complete and polished:
                break
            polished = complete


@_compiled
def _factorise(gram: np.ndarray, signs: np.ndarray, used: int, active: np.ndarray, factor: np.ndarray) -> int:
    """The active places, how many they are, and the Cholesky factor of C on them."""
    size = 0
    for place in range(used):
        if signs[place] != 0:
            active[size] = place
            size += 1
    for i in range(size):
        own = gram[active[i]]
        ridge = RIDGE * own[active[i]]
        for j in range(i):
            total = own[active[j]]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
        total = own[active[i]] + ridge
        for k in range(i):
            total -= factor[i, k] * factor[i, k]
        factor[i, i] = np.sqrt(max(total, ridge))
    return size


@_compiled
def _substitute(factor: np.ndarray, size: int, vector: np.ndarray) -> None:
    """Solve with the factor and its transpose, in place."""
    for i in range(size):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        vector[i] /= factor[i, i]
        for k in range(i):
            vector[k] -= factor[i, k] * vector[i]


@_compiled
def _move(
    theta: np.ndarray, signs: np.ndarray, active: np.ndarray, size: int, goal: np.ndarray, tired: np.ndarray
) -> bool:
    """Move towards the goal as far as signs allow; whether it was reached."""
    halted, step = False, 1.0
    for i in range(size):
        at = active[i]
        if goal[i] * signs[at] < 0:
            if theta[at] == 0:
                signs[at] = 0
                halted = tired[at] = True
            else:
                step = min(step, theta[at] / (theta[at] - goal[i]))
    if halted:
        return False
    moved = False
    for i in range(size):
        at = active[i]
        before = theta[at]
        if step == 1:
            theta[at] = goal[i]
        elif goal[i] * signs[at] < 0 and before / (before - goal[i]) <= step:
            theta[at], signs[at] = 0.0, 0.0
        else:
            theta[at] += step * (goal[i] - before)
        moved |= theta[at] != before
    if moved:
        tired[:] = False
    return step == 1


@_compiled
def _complete(
    gram: np.ndarray,
    right: np.ndarray,
    half: float,
    theta: np.ndarray,
    signs: np.ndarray,
    used: int,
    active: np.ndarray,
    size: int,
    slope: np.ndarray,
    tired: np.ndarray,
) -> bool:
    """Whether no coordinate breaks its condition; those that do come back."""
    terms = 0.0
    for place in range(used):
        slope[place] = -right[place]
    for i in range(size):
        own, value = gram[active[i]], theta[active[i]]
        terms += np.sqrt(own[active[i]]) * abs(value)
        for place in range(used):
            slope[place] += own[place] * value
    complete = True
    for place in range(used):
        if signs[place] == 0 and not tired[place]:
            noise = ROUNDING * (np.sqrt(gram[place, place]) * terms + abs(right[place]))
            if abs(slope[place]) > half * (1 + TOLERANCE) + noise:
                signs[place] = -np.sign(slope[place])
                complete = False
    return complete
