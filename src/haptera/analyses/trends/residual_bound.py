"""Residual bound: how far three approximately ordered models can be from a line, exactly, by linear programmes.

Source: "Why do classifier accuracies show linear trends under distribution shift?", section 5.2, equation (6). There
the maximum is sought on a grid, which can only find less than there is (.084 for a maximum of .0950). But once the
accuracies are given, (µ2 - µ1) / (µ3 - µ1) is a constant and (6) is the absolute value of a linear function of the
probabilities: two linear programmes give the maximum, and a pair of distributions that attains it. The constraints
are those of the source, and that p123 and the shares of examples on which no model is right are not negative, which
the source leaves out.
Cost: two programmes of 13 variables for each triplet, solved together; some milliseconds for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.analyses.trends.triplets import EVENTS
from haptera.analyses.trends.wedge import Wedge
from haptera.checks import check_number
from haptera.errors import HapteraError

POINTS, ZETAS = 13, (0.0, 0.05, 0.1)
"""Accuracies, and the largest dominance, for which lower bounds are drawn."""
_P, _Q = (*EVENTS, "123"), EVENTS  # the variables; q123 moves all three models alike and is left out


@dataclass(frozen=True)
class ResidualBound:
    """The largest residual, and distributions that attain it.

    Attributes:
        value: the largest `|ℓ(µ2) - µ̃2|`, ℓ the line of the worst and the best model.
        p: which of the models 1, 2, 3 are right -> probability under P.
        q: the same under Q.
    """

    value: float
    p: dict[str, float]
    q: dict[str, float]


def residual_bound(accuracies: Sequence[float], wedge: Wedge, zeta: float = 0.0) -> ResidualBound:
    """The exact maximum of (6).

    Args:
        accuracies: of three models under P, in ascending order.
        wedge: in which the six events lie.
        zeta: no dominance probability is larger.

    >>> round(residual_bound([0.6, 0.7, 0.8], Wedge(0.31, 0.38, 0.005, 0.008), zeta=0.05).value, 4)
    0.095
    """
    return maximise([(accuracies, wedge, zeta)])[0]


def maximise(problems: Sequence[tuple[Sequence[float], Wedge, float]]) -> list[ResidualBound]:
    """The exact maximum of (6) for many triplets at once, each as the arguments of `residual_bound`.

    All programmes are solved as one, whose matrix is made of theirs along the diagonal: sixty take little longer than
    one does.
    """
    objectives, limits, mosts, accuracies = [], [], [], []
    for given, wedge, zeta in problems:
        low, middle, high = levels = [float(accuracy) for accuracy in given]
        if not 0 <= low <= middle <= high <= 1 or low == high:
            raise HapteraError(
                f"accuracies are {low:g}, {middle:g}, {high:g}; three in ascending order from 0 to 1, not all alike, "
                "were expected"
            )
        check_number("zeta", zeta, least=0, most=1)
        part = (middle - low) / (high - low)
        # ℓ(µ2) - µ̃2 as a function of q1, q2, q3, q12, q13, q23.
        residual = np.concatenate([np.zeros(len(_P)), [1 - part, -1, part, -part, 1, part - 1]])
        rows, most = _limits(wedge, zeta)
        for sign in (-1, 1):
            objectives.append(sign * residual)
            limits.append(rows)
            mosts.append(most)
            accuracies.append(levels)
    # The events in which a model is right add up to its accuracy.
    equal = np.array([[float(model in event) for event in _P] + [0.0] * len(_Q) for model in "123"])
    from scipy import sparse  # a third of a second, which other measures need not wait for
    from scipy.optimize import linprog

    solved = linprog(
        np.concatenate(objectives),
        A_ub=sparse.block_diag(limits, format="csr"),
        b_ub=np.concatenate(mosts),
        A_eq=sparse.block_diag([equal] * len(objectives), format="csr"),
        b_eq=np.concatenate(accuracies),
        bounds=(0, 1),
        method="highs",
    )
    if solved.x is None:  # q = p of ordered models is always allowed
        raise HapteraError(f"the linear programme of the residual bound was not solved: {solved.message}")
    points = solved.x.reshape(len(problems), 2, -1)
    values = -(np.reshape(objectives, points.shape) * points).sum(-1)
    better = values.argmax(1)
    return [
        ResidualBound(max(float(value), 0.0), _distribution(_P, point), _distribution(_Q, point[len(_P) :]))
        for value, point in zip(values.max(1), points[np.arange(len(points)), better], strict=True)
    ]


def residual_bounds(
    low: float, high: float, at: Sequence[float] | np.ndarray, wedge: Wedge, zetas: Sequence[float] = ZETAS
) -> pd.DataFrame:
    """The exact bound on a model between two others, along its accuracy: the curves of figure 4.

    Returns:
        `accuracy`, `zeta` and `bound`.
    """
    cases = [(float(middle), float(each)) for each in zetas for middle in at]
    found = maximise([((low, middle, high), wedge, each) for middle, each in cases]) if cases else []
    frame = pd.DataFrame(cases, columns=["accuracy", "zeta"])
    return frame.assign(bound=[bound.value for bound in found])


def lower_bounds(
    reference: np.ndarray, shifted: np.ndarray, wedge: Wedge, zetas: Sequence[float] = ZETAS
) -> pd.DataFrame:
    """How low a model between the worst and the best can be: on their line, less the exact bound.

    Returns:
        `zeta`, `accuracy` on the reference, and `least`, on shifted data.
    """
    low, high = reference.argmin(), reference.argmax()
    at = np.linspace(reference[low], reference[high], POINTS)
    bounds = residual_bounds(reference[low], reference[high], at, wedge, zetas)
    line = np.interp(bounds["accuracy"], reference[[low, high]], shifted[[low, high]])
    return bounds[["zeta", "accuracy"]].assign(least=np.maximum(line - bounds["bound"], 0))


def _limits(wedge: Wedge, zeta: float) -> tuple[np.ndarray, np.ndarray]:
    """Everything that must not exceed something, as rows and right-hand sides."""
    dominated = [
        [float(worse in event and better not in event) for event in _P] for worse, better in ("12", "13", "23")
    ]
    rows = [row + [0.0] * len(_Q) for row in dominated]
    most = [zeta] * 3
    rows += [[1.0] * len(_P) + [0.0] * len(_Q), [0.0] * len(_P) + [1.0] * len(_Q)]
    most += [1.0, 1.0]
    for place in range(len(EVENTS)):
        for slope, sign, room in ((1 + wedge.delta2, 1.0, wedge.nu2), (1 - wedge.delta1, -1.0, wedge.nu1)):
            row = np.zeros(len(_P) + len(_Q))
            row[place], row[len(_P) + place] = -sign * slope, sign
            rows.append(row.tolist())
            most.append(room)
    return np.array(rows), np.array(most)


def _distribution(events: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """Return the first values as probabilities, at least 0 and 1 at most in all, which solvers promise to 1e-7 only."""
    values = values[: len(events)].clip(0)
    return dict(zip(events, (values / max(values.sum(), 1.0)).tolist(), strict=True))
