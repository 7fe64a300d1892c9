"""Agreement on the line: the accuracy of many models on data without labels, from how often they agree there.

Source: Baek, Jiang, Raghunathan and Kolter, "Agreement-on-the-line", 2022. Where accuracies of models on two sets fall
on a probit line, the agreement of pairs of models often falls on a line too, with the same slope and intercept; and
agreement needs no labels. With t and w the probits of accuracy on the reference and on new data, u and v those of the
agreement of a pair, a line v = a u + b is fitted to all pairs.
ALine-S: w = a t + b. ALine-D: ½ (w_i + w_j) = v_ij + a (½ (t_i + t_j) - u_ij), solved for all w by least squares, so
that each model keeps what is its own in how often it agrees with the others.
The source believes it where R² of the agreement line is .95 at least. That is necessary and not sufficient: R² tells
how straight the line of agreements is, not whether accuracies have the same one. Only labelled sets of shifted data
tell, so intervals come from these (`unlabelled`).
Cost: models² x examples comparisons.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from haptera.errors import HapteraError
from haptera.statistics.line import r_squared

BELIEVED = 0.95
"""R² of the agreement line from which the source believes it."""
FEWEST = 3


@dataclass(frozen=True, eq=False)
class AgreementLine:
    """The line of agreements, and what it says about accuracies.

    Attributes:
        slope: on probit axes.
        intercept: likewise.
        r2: share of the spread of agreements on new data, on probit axes, that it explains.
        accuracy: `(models,)` on new data, by ALine-D.
        simple: `(models,)`, by ALine-S.
        reference: `(pairs,)`, agreement on the reference.
        new: `(pairs,)`, on new data.
    """

    slope: float
    intercept: float
    r2: float
    accuracy: np.ndarray
    simple: np.ndarray
    reference: np.ndarray
    new: np.ndarray


def agreement(predictions: np.ndarray) -> np.ndarray:
    """`(pairs,)`, the share of examples on which two models predict the same, in the order of `itertools.combinations`.

    >>> agreement(np.array([[0, 1, 2, 2], [0, 1, 1, 1], [0, 1, 2, 1]])).tolist()
    [0.5, 0.75, 0.75]
    """
    rows = [(predictions[place + 1 :] == predictions[place]).mean(1) for place in range(len(predictions) - 1)]
    return np.concatenate(rows)


def agreement_line(accuracy: np.ndarray, reference: np.ndarray, new: np.ndarray) -> AgreementLine:
    """Fit the line of agreements and predict accuracies.

    Args:
        accuracy: `(models,)`, on the reference.
        reference: `(models, examples)`, classes that each model predicts on the reference.
        new: `(models, examples)`, on new data.
    """
    models = len(accuracy)
    if models < FEWEST or len(reference) != models or len(new) != models:
        raise HapteraError(
            f"there are {models} accuracies and predictions of {len(reference)} and {len(new)} models; the same "
            f"{FEWEST} or more were expected"
        )
    shares = [agreement(reference), agreement(new)]
    u, v = (_probit(share, side.shape[1]) for share, side in zip(shares, (reference, new), strict=True))
    t = _probit(np.asarray(accuracy, float), reference.shape[1])
    if np.ptp(u) == 0:
        raise HapteraError("all pairs of models agree equally often on the reference; no line goes through them")
    slope, intercept = (float(each) for each in np.polyfit(u, v, 1))
    i, j = np.triu_indices(models, 1)
    sums = np.zeros((models, models))
    sums[i, j] = sums[j, i] = 2 * (v + slope * ((t[i] + t[j]) / 2 - u))
    # Least squares: (models - 2) w_i + the sum of all w is the sum of w_i + w_j over the others j.
    total = sums.sum() / (2 * (models - 1))
    w = (sums.sum(1) - total) / (models - 2)
    r2 = r_squared(v, v - slope * u - intercept)
    return AgreementLine(slope, intercept, r2, ndtr(w), ndtr(slope * t + intercept), shares[0], shares[1])


def _probit(shares: np.ndarray, n: int) -> np.ndarray:
    """Probits, those of 0 and 1 moved inside by 1 / (2n)."""
    return ndtri(np.clip(shares, 1 / (2 * n), 1 - 1 / (2 * n)))
