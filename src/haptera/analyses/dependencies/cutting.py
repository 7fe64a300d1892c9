"""Cutting: which dependencies are worth cutting, and what became of a network in which one was cut.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 3.3 and table 3: accuracy, the
coefficient of the dependency, and the area under the precision-recall curve for samples of unseen classes (unseen is
positive, the score is the negative of the largest softmax). The source picks dependencies by hand, those that make no
sense to people; `pairs_worth_cutting` ranks by what a dependency does, and by how unlike the two classes are where the
user can say so. The term for the training loop is `haptera.losses.DependencyPenalty`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import softmax

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.replacement import check_targets
from haptera.analyses.dependencies.second_moment import check_logits
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.statistics.intervals import wilson


def pairs_worth_cutting(lasso: CovarianceLasso, similarity: np.ndarray | None = None) -> pd.DataFrame:
    """Dependencies within one network, those worth cutting first.

    The strength of a dependency is `|θ_ij| √(C_jj / C_ii)`: how much of the size of logit i comes by way of j. The
    score is strength times (1 − similarity), so that a strong dependency among unlike classes comes first.

    Args:
        lasso: fitted on one network.
        similarity: `(classes, classes)` in [0, 1], how alike people, a taxonomy or the confusions of another model find
            two classes; without it every pair counts as unlike.

    Returns:
        Columns `class`, `on`, `coefficient`, `moment` (E[f_i f_j]), `strength`, `similarity`, `score`.
    """
    if lasso.moment_.cross is not None:
        raise HapteraError("lasso was fitted between two networks; pairs to cut are within one")
    matrix = lasso.moment_.matrix()
    target, on, coefficient = lasso.dependencies_.edges()
    alike = np.zeros(matrix.shape) if similarity is None else np.asarray(similarity, np.float64)
    if alike.shape != matrix.shape or not ((alike >= 0) & (alike <= 1)).all():
        raise HapteraError(f"similarity has shape {alike.shape}; {matrix.shape} with values in [0, 1] was expected")
    own = matrix.diagonal()
    strength = np.abs(coefficient) * np.sqrt(own[on] / own[target])
    frame = pd.DataFrame(
        {
            "class": target,
            "on": on,
            "coefficient": coefficient,
            "moment": matrix[target, on],
            "strength": strength,
            "similarity": alike[target, on],
            "score": strength * (1 - alike[target, on]),
        }
    )
    return frame.sort_values(["score", "class", "on"], ascending=[False, True, True], ignore_index=True)


@dataclass(frozen=True)
class CutState:
    """A network before or after a cut: one row of table 3.

    Attributes:
        accuracy: share of samples whose largest logit is their target, with its interval at 95 %.
        low: lower end.
        high: upper end.
        coefficient: of the dependency of the first class of the pair on the second.
        moment: E[f_i f_j] of the pair.
        aupr: of unseen classes; None without samples of them.
    """

    accuracy: float
    low: float
    high: float
    coefficient: float
    moment: float
    aupr: float | None


def cut_state(
    logits: np.ndarray,
    targets: np.ndarray,
    pair: tuple[int, int],
    *,
    alpha: float = 0.25,
    unseen: np.ndarray | None = None,
    unit: str = "logit",
) -> CutState:
    """Accuracy, coefficient and AUPR of one network; call it on the outputs before and after.

    Args:
        logits: `(samples, classes)` of known classes.
        targets: `(samples,)`.
        pair: class i and the class j that it depends on.
        alpha: of the lasso.
        unseen: `(samples, classes)`, logits on samples of classes the network was not trained on.
        unit: of alpha, as `CovarianceLasso` takes it.
    """
    logits = check_logits("logits", logits)
    targets = check_targets(targets, len(logits), logits.shape[1])
    target, on = pair
    if not (0 <= target < logits.shape[1] and 0 <= on < logits.shape[1] and target != on):
        raise HapteraError(f"pair is {pair}; two different classes from 0 to {logits.shape[1] - 1} were expected")
    lasso = CovarianceLasso(alpha, unit=unit).fit(logits)
    right = int(correct(logits, targets).sum())
    low, high = wilson(right, len(logits))
    return CutState(
        accuracy=right / len(logits),
        low=low,
        high=high,
        coefficient=float(lasso.dependencies_.coefficients[target, on]),
        moment=float(lasso.moment_.matrix()[target, on]),
        aupr=None if unseen is None else unseen_aupr(logits, unseen),
    )


def unseen_aupr(known: np.ndarray, unseen: np.ndarray) -> float:
    """Average precision of −max softmax for telling samples of unseen classes from known ones.

    >>> unseen_aupr(np.array([[9.0, 0.0], [8.0, 0.0]]), np.array([[0.1, 0.0]]))
    1.0
    """
    known, unseen = check_logits("known", known), check_logits("unseen", unseen)
    if known.shape[1] != unseen.shape[1]:
        raise HapteraError(
            f"unseen has {unseen.shape[1]} classes, known has {known.shape[1]}; one network was expected"
        )
    from sklearn.metrics import average_precision_score  # a second that other functions need not wait for

    logits = np.concatenate([known, unseen]).astype(np.float64)
    positive = np.arange(len(logits)) >= len(known)
    return float(average_precision_score(positive, -softmax(logits, axis=1).max(1)))
