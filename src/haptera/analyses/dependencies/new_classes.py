"""New classes from old logits: a frozen network learns classes it never saw as combinations of those it knows.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 3.2: f_new = Θᵀ f_base with a matrix of
n₁ x n₂ coefficients, the base frozen, logits concatenated; its baseline is a new linear head. Both are the same problem
on other inputs, base logits here and saved features there: cross-entropy over old and new logits together, of which
only the new ones depend on what is learnt. No bias (remark 1), unless the inputs have a column of ones.
Where the code differs: the source runs SGD on images for 60 epochs; features are saved here, so the convex problem is
solved by L-BFGS. A sparse matrix comes from an ℓ₁ penalty, with Θ = Θ₊ − Θ₋ and both halves at least 0.
Cost: some hundred passes over inputs (samples x inputs) times new classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from haptera.analyses.dependencies.replacement import check_targets
from haptera.analyses.dependencies.second_moment import check_logits
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.statistics.intervals import wilson

Smooth = Callable[[np.ndarray], tuple[float, np.ndarray]]


class NewClasses:
    """Logits of new classes as linear maps of saved inputs, beside the logits of the old ones.

    Args:
        classes: how many new ones; a target of n₁ + k is the k-th of them.
        ridge: weight of ½‖Θ‖² in the mean loss; keeps separable classes finite.
        lasso: weight of ‖Θ‖₁; above 0 the matrix is sparse.
        most: iterations.

    Attributes:
        coef_: Θ, `(inputs, classes)`.
        loss_: mean cross-entropy with penalties, where it ended.
    """

    def __init__(self, classes: int, *, ridge: float = 1e-4, lasso: float = 0.0, most: int = 500) -> None:
        self.classes = classes
        self.ridge = ridge
        self.lasso = lasso
        self.most = most

    def fit(self, base: np.ndarray, targets: np.ndarray, features: np.ndarray | None = None) -> Self:
        """Learn from samples of new classes, or of new and old ones.

        Args:
            base: `(samples, n₁)`, logits of the frozen network.
            targets: `(samples,)`, 0 to n₁ − 1 old, from n₁ on new.
            features: `(samples, inputs)` for a new linear head; without them the inputs are the base logits.
        """
        base = check_logits("base", base).astype(np.float64)
        targets = check_targets(targets, len(base), base.shape[1] + self.classes)
        inputs = base if features is None else check_logits("features", features).astype(np.float64)
        if len(inputs) != len(base):
            raise HapteraError(f"features have {len(inputs)} samples, base has {len(base)}")
        if self.classes < 1 or self.ridge < 0 or self.lasso < 0:
            raise HapteraError("classes must be 1 or more, ridge and lasso at least 0")
        shape = (inputs.shape[1], self.classes)
        known = logsumexp(base, axis=1)
        own = np.zeros((len(base), self.classes))
        new = targets >= base.shape[1]
        own[new, targets[new] - base.shape[1]] = 1
        fixed = np.where(new, 0.0, base[np.arange(len(base)), np.minimum(targets, base.shape[1] - 1)]).mean()

        def smooth(theta: np.ndarray) -> tuple[float, np.ndarray]:
            logits = inputs @ theta
            total = np.logaddexp(known, logsumexp(logits, axis=1))
            loss = total.mean() - fixed - (own * logits).sum() / len(logits) + self.ridge / 2 * (theta**2).sum()
            slope = inputs.T @ (np.exp(logits - total[:, None]) - own) / len(logits) + self.ridge * theta
            return float(loss), slope

        self.coef_, self.loss_ = self._minimise(smooth, shape)
        return self

    def logits(self, base: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Old and new logits side by side, `(samples, n₁ + classes)`."""
        base = np.asarray(base)
        return np.hstack([base, (base if features is None else np.asarray(features)) @ self.coef_])

    def _minimise(self, smooth: Smooth, shape: tuple[int, int]) -> tuple[np.ndarray, float]:
        """Θ and the loss there; with a lasso as Θ₊ − Θ₋, one after the other in a flat vector."""
        size = shape[0] * shape[1]

        def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
            if not self.lasso:
                loss, slope = smooth(flat.reshape(shape))
                return loss, slope.ravel()
            loss, slope = smooth((flat[:size] - flat[size:]).reshape(shape))
            return loss + self.lasso * float(flat.sum()), np.append(slope, -slope) + self.lasso

        found = minimize(
            value,
            np.zeros(2 * size if self.lasso else size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * size) if self.lasso else None,
            options={"maxiter": self.most, "maxfun": 2 * self.most, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7},
        )
        theta = found.x[:size] - found.x[size:] if self.lasso else found.x
        return theta.reshape(shape), float(found.fun)


@dataclass(frozen=True)
class GroupAccuracy:
    """Accuracy of one group of samples: a share, its interval at 95 %, and how many samples.

    Attributes:
        group: `all`, `old` or `new`; with ` within` where only classes of the group compete (table 4).
    """

    group: str
    value: float
    low: float
    high: float
    n: int


def accuracy_by_group(logits: np.ndarray, targets: np.ndarray, old: int) -> list[GroupAccuracy]:
    """Accuracy on all samples, on those of old and of new classes, and with each group's own classes alone.

    Args:
        logits: `(samples, classes)`, old classes first.
        targets: `(samples,)`.
        old: how many classes are old.
    """
    logits = check_logits("logits", logits)
    targets = check_targets(targets, len(logits), logits.shape[1])
    is_old = targets < old
    groups = {
        "all": (np.ones_like(is_old), slice(None)),
        "old": (is_old, slice(None)),
        "new": (~is_old, slice(None)),
        "old within": (is_old, slice(old)),
        "new within": (~is_old, slice(old, None)),
    }
    rows = []
    for group, (among, columns) in groups.items():
        n = int(among.sum())
        right = int(correct(logits[among, columns], targets[among] - (columns.start or 0)).sum())
        low, high = wilson(right, n)
        rows.append(GroupAccuracy(group, right / n if n else float("nan"), low, high, n))
    return rows
