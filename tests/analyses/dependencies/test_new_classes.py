"""New classes from old logits: the optimum against scikit-learn, sparsity, and accuracy by group."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from haptera.analyses.dependencies.new_classes import NewClasses, accuracy_by_group
from haptera.errors import HapteraError


def saved(seed: int = 0, samples: int = 300, old: int = 4, new: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Base logits and targets, of which those from `old` on are new; classes differ in their base logits."""
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, old + new, samples)
    centres = np.vstack([4 * np.eye(old), generator.standard_normal((new, old)) * 2])
    return centres[targets] + generator.standard_normal((samples, old)), targets


def mean_loss(theta: np.ndarray, base: np.ndarray, targets: np.ndarray, ridge: float, lasso: float) -> float:
    logits = np.hstack([base, base @ theta])
    own = logits[np.arange(len(base)), targets]
    return float((logsumexp(logits, axis=1) - own).mean() + ridge / 2 * (theta**2).sum() + lasso * np.abs(theta).sum())


def test_with_every_class_new_it_is_multinomial_regression():
    _, targets = saved(old=4, new=3)
    features = np.random.default_rng(1).standard_normal((300, 5)) + np.eye(7, 5)[targets] * 2
    nothing_known = np.full((300, 1), -1e9)  # one old class that nobody ever chooses
    ours = NewClasses(7, ridge=0.01).fit(nothing_known, targets + 1, features)
    peer = LogisticRegression(C=1 / (0.01 * 300), fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(features, targets)
    assert np.abs(ours.coef_.T - peer.coef_).max() < 1e-3


@pytest.mark.parametrize("lasso", [0.0, 0.02])
def test_no_step_in_any_direction_lowers_the_loss(lasso):
    base, targets = saved()
    found = NewClasses(3, ridge=0.01, lasso=lasso, most=3000).fit(base, targets)
    best = mean_loss(found.coef_, base, targets, 0.01, lasso)
    assert found.loss_ == pytest.approx(best, rel=1e-9)
    generator = np.random.default_rng(2)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            step = size * generator.standard_normal(found.coef_.shape)
            assert mean_loss(found.coef_ + step, base, targets, 0.01, lasso) >= best - 1e-9


def test_a_lasso_makes_coefficients_exactly_zero():
    base, targets = saved(old=10)
    counts = [np.count_nonzero(NewClasses(3, lasso=lasso).fit(base, targets).coef_) for lasso in (0.0, 0.01, 0.1, 10)]
    assert counts[0] == 30
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_the_gradient_is_the_derivative_of_the_loss():
    base, targets = saved(samples=40)
    taken = {}

    class Spied(NewClasses):
        def _minimise(self, smooth, shape):
            taken["smooth"] = smooth
            return super()._minimise(smooth, shape)

    Spied(3, ridge=0.1).fit(base, targets)
    smooth = taken["smooth"]
    at = np.random.default_rng(0).standard_normal(12)
    off = check_grad(lambda x: smooth(x.reshape(4, 3))[0], lambda x: smooth(x.reshape(4, 3))[1].ravel(), at)
    assert off < 1e-5


def test_old_logits_stay_as_they_are_and_new_ones_are_combinations_of_them():
    base, targets = saved()
    found = NewClasses(3).fit(base, targets)
    logits = found.logits(base)
    assert logits[:, :4].tolist() == base.tolist()
    assert logits[:, 4:] == pytest.approx(base @ found.coef_)
    features = np.hstack([base, np.ones((300, 1))])
    head = NewClasses(3).fit(base, targets, features)
    assert head.logits(base, features).shape == (300, 7)


def test_new_classes_are_recognised():
    base, targets = saved(seed=3, samples=6000)
    found = NewClasses(3).fit(base[:2000], targets[:2000])
    rows = {row.group: row for row in accuracy_by_group(found.logits(base[2000:]), targets[2000:], old=4)}
    assert rows["all"].value > 0.7
    assert rows["new"].low > 1 / 7
    assert rows["new within"].value >= rows["new"].value
    assert rows["all"].n == rows["old"].n + rows["new"].n == 4000


def test_groups_are_counted_by_hand():
    logits = np.array([[3.0, 0.0, 9.0], [0.0, 1.0, 0.0], [5.0, 0.0, 4.0]])
    rows = {row.group: (row.value, row.n) for row in accuracy_by_group(logits, np.array([0, 1, 2]), old=2)}
    assert rows == {
        "all": (1 / 3, 3), "old": (0.5, 2), "new": (0.0, 1), "old within": (1.0, 2), "new within": (1.0, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda base, targets: NewClasses(1).fit(base, targets), "targets hold"),
        (lambda base, targets: NewClasses(3).fit(base, targets[:5]), r"targets are int64 \(5,\)"),
        (lambda base, targets: NewClasses(3).fit(base, targets, base[:9]), "features have 9 samples, base has 300"),
        (lambda base, targets: NewClasses(3, lasso=-1).fit(base, targets), "lasso at least 0"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(HapteraError, match=message):
        make(*saved())
