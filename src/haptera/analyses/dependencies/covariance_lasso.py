"""Covariance lasso: which classes a network derives from which others, for all classes at once.

Source: "Neural Dependencies Emerging from Learning Massive Categories", (2): min θᵀCθ + λ‖θ‖₁ with θ_i = −1, C the
second moment of the logits, without centring, scaling or intercept (remark 1). Between two networks the cross moment
takes the place of C's column i, and class i of the first network does not take part. The printed recipe is
scikit-learn's Lasso for each class on the logits, with α = λ/2; its default intercept, which the remark forbids, is
left out here, and the problems are solved on the moment, exactly, so that every solution comes with the violation of
its optimality conditions (7), at most 1e-8 of λ but for λ so small that float64 cannot tell.
With the unit `own` the same problem is solved for logits that are each divided by their root mean square, which
remark 1 does not do: α is then a share, the same for every network, and rescaling logits, all of them or one, rescales
coefficients and changes no support. `relaxed` takes the shrinkage back (Meinshausen, 2007): least squares on a support.
Cost: the moment once, then some hundredths of a second for each hundred classes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from haptera.analyses.dependencies.forward import refit
from haptera.analyses.dependencies.lasso import gradient, keep, largest_lambda, pieces_of, solve
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.checks import check_whole_number
from haptera.errors import HapteraError, check_keys, unknown

UNITS = ("own", "logit")


@dataclass(frozen=True, eq=False)
class Dependencies:
    """The solutions for every target class, at one λ or at one λ each.

    Attributes:
        coefficients: `(targets, classes)`; a row says from which classes its target is derived.
        lam: λ, `(targets,)`, in the unit in which it was solved.
        error: `(targets,)`, θᵀCθ, the mean squared error of the derived logit.
        relative_error: `(targets,)`, the error divided by the mean square of the logit (A32).
        violation: `(targets,)`, the largest violation of (7), as a share of λ.
    """

    coefficients: csr_array
    lam: np.ndarray
    error: np.ndarray
    relative_error: np.ndarray
    violation: np.ndarray

    def __len__(self) -> int:
        return len(self.lam)

    @property
    def counts(self) -> np.ndarray:
        """`(targets,)`, from how many classes each is derived."""
        return np.diff(self.coefficients.indptr)

    def on(self, target: int) -> list[tuple[int, float]]:
        """The classes a target is derived from, with their coefficients, the largest first."""
        own = slice(self.coefficients.indptr[target], self.coefficients.indptr[target + 1])
        classes, values = self.coefficients.indices[own], self.coefficients.data[own]
        order = np.argsort(-np.abs(values), kind="stable")
        return [(int(classes[place]), float(values[place])) for place in order]

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All dependencies as target, class and coefficient, each `(dependencies,)`."""
        return np.repeat(np.arange(len(self)), self.counts), self.coefficients.indices, self.coefficients.data

    def within(self, epsilon: float) -> np.ndarray:
        """`(targets,)`, the least probability that a derived logit is less than ε off: (3), with the ε² it needs."""
        return np.maximum(1 - self.error / epsilon**2, 0.0)

    def on_moment(self, moment: SecondMoment) -> "Dependencies":
        """The same coefficients with the errors that they make on other examples, whose second moment is given."""
        matrix, right, own = moment.problems()
        derived = np.asarray(self.coefficients @ matrix)
        square = np.asarray(self.coefficients.multiply(derived).sum(1)).ravel()
        error = np.maximum(own - 2 * np.asarray(self.coefficients.multiply(right).sum(1)).ravel() + square, 0.0)
        relative = np.divide(error, own, out=np.zeros_like(error), where=own > 0)
        return replace(self, error=error, relative_error=relative)

    def relaxed(self, moment: SecondMoment) -> "Dependencies":
        """Least squares on the same classes, without shrinkage, on a second moment; errors are those there."""
        matrix, right, _ = moment.problems()
        order = np.full((len(self), max(int(self.counts.max(initial=0)), 1)), -1)
        order[np.arange(order.shape[1]) < self.counts[:, None]] = self.coefficients.indices
        return replace(self, coefficients=refit(matrix, right, order)).on_moment(moment)


class CovarianceLasso:
    """Dependencies of every class on the others, in the manner of scikit-learn.

    Args:
        alpha: λ/2, as scikit-learn counts; 0.25 and 2.5 are the source's.
        per_class: instead of alpha, keep this many dependencies for each class, at the λ at which one more would join.
        unit: of the logits in which alpha counts: `logit`, as the source, or `own`, each class's own root mean square,
            which no rescaling of logits changes.

    Attributes:
        moment_: the second moment it was fitted on.
        solved_: the same in the unit, where λ and the optimality conditions belong.
        dependencies_: the solutions, a `Dependencies`.
        coef_: `(targets, classes)`, their coefficients.

    >>> lasso = CovarianceLasso(alpha=0.5).fit_moment([[2.0, 1.0], [1.0, 1.0]])
    >>> lasso.dependencies_.on(0), float(lasso.dependencies_.error[0])
    ([(1, 0.5)], 1.25)
    """

    def __init__(self, alpha: float = 0.25, *, per_class: int | None = None, unit: str = "logit") -> None:
        self.alpha = alpha
        self.per_class = per_class
        self.unit = unit

    def fit(self, logits: np.ndarray, onto: np.ndarray | None = None) -> Self:
        """Fit on logits `(samples, classes)`; with `onto`, derive that network's logits from those of the first."""
        return self.fit_moment(SecondMoment.of(logits, onto))

    def fit_stream(self, batches: Iterable[Any]) -> Self:
        """Fit on batches of logits, or on pairs of batches of two networks, of which one is held at a time."""
        return self.fit_moment(SecondMoment.of_stream(batches))

    def fit_moment(self, moment: SecondMoment | np.ndarray | Sequence[Sequence[float]]) -> Self:
        """Fit on a second moment."""
        if self.per_class is not None:
            check_whole_number("per_class", self.per_class)
        elif not (np.isfinite(self.alpha) and self.alpha > 0):
            raise HapteraError(
                f"alpha is {self.alpha}; a positive number was expected. At 0 nothing is sparse: the error that is "
                "left there is the redundancy"
            )
        if self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS)
        self.moment_ = moment if isinstance(moment, SecondMoment) else SecondMoment.given(np.asarray(moment))
        self.solved_ = self.moment_.scaled() if self.unit == "own" else self.moment_
        self._problems = *self.solved_.problems(), self.solved_.left_out()
        matrix, right, own, left_out = self._problems
        if self.per_class is not None:
            lam, theta = keep(matrix, right, left_out, self.per_class)
        else:
            lam = np.full(len(own), 2.0 * self.alpha)
            theta = solve(matrix, right, lam, left_out)
        self.dependencies_ = self._in_logits(_describe(*self._problems, lam, theta))
        self.n_features_in_ = len(matrix)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """`(targets, classes)`."""
        return self.dependencies_.coefficients.toarray()

    @property
    def alpha_max_(self) -> np.ndarray:
        """`(targets,)`, the alpha from which on a target depends on nothing."""
        _, right, _, left_out = self._problems
        return largest_lambda(right, left_out) / 2

    def path(
        self, alphas: Sequence[float] | np.ndarray | None = None, targets: Sequence[int] | None = None
    ) -> Iterator[Dependencies]:
        """Solutions along alphas, the largest first, each begun from the one before.

        Args:
            alphas: by default 30 from the largest `alpha_max_` down to a hundredth of it.
            targets: classes to solve for, in this order; by default all.
        """
        rows = np.arange(len(self._problems[2])) if targets is None else np.asarray(targets)
        matrix, right, own, left_out = (self._problems[0], *(part[rows] for part in self._problems[1:]))
        top = max(float(largest_lambda(right, left_out).max()) / 2, np.finfo(np.float64).tiny)
        wanted = np.geomspace(top, top / 100, 30) if alphas is None else np.sort(np.asarray(alphas, float))[::-1]
        if not len(wanted) or not (np.isfinite(wanted) & (wanted > 0)).all():
            raise HapteraError(f"alphas are {list(wanted)}; positive numbers were expected")
        theta = None
        for alpha in wanted:
            lam = np.full(len(own), 2.0 * alpha)
            theta = solve(matrix, right, lam, left_out, theta)
            yield self._in_logits(_describe(matrix, right, own, left_out, lam, theta), rows)

    def derive(self, target: int, among: np.ndarray) -> np.ndarray:
        """Coefficients of one target, `(classes,)`, at its λ, when only some classes may take part."""
        matrix, right, _, _ = self._problems
        sizes, onto = self._sizes()
        start = self.dependencies_.coefficients[[target]].multiply(sizes / onto[target]).tocsr()[:, among]
        lam, nothing = self.dependencies_.lam[[target]], np.array([-1])
        found = solve(matrix[np.ix_(among, among)], right[[target]][:, among], lam, nothing, csr_array(start))
        theta = np.zeros(len(matrix))
        theta[among] = found.toarray()[0] * onto[target] / sizes[among]
        return theta

    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """What a logit was divided by before the problem was solved, `(classes,)` and `(targets,)`."""
        if self.unit == "own":
            return self.moment_.sizes()
        return np.ones(len(self._problems[0])), np.ones(len(self._problems[2]))

    def _in_logits(self, found: Dependencies, rows: np.ndarray | None = None) -> Dependencies:
        """Solutions for logits as they were given; λ and the violation stay those of the problem that was solved."""
        if self.unit == "logit":
            return found
        sizes, onto = self._sizes()
        onto = onto if rows is None else onto[rows]
        theta = found.coefficients.copy()
        theta.data = theta.data * np.repeat(onto, found.counts) / sizes[theta.indices]
        return replace(found, coefficients=theta, error=found.error * onto**2)

    def predict(self, logits: np.ndarray) -> np.ndarray:
        """The derived logits, `(samples, targets)`."""
        logits = np.asarray(logits)
        if logits.ndim != 2 or logits.shape[1] != self.n_features_in_:
            raise HapteraError(
                f"logits have shape {logits.shape}; (samples, {self.n_features_in_}) was expected, as in fit"
            )
        derived: np.ndarray = (self.dependencies_.coefficients @ logits.T).T
        return derived

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn asks for them."""
        return {"alpha": self.alpha, "per_class": self.per_class, "unit": self.unit}

    def set_params(self, **params: Any) -> Self:
        """Change settings."""
        check_keys("setting", params, self.get_params())
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"CovarianceLasso({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"


def _describe(
    matrix: np.ndarray, right: np.ndarray, own: np.ndarray, left_out: np.ndarray, lam: np.ndarray, theta: csr_array
) -> Dependencies:
    """Solutions with their errors and the violation of their conditions."""
    error, violation = np.empty_like(own), np.empty_like(own)
    for rows in pieces_of(len(own)):
        slope = gradient(matrix, right[rows], left_out[rows], theta[rows])
        dense, half = theta[rows].toarray(), lam[rows, None] / 2
        error[rows] = np.maximum(own[rows] + (dense * (slope - right[rows])).sum(1), 0.0)
        excess = np.where(dense != 0, np.abs(slope + half * np.sign(dense)), np.maximum(np.abs(slope) - half, 0.0))
        violation[rows] = excess.max(1) / lam[rows]
    return Dependencies(
        coefficients=theta,
        lam=lam,
        error=error,
        relative_error=np.divide(error, own, out=np.zeros_like(error), where=own > 0),
        violation=violation,
    )
