"""The covariance lasso: known answers, peers, optimality conditions, paths, and what it says about bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Lasso, lars_path_gram

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso, Dependencies
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.errors import HapteraError

HAND = [[2.0, 1.0], [1.0, 1.0]]


def logits(seed: int, samples: int = 200, classes: int = 12, rank: int | None = None) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rank = rank or classes
    mixed = generator.standard_normal((samples, rank)) @ generator.standard_normal((rank, classes))
    return mixed + 0.3 * generator.standard_normal(classes)


def violation(matrix: np.ndarray, found: Dependencies) -> float:
    """The largest violation of (7) as a share of λ, written out class by class."""
    worst = 0.0
    for target in range(len(found)):
        theta = np.zeros(len(matrix))
        theta[target] = -1
        for on, coefficient in found.on(target):
            theta[on] = coefficient
        half = found.lam[target] / 2
        for on, slope in enumerate(matrix @ theta):
            if on == target:
                continue
            off = abs(slope + half * np.sign(theta[on])) if theta[on] else max(abs(slope) - half, 0)
            worst = max(worst, off / found.lam[target])
    return worst


def objective(matrix: np.ndarray, target: int, theta: np.ndarray, lam: float) -> float:
    whole = np.insert(theta, target, -1.0)
    return float(whole @ matrix @ whole + lam * np.abs(theta).sum())


def test_the_example_that_can_be_solved_by_hand():
    lasso = CovarianceLasso(alpha=0.5).fit_moment(HAND)
    found = lasso.dependencies_
    assert found.on(0) == [(1, 0.5)]
    assert found.error[0] == pytest.approx(1.25, abs=1e-14)
    assert found.relative_error[0] == pytest.approx(0.625, abs=1e-14)
    assert found.violation.max() < 1e-14
    assert lasso.alpha_max_[0] == 1
    assert CovarianceLasso(alpha=1.0).fit_moment(HAND).dependencies_.counts.tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_scikit_learn_without_intercept(seed):
    rows = logits(seed)
    lasso = CovarianceLasso(alpha=0.3).fit(rows)
    for target in range(rows.shape[1]):
        peer = Lasso(alpha=0.3, fit_intercept=False, max_iter=200_000, tol=1e-14)
        peer.fit(np.delete(rows, target, 1), rows[:, target])
        assert np.delete(lasso.coef_[target], target) == pytest.approx(peer.coef_, abs=1e-6)
        assert lasso.coef_[target, target] == 0


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_least_angle_regression_on_the_moment(seed):
    rows = logits(seed, samples=60, classes=20)
    matrix = SecondMoment.of(rows).matrix()
    for alpha in (2.0, 0.2, 0.02):
        lasso = CovarianceLasso(alpha=alpha).fit(rows)
        for target in range(20):
            keep = np.delete(np.arange(20), target)
            _, _, peer = lars_path_gram(
                matrix[keep, target], matrix[np.ix_(keep, keep)], n_samples=1, alpha_min=alpha, method="lasso",
                return_path=False,
            )  # fmt: skip
            assert lasso.coef_[target, keep] == pytest.approx(peer, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_reaches_the_same_optimum_as_scikit_learn_where_many_are_optimal(seed):
    rows = logits(seed, samples=40, classes=15, rank=5)
    rows[:, 3] = rows[:, 8]
    matrix = SecondMoment.of(rows).matrix()
    lasso = CovarianceLasso(alpha=0.2).fit(rows)
    assert violation(matrix, lasso.dependencies_) <= 1e-8
    for target in range(15):
        peer = Lasso(alpha=0.2, fit_intercept=False, max_iter=1_000_000, tol=1e-13)
        peer.fit(np.delete(rows, target, 1), rows[:, target])
        ours, theirs = np.delete(lasso.coef_[target], target), peer.coef_
        assert objective(matrix, target, ours, 0.4) == pytest.approx(objective(matrix, target, theirs, 0.4), abs=1e-6)
        assert np.delete(rows, target, 1) @ (ours - theirs) == pytest.approx(np.zeros(40), abs=1e-4)


def test_conditions_hold_for_every_class_and_lambda():
    for rows in (logits(1, 300, 40), logits(2, 300, 40, rank=9), logits(3, 20, 40)):
        lasso = CovarianceLasso(alpha=1.0).fit(rows)
        matrix = lasso.moment_.matrix()
        for share in (1.5, 0.9, 0.3, 0.1, 0.01, 0.001):
            lasso.set_params(alpha=share * float(lasso.alpha_max_.max())).fit_moment(lasso.moment_)
            assert lasso.dependencies_.violation.max() <= 1e-8
            assert violation(matrix, lasso.dependencies_) == pytest.approx(
                lasso.dependencies_.violation.max(), abs=1e-10
            )


@st.composite
def moments(draw: st.DrawFn) -> np.ndarray:
    """Second moments with ties, duplicates, zeros, columns of very different size, and any rank."""
    samples, classes = draw(st.integers(1, 12)), draw(st.integers(2, 9))
    values = st.lists(st.integers(-3, 3), min_size=samples * classes, max_size=samples * classes)
    rows = np.array(draw(values), float).reshape(samples, classes)
    if draw(st.booleans()):
        rows = rows @ np.diag(10.0 ** np.array(draw(st.lists(st.integers(-2, 2), min_size=classes, max_size=classes))))
    return rows.T @ rows / samples


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(moments(), st.floats(0.01, 1.2))
def test_conditions_hold_on_singular_moments_with_ties(matrix, share):
    lasso = CovarianceLasso(alpha=1.0).fit_moment(matrix)
    top = float(lasso.alpha_max_.max())
    found = lasso.set_params(alpha=share * top or 1.0).fit_moment(matrix).dependencies_
    assert np.isfinite(found.coefficients.data).all()
    assert found.violation.max() <= 1e-8
    assert (found.error >= 0).all()
    if share >= 1:
        assert found.coefficients.nnz == 0
        assert found.error == pytest.approx(matrix.diagonal())


def test_a_tiny_lambda_ends_and_says_how_far_off_it_is():
    rows = logits(7, 56, 15, rank=14)
    found = CovarianceLasso(alpha=1e-9).fit(rows).dependencies_
    assert np.isfinite(found.violation).all()
    assert found.violation.max() < 1


def test_error_grows_along_the_path_from_redundancy_to_the_own_square():
    from haptera.analyses.dependencies.redundancy import Redundancy

    for rows in (logits(1, 100, 14), logits(2, 100, 14, rank=6), logits(3, 5, 14)):
        lasso = CovarianceLasso().fit(rows)
        own = lasso.moment_.matrix().diagonal()
        errors = np.array([found.error for found in lasso.path()])  # the largest λ first
        slack = 1e-9 * own
        assert (errors <= own + slack).all()
        assert (np.diff(errors, axis=0) <= slack).all()
        assert (errors >= Redundancy.of(lasso.moment_).value - slack).all()
        assert errors[0] == pytest.approx(own, rel=0.2)


def test_a_warm_path_ends_where_a_cold_start_does():
    rows = logits(4, 80, 25)
    alphas = [3.0, 1.0, 0.3, 0.1]
    for alpha, warm in zip(alphas, CovarianceLasso().fit(rows).path(alphas[::-1]), strict=True):
        cold = CovarianceLasso(alpha=alpha).fit(rows).dependencies_
        assert warm.lam[0] == 2 * alpha
        assert warm.coefficients.toarray() == pytest.approx(cold.coefficients.toarray(), abs=1e-10)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_per_class_keeps_so_many_at_the_lambda_at_which_one_more_would_join(count):
    rows = logits(6, 150, 16)
    matrix = SecondMoment.of(rows).matrix()
    found = CovarianceLasso(per_class=count).fit(rows).dependencies_
    assert found.counts.tolist() == [count] * 16
    assert found.violation.max() <= 1e-8
    for target in range(16):
        keep = np.delete(np.arange(16), target)
        alphas, _, path = lars_path_gram(matrix[keep, target], matrix[np.ix_(keep, keep)], n_samples=1, method="lasso")
        sizes = ((path[:, 1:] + path[:, :-1]) != 0).sum(0)  # between a knot and the next
        assert found.lam[target] / 2 == pytest.approx(alphas[np.argmax(sizes > count)], rel=1e-5)


def test_per_class_keeps_fewer_where_there_are_not_so_many():
    rows = logits(1, 30, 4, rank=2)
    rows[:, 3] = 0
    found = CovarianceLasso(per_class=3).fit(rows).dependencies_
    assert (found.counts <= 3).all()
    assert found.counts[3] == 0
    assert np.isfinite(found.lam).all()
    assert found.violation.max() <= 1e-8


def test_per_class_of_an_exact_combination_does_not_go_to_the_edge_of_rounding():
    rows = np.random.default_rng(0).standard_normal((200, 6))
    rows[:, 0] = rows[:, 1] + 0.5 * rows[:, 2]
    found = CovarianceLasso(per_class=2).fit(rows).dependencies_
    assert [on for on, _ in found.on(0)] == [1, 2]
    assert found.on(0)[0][1] == pytest.approx(1, abs=1e-3)
    assert found.violation.max() <= 1e-8


def test_logits_stream_and_moment_give_the_same():
    rows = logits(2, 333, 10).astype(np.float32)
    whole = CovarianceLasso().fit(rows)
    parts = CovarianceLasso().fit_stream(rows[first : first + 50] for first in range(0, 333, 50))
    given_moment = CovarianceLasso().fit_moment((rows.T.astype(float) @ rows) / 333)
    for other in (parts, given_moment):
        assert other.coef_ == pytest.approx(whole.coef_, abs=1e-9)
    assert whole.predict(rows) == pytest.approx(rows @ whole.coef_.T, abs=1e-9)


def test_onto_another_network_leaves_out_the_own_class_and_no_other():
    one, two = logits(1, 120, 8), logits(2, 120, 8) + logits(1, 120, 8)
    lasso = CovarianceLasso(alpha=0.1).fit(one, onto=two)
    for target in range(8):
        peer = Lasso(alpha=0.1, fit_intercept=False, max_iter=200_000, tol=1e-14)
        peer.fit(np.delete(one, target, 1), two[:, target])
        assert np.delete(lasso.coef_[target], target) == pytest.approx(peer.coef_, abs=1e-6)
        assert lasso.coef_[target, target] == 0
        error = np.mean((two[:, target] - one @ lasso.coef_[target]) ** 2)
        assert lasso.dependencies_.error[target] == pytest.approx(error)
        assert lasso.dependencies_.relative_error[target] == pytest.approx(error / np.mean(two[:, target] ** 2))


def test_onto_other_classes_may_use_all():
    one = logits(1, 120, 5)
    lasso = CovarianceLasso(alpha=1e-3).fit(one, onto=one[:, :3] * 2)
    assert lasso.coef_ == pytest.approx(2 * np.eye(3, 5), abs=1e-3)


def test_a_derived_logit_is_within_epsilon_as_often_as_promised():
    rows = logits(8, 500, 9)
    lasso = CovarianceLasso(alpha=0.2).fit(rows)
    off = np.abs(rows - lasso.predict(rows))
    for epsilon in (0.3, 0.6, 1.2, 3.0):
        assert ((off < epsilon).mean(0) >= lasso.dependencies_.within(epsilon) - 1e-12).all()
    always_half = SecondMoment.given(np.diag([0.25, 1.0]))  # |e| = .5 always: the printed bound says .375 of ε = .4
    assert CovarianceLasso(alpha=1.0).fit_moment(always_half).dependencies_.within(0.4)[0] == 0


def test_settings_are_scikit_learns():
    lasso = CovarianceLasso(alpha=2.5)
    assert clone(lasso).get_params() == {"alpha": 2.5, "per_class": None, "unit": "logit"}
    assert repr(lasso) == "CovarianceLasso(alpha=2.5, per_class=None, unit='logit')"
    with pytest.raises(HapteraError, match="did you mean 'alpha'"):
        lasso.set_params(alhpa=1)


def test_constant_and_duplicate_columns_have_defined_answers():
    rows = logits(1, 50, 5)
    rows[:, 1], rows[:, 2], rows[:, 4] = 3.0, 0.0, rows[:, 0]
    found = CovarianceLasso(alpha=0.01).fit(rows).dependencies_
    assert found.on(0)[0][0] == 4
    assert found.on(0)[0][1] == pytest.approx(1, abs=0.05)
    assert found.on(2) == []
    assert (found.error[2], found.relative_error[2]) == (0, 0)
    assert found.violation.max() <= 1e-8


def test_fewer_samples_than_classes_is_no_trouble():
    found = CovarianceLasso(alpha=0.05).fit(logits(3, 4, 30)).dependencies_
    assert found.violation.max() <= 1e-8
    assert found.counts.max() <= 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CovarianceLasso(alpha=0).fit(logits(1)), "alpha is 0; a positive number was expected"),
        (lambda: CovarianceLasso(alpha=-1).fit(logits(1)), "alpha is -1"),
        (lambda: CovarianceLasso(alpha=float("nan")).fit(logits(1)), "alpha is nan"),
        (lambda: CovarianceLasso(per_class=0).fit(logits(1)), "per_class is 0; a whole number of at least 1"),
        (lambda: CovarianceLasso(per_class=1.5).fit(logits(1)), "per_class is 1.5"),
        (lambda: CovarianceLasso().fit(np.full((3, 2), np.nan)), "logits hold nan in sample 0, class 0"),
        (lambda: CovarianceLasso().fit(np.array([[1.0, np.inf]])), "logits hold inf in sample 0, class 1"),
        (
            lambda: CovarianceLasso().fit_stream([np.ones((9, 2)), np.array([[1.0, np.nan]])]),
            "nan in sample 9, class 1",
        ),
        (lambda: CovarianceLasso().fit(np.zeros(3)), r"logits are float64 \(3,\); numbers \(samples, classes\)"),
        (lambda: CovarianceLasso().fit(np.array([["a"]])), "logits are <U1"),
        (lambda: CovarianceLasso().fit(logits(1), onto=logits(1)[:9]), "onto has 9 samples, logits have 200"),
        (lambda: CovarianceLasso().fit_stream([]), "the stream of logits is empty"),
        (lambda: CovarianceLasso().fit_stream([np.ones((2, 3)), np.ones((2, 4))]), "a batch has 4 classes"),
        (lambda: CovarianceLasso().fit_moment([[1.0, 2.0]]), r"shape \(1, 2\); \(classes, classes\)"),
        (lambda: CovarianceLasso().fit_moment([[1.0, 0.5], [0.4, 1.0]]), "not symmetric"),
        (lambda: CovarianceLasso().fit_moment([[-1.0, 0.0], [0.0, 1.0]]), "a mean of squares"),
        (lambda: CovarianceLasso().fit_moment([[1.0, 2.0], [2.0, 1.0]]), "has the eigenvalue -1"),
        (lambda: CovarianceLasso().fit_moment([[np.nan, 0.0], [0.0, 1.0]]), "holds NaN"),
        (lambda: CovarianceLasso().fit(logits(1)).predict(np.ones((2, 3))), r"\(samples, 12\) was expected"),
        (lambda: list(CovarianceLasso().fit(logits(1)).path([0.0])), "alphas are"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(HapteraError, match=message):
        make()
