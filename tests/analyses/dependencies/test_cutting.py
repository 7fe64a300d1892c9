"""Pairs worth cutting, and what is told about a network before and after."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.cutting import cut_state, pairs_worth_cutting, unseen_aupr
from haptera.errors import HapteraError


def rows_of(seed: int = 0, samples: int = 300) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((samples, 6)) * [1, 2, 1, 1, 3, 1]
    rows[:, 0] += 2 * rows[:, 4]
    rows[:, 1] += 0.5 * rows[:, 2]
    return rows


def test_pairs_are_ranked_by_what_they_do_to_the_logit():
    lasso = CovarianceLasso(alpha=0.05).fit(rows_of())
    pairs = pairs_worth_cutting(lasso)
    matrix = lasso.moment_.matrix()
    assert len(pairs) == lasso.dependencies_.coefficients.nnz
    for row in pairs.itertuples():
        target, on = int(row[1]), int(row.on)
        assert row.coefficient == lasso.coef_[target, on]
        assert row.moment == matrix[target, on]
        assert row.strength == pytest.approx(abs(row.coefficient) * np.sqrt(matrix[on, on] / matrix[target, target]))
    assert pairs["score"].is_monotonic_decreasing
    assert {int(pairs["class"][0]), int(pairs["on"][0])} == {0, 4}


def test_alike_classes_come_later():
    lasso = CovarianceLasso(alpha=0.05).fit(rows_of())
    alike = np.zeros((6, 6))
    alike[0, 4] = alike[4, 0] = 1
    pairs = pairs_worth_cutting(lasso, alike)
    assert pairs["score"].iloc[0] > 0
    assert {int(pairs["class"][0]), int(pairs["on"][0])} == {1, 2}
    assert set(map(tuple, pairs.tail(2)[["class", "on"]].to_numpy().tolist())) == {(0, 4), (4, 0)}


@pytest.mark.parametrize("coarse", [False, True])
def test_aupr_is_average_precision_of_the_negative_largest_softmax(coarse):
    generator = np.random.default_rng(1)
    known, unseen = 3 * generator.standard_normal((200, 5)), 2 * generator.standard_normal((60, 5))
    if coarse:
        known, unseen = np.round(known), np.round(unseen)
    both = np.vstack([known, unseen])
    softmax = np.exp(both) / np.exp(both).sum(1, keepdims=True)
    scores = -softmax.max(1).round(12 if coarse else 20)
    expected = average_precision_score(np.arange(260) >= 200, scores)
    assert unseen_aupr(known, unseen) == pytest.approx(expected, abs=2e-3 if coarse else 1e-12)


def test_aupr_survives_huge_logits():
    assert unseen_aupr(np.array([[1e4, 0.0]]), np.array([[1e4, 9999.5]])) == 1.0


def test_state_before_and_after_a_cut():
    logits, targets = rows_of(), np.random.default_rng(3).integers(0, 6, 300)
    cut = logits.copy()
    cut[:, 0] -= 2 * cut[:, 4]
    before, after = (cut_state(rows, targets, (0, 4), alpha=0.05, unseen=rows_of(9, 50)) for rows in (logits, cut))
    assert before.coefficient == CovarianceLasso(alpha=0.05).fit(logits).coef_[0, 4] > 1
    assert abs(after.coefficient) < 0.2
    assert before.moment == pytest.approx((logits[:, 0] * logits[:, 4]).mean())
    assert before.accuracy == (logits.argmax(1) == targets).mean()
    assert before.low < before.accuracy < before.high
    assert before.aupr == unseen_aupr(logits, rows_of(9, 50))
    assert cut_state(logits, targets, (0, 4)).aupr is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rows: pairs_worth_cutting(CovarianceLasso().fit(rows, onto=rows)), "between two networks"),
        (lambda rows: pairs_worth_cutting(CovarianceLasso().fit(rows), np.eye(3)), r"similarity has shape \(3, 3\)"),
        (lambda rows: cut_state(rows, np.zeros(300, int), (2, 2)), r"pair is \(2, 2\); two different classes"),
        (lambda rows: cut_state(rows, np.zeros(300, int), (2, 6)), "0 to 5"),
        (lambda rows: unseen_aupr(rows, rows[:, :3]), "unseen has 3 classes, known has 6"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(HapteraError, match=message):
        make(rows_of())
