"""Forward selection against the obvious loop, and least squares against NumPy's."""

import numpy as np
import pytest

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.forward import choose, refit
from haptera.analyses.dependencies.second_moment import SecondMoment


def obvious(logits: np.ndarray, own: np.ndarray, left_out: int, count: int) -> list[int]:
    """Try every class at every step, with least squares on the logits themselves."""
    chosen: list[int] = []
    for _ in range(count):
        errors = {}
        for place in range(logits.shape[1]):
            if place != left_out and place not in chosen:
                inputs = logits[:, [*chosen, place]]
                errors[place] = ((own - inputs @ np.linalg.lstsq(inputs, own, rcond=None)[0]) ** 2).sum()
        chosen.append(min(errors, key=lambda place: errors[place]))
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_the_class_that_lowers_the_error_most_joins_next(seed):
    generator = np.random.default_rng(seed)
    logits = generator.standard_normal((60, 9)) @ generator.standard_normal((9, 9))
    matrix = SecondMoment.of(logits).matrix()
    order = choose(matrix, matrix, np.arange(9), 4)
    assert order.tolist() == [obvious(logits, logits[:, place], place, 4) for place in range(9)]


def test_between_two_networks_and_over_several_pieces():
    generator = np.random.default_rng(0)
    logits, other = generator.standard_normal((300, 70)), generator.standard_normal((300, 70))
    other[:, 69] += logits[:, 3] - logits[:, 5]
    matrix, right, _ = SecondMoment.of(logits, other).problems()
    order = choose(matrix, right, np.arange(70), 2)
    assert sorted(order[69].tolist()) == [3, 5]
    assert order[[1, 64, 68]].tolist() == [obvious(logits, other[:, place], place, 2) for place in (1, 64, 68)]


def test_rescaling_any_logit_changes_no_choice():
    generator = np.random.default_rng(1)
    logits = generator.standard_normal((80, 12)) @ generator.standard_normal((12, 12))
    scales = np.exp(generator.normal(0, 3, 12))
    one, two = (SecondMoment.of(rows).matrix() for rows in (logits, logits * scales))
    assert np.array_equal(choose(one, one, np.arange(12), 5), choose(two, two, np.arange(12), 5))


def test_a_copy_of_a_class_that_joined_does_not_join_and_nothing_left_is_said():
    logits = np.random.default_rng(2).standard_normal((50, 3))
    logits = np.hstack([logits, logits[:, [1]], 2 * logits[:, [2]]])
    matrix = SecondMoment.of(logits).matrix()
    order = choose(matrix, matrix, np.arange(5), 4)
    assert {1, 3} - set(order[0].tolist())
    assert {2, 4} - set(order[0].tolist())
    assert (order[0] >= 0).sum() == 2
    assert (refit(matrix, matrix, order).toarray()[0] != 0).sum() == 2


def test_least_squares_are_those_of_numpy():
    generator = np.random.default_rng(3)
    logits = generator.standard_normal((90, 70)) @ generator.standard_normal((70, 70))
    matrix = SecondMoment.of(logits).matrix()
    order = choose(matrix, matrix, np.arange(70), 3)
    order[5, 1] = -1
    found = refit(matrix, matrix, order).toarray()
    for place in (0, 5, 66):
        on = order[place][order[place] >= 0]
        expected = np.linalg.lstsq(logits[:, on], logits[:, place], rcond=None)[0]
        assert found[place, on] == pytest.approx(expected)
        assert (found[place] != 0).sum() == len(on)


def test_relaxed_coefficients_are_least_squares_on_the_lassos_support():
    generator = np.random.default_rng(4)
    logits = generator.standard_normal((100, 8)) @ generator.standard_normal((8, 8))
    lasso = CovarianceLasso(0.1, unit="own").fit(logits)
    relaxed = lasso.dependencies_.relaxed(lasso.moment_)
    for place in range(8):
        on = np.flatnonzero(lasso.coef_[place])
        expected = np.linalg.lstsq(logits[:, on], logits[:, place], rcond=None)[0]
        assert relaxed.coefficients.toarray()[place, on] == pytest.approx(expected)
        left = logits[:, place] - logits[:, on] @ expected
        assert relaxed.error[place] == pytest.approx((left**2).mean())
    assert (relaxed.error <= lasso.dependencies_.error + 1e-12).all()


def test_in_its_own_unit_the_lasso_is_that_of_scaled_logits_and_no_rescaling_changes_its_support():
    generator = np.random.default_rng(5)
    logits = generator.standard_normal((100, 8)) @ generator.standard_normal((8, 8))
    size = np.sqrt((logits**2).mean(0))
    lasso = CovarianceLasso(0.1, unit="own").fit(logits)
    scaled = CovarianceLasso(0.1).fit(logits / size)
    assert lasso.coef_ == pytest.approx(scaled.coef_ * size[:, None] / size, abs=1e-10)
    assert lasso.dependencies_.error == pytest.approx(scaled.dependencies_.error * size**2)
    assert lasso.alpha_max_ == pytest.approx(scaled.alpha_max_)
    scales = np.exp(generator.normal(0, 2, 8))
    again = CovarianceLasso(0.1, unit="own").fit(logits * scales)
    assert again.coef_ == pytest.approx(lasso.coef_ * scales[:, None] / scales, rel=1e-7, abs=1e-10)
    for one, two in zip(lasso.path([0.5, 0.2]), again.path([0.5, 0.2]), strict=True):
        assert np.array_equal(one.counts, two.counts)
        assert one.relative_error == pytest.approx(two.relative_error)
    only = np.array([0, 2, 3])
    theta = lasso.derive(5, only)
    assert set(np.flatnonzero(theta)) <= set(only)
    part = CovarianceLasso(0.1).fit(logits[:, only] / size[only], onto=logits[:, [5]] / size[5])
    assert theta[only] == pytest.approx(part.coef_[0] * size[5] / size[only])


def test_between_networks_the_own_unit_scales_both():
    generator = np.random.default_rng(6)
    logits, other = (generator.standard_normal((100, 5)) @ generator.standard_normal((5, 5)) for _ in range(2))
    one = CovarianceLasso(0.05, unit="own").fit(logits, onto=other)
    two = CovarianceLasso(0.05, unit="own").fit(3 * logits, onto=100 * other)
    assert two.coef_ == pytest.approx(one.coef_ * 100 / 3)
    assert one.dependencies_.counts.sum() > 0
