"""Residual bound: how far three approximately ordered models can be from a line, exactly, by linear programmes.

Source: "Why do classifier accuracies show linear trends under distribution shift?", section 5.2, equation (6). There
the maximum is sought on a grid, which can only find less than there is (.084 for a maximum of .0950). But once the
accuracies are given, (µ2 - µ1) / (µ3 - µ1) is a constant and (6) is the absolute value of a linear function of the
probabilities: two linear programmes give the maximum, and a pair of distributions that attains it. The constraints
are those of the source, and that p123 and the shares of examples on which no model is right are not negative, which
the source leaves out.
Cost: two programmes of 13 variables, some milliseconds.
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
    low, middle, high = (float(accuracy) for accuracy in accuracies)
    if not 0 <= low <= middle <= high <= 1 or low == high:
        raise HapteraError(
            f"accuracies are {low:g}, {middle:g}, {high:g}; three in ascending order from 0 to 1, not all alike, "
            "were expected"
        )
    check_number("zeta", zeta, least=0, most=1)
    part = (middle - low) / (high - low)
    # ℓ(µ2) - µ̃2 as a function of q1, q2, q3, q12, q13, q23.
    residual = np.array([1 - part, -1, part, -part, 1, part - 1])
    # The events in which a model is right add up to its accuracy.
    equal = np.array([[float(model in event) for event in _P] + [0.0] * len(_Q) for model in "123"])
    accuracy = np.array([low, middle, high])
    limits, most = _limits(wedge, zeta)
    from scipy.optimize import linprog  # a third of a second, which other measures need not wait for

    best: ResidualBound | None = None
    for sign in (1, -1):
        objective = np.concatenate([np.zeros(len(_P)), -sign * residual])
        solved = linprog(objective, A_ub=limits, b_ub=most, A_eq=equal, b_eq=accuracy, bounds=(0, 1), method="highs")
        if solved.x is None:
            raise HapteraError(f"no distributions have accuracies {low:g}, {middle:g}, {high:g} in this wedge")
        value = max(float(-objective @ solved.x), 0.0)
        if best is None or value > best.value:
            best = ResidualBound(value, _distribution(_P, solved.x), _distribution(_Q, solved.x[len(_P) :]))
    assert best is not None
    return best


def residual_bounds(
    low: float, high: float, at: Sequence[float] | np.ndarray, wedge: Wedge, zetas: Sequence[float] = ZETAS
) -> pd.DataFrame:
    """The exact bound on a model between two others, along its accuracy: the curves of figure 4.

    Returns:
        `accuracy`, `zeta` and `bound`.
    """
    rows = [
        {"accuracy": float(middle), "zeta": each, "bound": residual_bound((low, middle, high), wedge, each).value}
        for each in zetas
        for middle in at
    ]
    return pd.DataFrame(rows, columns=["accuracy", "zeta", "bound"])


def lower_bounds(reference: np.ndarray, shifted: np.ndarray, wedge: Wedge) -> pd.DataFrame:
    """How low a model between the worst and the best can be: on their line, less the exact bound.

    Returns:
        `zeta`, `accuracy` on the reference, and `least`, on shifted data.
    """
    low, high = reference.argmin(), reference.argmax()
    at = np.linspace(reference[low], reference[high], POINTS)
    bounds = residual_bounds(reference[low], reference[high], at, wedge)
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
