"""Theorems 2 and 3 hold wherever the lasso is solved; the conjecture is counted, not trusted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.screening import Conjecture, Screening
from haptera.analyses.dependencies.second_moment import SecondMoment


def rows_of(seed: int, samples: int = 120, classes: int = 9, rank: int = 9) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((samples, rank)) @ generator.standard_normal((rank, classes))


def slope(matrix: np.ndarray, right: np.ndarray, lasso: CovarianceLasso) -> np.ndarray:
    return lasso.coef_ @ matrix - right


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(1, 8), st.floats(0.02, 1.1), st.booleans(), st.booleans())
def test_theorem_3_never_screens_a_true_dependency(seed, classes, rank, share, whole, between):
    rows = rows_of(seed, 30, classes, rank)
    rows = np.round(rows) if whole else rows
    other = np.random.default_rng(seed).standard_normal((30, classes)) + rows[:, ::-1] if between else None
    moment = SecondMoment.of(rows, other)
    screening = Screening(moment)
    top = screening.lambda_max.max()
    lam = share * top if top > 0 else 1.0
    found = CovarianceLasso(alpha=lam / 2).fit_moment(moment).dependencies_
    target, on, _ = found.edges()
    assert not screening.screen(lam)[target, on].any()


def test_theorem_3_screens_most_pairs_near_lambda_max_and_none_far_below():
    screening = Screening(SecondMoment.of(rows_of(1, 400, 30, 30)))
    shares = [screening.screen(share * screening.lambda_max).mean() for share in (0.99, 0.9, 0.05)]
    assert shares[0] > 0.8
    assert shares[0] > shares[1] > shares[2] == 0
    assert screening.screen(2 * screening.lambda_max).sum() == 30 * 29  # beyond λ_max all are 0


@pytest.mark.parametrize("rank", [9, 4])
def test_theorem_2_bounds_how_the_slope_changes_with_lambda(rank):
    moment = SecondMoment.of(rows_of(3, rank=rank))
    matrix, right, _ = moment.problems()
    screening = Screening(moment)
    top = float(screening.lambda_max.min())
    lams = [top * share for share in (1.0, 0.7, 0.4, 0.1)]
    slopes = [slope(matrix, right, CovarianceLasso(alpha=lam / 2).fit_moment(moment)) / lam for lam in lams]
    for one, lam in zip(slopes, lams, strict=True):
        for two, other in zip(slopes, lams, strict=True):
            change = np.abs(one - two)
            np.fill_diagonal(change, 0)
            assert (change <= screening.slope_bound(lam, other) + 1e-12).all()


@pytest.mark.parametrize("rank", [9, 4])
def test_the_finer_lower_bound_of_the_error_holds_and_is_tight_at_lambda_max(rank):
    moment = SecondMoment.of(rows_of(5, rank=rank))
    screening = Screening(moment)
    for share in (1.0, 0.9, 0.75, 0.6, 0.3):
        lam = share * float(screening.lambda_max.max())
        error = CovarianceLasso(alpha=lam / 2).fit_moment(moment).dependencies_.error
        assert (screening.least_error(lam) <= error + 1e-9 * screening.own).all()
    assert screening.least_error(screening.lambda_max) == pytest.approx(screening.own)
    assert (screening.least_error(0.9 * screening.lambda_max) > screening.rest).all()


def test_the_conjecture_is_counted_pair_by_pair():
    rows = rows_of(7, 200, 12, 12)
    lasso = CovarianceLasso(alpha=0.3).fit(rows)
    matrix = lasso.moment_.matrix()
    wrong = excluded = 0
    for target in range(12):
        for on in range(12):
            if on != target and abs(matrix[target, on]) < 0.3:
                excluded += 1
                wrong += lasso.coef_[target, on] != 0
    found = Screening(lasso.moment_).conjecture(lasso.dependencies_)
    assert found == Conjecture(wrong, lasso.dependencies_.coefficients.nnz, excluded, 132)
    assert wrong > 0  # so that a filter it cannot be


def test_the_conjecture_is_right_where_classes_are_nearly_orthogonal():
    matrix = np.diag([4.0, 3.0, 2.0]) + 0.1
    lasso = CovarianceLasso(alpha=0.2).fit_moment(matrix)
    found = Screening(lasso.moment_).conjecture(lasso.dependencies_)
    assert (found.wrong, found.excluded, found.pairs) == (0, 6, 6)
