"""Two points: for which temperatures self-learning forgets what it knows.

Source: thesis chapter 3 (3.6)-(3.9), proposition 1, and appendix B. A linear model w sees two points x_k, x_l; y = xᵀw.
With a stopped gradient it does not collapse to y = 0 if τ_s > τ_t, without if τ_s > τ_t / 2.
Differs, where the print is wrong: in (B.6) norms are squared and the sign belongs into B,
B± = ‖x_k‖² + ‖x_l‖² ± √((‖x_k‖² − ‖x_l‖²)² + 4 (x_kᵀx_l)²), A± = 8 α τ_s² + B±; in (B.8) the own-point term has
1/(τ_s τ_t); the loss of (3.6) is the positive sum; the teacher of (3.9) moves towards the student.
Cost: a simulation of 250 x 250 temperatures takes seconds, all of them at once.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit

POINTS = np.array([[1.0, 0.0], [0.0, -1.0]])
START = (0.5, 0.5)


def velocity(
    student: np.ndarray,
    teacher: np.ndarray,
    student_temperature: float | np.ndarray,
    teacher_temperature: float | np.ndarray,
    points: np.ndarray = POINTS,
    stop_gradient: bool = True,
) -> np.ndarray:
    """dy/dt of the student, `(..., 2)`, by (B.3) with and (B.8) without a stopped gradient."""
    s, t = np.asarray(student_temperature)[..., None], np.asarray(teacher_temperature)[..., None]
    pull = (expit(teacher / t) * expit(-student / s) - expit(-teacher / t) * expit(student / s)) / s
    if not stop_gradient:
        pull = pull + expit(teacher / t) * expit(-teacher / t) * student / (s * t)
    return pull @ (points @ points.T)


def jacobian(
    student_temperature: float,
    teacher_temperature: float,
    points: np.ndarray = POINTS,
    stop_gradient: bool = True,
    teacher_rate: float = 1.0,
) -> np.ndarray:
    """Return that at the fixed point y = 0: `(4, 4)` over (student, teacher) as in (B.6), or `(2, 2)` as in (B.10)."""
    gram, s, t, a = points @ points.T, student_temperature, teacher_temperature, teacher_rate
    if not stop_gradient:
        return gram / (4 * s) * (2 / t - 1 / s)
    eye = np.eye(2)
    return np.block([[-gram / (4 * s**2), gram / (4 * s * t)], [a * eye, -a * eye]])


def eigenvalues(
    student_temperature: float,
    teacher_temperature: float,
    points: np.ndarray = POINTS,
    stop_gradient: bool = True,
    teacher_rate: float = 1.0,
) -> np.ndarray:
    """Return those of the Jacobian at y = 0, ascending; the model can collapse only if none is positive."""
    s, t, a = student_temperature, teacher_temperature, teacher_rate
    one, two = (points**2).sum(1)
    root = np.sqrt((one - two) ** 2 + 4 * float(points[0] @ points[1]) ** 2)
    b = np.array([one + two + root, one + two - root])
    if not stop_gradient:
        return np.sort(b / (8 * s) * (2 / t - 1 / s))
    big = 8 * a * s**2 + b
    inner = np.sqrt((big**2 + 32 * a * s**2 * b * (s / t - 1)).astype(complex))
    found = np.concatenate([-big - inner, -big + inner]) / (16 * s**2)
    return np.sort(found.real if not found.imag.any() else found)


def safe(student_temperature: np.ndarray, teacher_temperature: np.ndarray, stop_gradient: bool = True) -> np.ndarray:
    """Return where proposition 1 promises that there is no collapse."""
    return np.asarray(student_temperature) > np.asarray(teacher_temperature) / (1 if stop_gradient else 2)


def phase_diagram(
    temperatures: Sequence[float] | np.ndarray | None = None,
    *,
    stop_gradient: bool = True,
    start: Sequence[float] = START,
    points: np.ndarray = POINTS,
    lr: float = 0.1,
    momentum: float = 0.9,
    steps: int = 1000,
) -> pd.DataFrame:
    """Self-learning, simulated for all pairs of temperatures, the teacher updated at every step (figures 3.2, B.1-3).

    Args:
        temperatures: 250 of them, from .001 to 10, if left out.
        stop_gradient: pseudo-labels with, entropy minimisation without.
        start: w before the first step; its signs on the points are the right labels.
        points: `(2, 2)`.
        lr: of gradient descent.
        momentum: of gradient descent.
        steps: how many.

    Returns:
        One row per pair: `student_temperature`, `teacher_temperature`, `size` (the larger of y), `kept` (that size
        over what it was at the start), `collapsed` (below a tenth of it, or a label changed), `safe` (promised so).
    """
    values = np.geomspace(1e-3, 10, 250) if temperatures is None else np.asarray(temperatures, float)
    s, t = (grid.ravel() for grid in np.meshgrid(values, values, indexing="ij"))
    first = points @ np.asarray(start, float)
    y, speed = np.tile(first, (len(s), 1)), np.zeros((len(s), 2))
    for _ in range(steps):
        speed = momentum * speed + velocity(y, y, s, t, points, stop_gradient)
        y = y + lr * speed
    size = np.abs(y).max(1)
    kept = size / np.abs(first).max()
    changed = (np.sign(y) != np.sign(first)).any(1)
    return pd.DataFrame(
        {
            "student_temperature": s,
            "teacher_temperature": t,
            "size": size,
            "kept": kept,
            "collapsed": (kept < 0.1) | changed,
            "safe": safe(s, t, stop_gradient),
        }
    )
