"""Screening: what can be said about a dependency before the lasso is solved, and how often that is right.

Source: "Neural Dependencies Emerging from Learning Massive Categories", theorems 2 (9) and 3 (13), conjecture 1 (14),
appendix B.7. With ‖A_j‖ = √C_jj and ‖A⁻ᵀb‖² = C_ii − R_i every bound is O(1) for a pair, after one decomposition.
Where the code differs: (14) is printed in two forms that do not agree; the one that makes sense, and stands here, is
|C_ij| < λ/2. It is a conjecture, and wrong now and then, so it is counted and never used. In (A64) a sign is wrong; the
bound needs max(‖ξ_max‖ − Δ, 0), which leaves err ≥ R + (C_ii − R) max(2λ/λ_max − 1, 0)².
Theorem 3 is safe, but screens little: most pairs near λ_max, none at the α that the source uses.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from haptera.analyses.dependencies.covariance_lasso import Dependencies
from haptera.analyses.dependencies.lasso import largest_lambda
from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.second_moment import SecondMoment


@dataclass(frozen=True)
class Conjecture:
    """How often `|C_ij| < λ/2`, which by conjecture 1 excludes a dependency, was wrong.

    Attributes:
        wrong: dependencies that it would have excluded.
        dependencies: all dependencies.
        excluded: pairs it excludes, rightly or not.
        pairs: all pairs.
    """

    wrong: int
    dependencies: int
    excluded: int
    pairs: int


class Screening:
    """The bounds for every target and class.

    Args:
        moment: of the logits.
        redundancy: of the same moment, if it was computed already.
    """

    def __init__(self, moment: SecondMoment, redundancy: Redundancy | None = None) -> None:
        self.matrix, self.right, self.own = moment.problems()
        self.left_out = moment.left_out()
        self.lambda_max = largest_lambda(self.right, self.left_out)
        self._moment, self._known = moment, redundancy

    @cached_property
    def _redundancy(self) -> Redundancy:
        """The conjecture does without it, and it costs an eigendecomposition."""
        return self._known or Redundancy.of(self._moment)

    @property
    def rest(self) -> np.ndarray:
        """`(targets,)`, the redundancy of each target."""
        return self._redundancy.value

    @cached_property
    def product(self) -> np.ndarray:
        """`(targets, classes)`, ‖A_j‖ ‖A⁻ᵀb‖, the constant of theorems 2 and 3.

        A larger product screens less, so R counts as the least that it may be.
        """
        least = self.rest * np.maximum(1 - self._redundancy.uncertainty, 0.0)
        reach = np.sqrt(np.maximum(self.own - least, 0.0)) * (1 + 1e-9)
        return np.asarray(reach[:, None] * np.sqrt(self.matrix.diagonal()))

    def slope_bound(self, lam: float, other: float) -> np.ndarray:
        """`(targets, classes)`, theorem 2: how far (Cθ − b)_j / λ can differ between two λ."""
        return self.product * abs(1 / lam - 1 / other)

    def screen(self, lam: float | np.ndarray) -> np.ndarray:
        """`(targets, classes)`, true where theorem 3 says that a coefficient is 0 at this λ."""
        lam = np.broadcast_to(np.asarray(lam, float), self.own.shape)
        inside = (lam < self.lambda_max)[:, None]
        top = np.where(self.lambda_max > 0, self.lambda_max, 1.0)
        gap = np.abs(1 / lam - 1 / top)[:, None]
        safe = 2 * np.abs(self.right) / top[:, None] < 1 - 2 * self.product * gap
        return self._without_own(np.where(inside, safe, True))

    def exclude(self, lam: float | np.ndarray) -> np.ndarray:
        """`(targets, classes)`, true where conjecture 1, as corrected, expects a coefficient of 0."""
        lam = np.broadcast_to(np.asarray(lam, float), self.own.shape)
        return self._without_own(np.abs(self.right) < lam[:, None] / 2)

    def least_error(self, lam: float | np.ndarray) -> np.ndarray:
        """`(targets,)`, a lower bound of the error at this λ, finer than R: appendix B.7 with its sign corrected."""
        top = self.lambda_max
        share = np.divide(2 * np.asarray(lam, float), top, out=np.full(len(top), 2.0), where=top > 0)
        return self.rest + np.maximum(self.own - self.rest, 0.0) * np.clip(share - 1, 0.0, 1.0) ** 2

    def conjecture(self, dependencies: Dependencies) -> Conjecture:
        """How often the conjecture was wrong about these."""
        expected = self.exclude(dependencies.lam)
        target, on, _ = dependencies.edges()
        pairs = expected.size - int((self.left_out >= 0).sum())
        return Conjecture(int(expected[target, on].sum()), len(target), int(expected.sum()), pairs)

    def _without_own(self, pairs: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero(self.left_out >= 0)
        pairs[rows, self.left_out[rows]] = False
        return pairs
