"""Decoders are scikit-learn's estimators, read labels of every kind, and search settings in folds of time."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from haptera.analyses.embedding.decoders import KNNDecoder, LinearDecoder, TimeFolds
from haptera.errors import HapteraError

RANDOM = np.random.default_rng(0)
ANGLE = np.cumsum(RANDOM.normal(0, 0.3, 400)) % (2 * np.pi)
RING = np.column_stack([np.cos(ANGLE), np.sin(ANGLE)]) + 0.1 * RANDOM.normal(size=(400, 2))
CLASSES = np.array(["left", "right", "up"])[(ANGLE // 2.1).astype(int).clip(max=2)]


@parametrize_with_checks([KNNDecoder(3, "euclidean"), LinearDecoder(kind="continuous")])
def test_is_an_estimator(estimator, check):
    check(estimator)


def test_neighbours_are_those_of_scikit_learn():
    train, test = slice(0, 300), slice(300, None)
    numbers = KNNDecoder(5, "euclidean").fit(RING[train], RING[train]).predict(RING[test])
    np.testing.assert_allclose(numbers, KNeighborsRegressor(5).fit(RING[train], RING[train]).predict(RING[test]))
    found = KNNDecoder(5, "euclidean").fit(RING[train], CLASSES[train])
    plain = KNeighborsClassifier(5).fit(RING[train], CLASSES[train])
    assert np.array_equal(found.predict(RING[test]), plain.predict(RING[test]))
    assert found.score(RING[test], CLASSES[test]) == plain.score(RING[test], CLASSES[test])


@pytest.mark.parametrize(
    ("penalty", "plain"), [("l1", Lasso(0.02)), ("l2", PlainRidge(0.02)), (None, LinearRegression())]
)
def test_linear_maps_are_those_of_scikit_learn(penalty, plain):
    mixed = RING @ np.array([[1.0, 2.0, 0.0], [0.5, 0.0, 1.0]]) + 3
    target = RING @ np.array([1.0, -2.0]) + 1
    found = LinearDecoder(penalty, 0.02).fit(mixed, target)
    plain.fit(mixed, target)
    np.testing.assert_allclose(found.predict(mixed), plain.predict(mixed), atol=1e-8)
    assert found.score(mixed, target) == pytest.approx(plain.score(mixed, target))


@pytest.mark.parametrize("decoder", [KNNDecoder(5), LinearDecoder(), LinearDecoder("l1", alpha=0.001)])
def test_angles_are_read_on_the_circle_in_the_unit_that_was_given(decoder):
    radians = decoder.set_params(kind="angle").fit(RING, ANGLE).predict(RING)
    degrees = decoder.set_params(kind="degrees").fit(RING, np.rad2deg(ANGLE)).predict(RING)
    np.testing.assert_allclose(np.rad2deg(radians), degrees)
    assert np.median(np.abs(np.angle(np.exp(1j * (radians - ANGLE))))) < 0.1
    assert decoder.score(RING, np.rad2deg(ANGLE) - 360) > 0.9  # the same directions
    plain = decoder.set_params(kind="continuous").fit(RING, ANGLE)
    assert plain.score(RING, ANGLE) < 0.99


def test_a_search_over_settings_keeps_stretches_of_time_whole():
    search = GridSearchCV(KNNDecoder(kind="angle"), {"n_neighbors": [1, 25]}, cv=TimeFolds(4, gap=10))
    assert search.fit(RING, ANGLE).best_params_ == {"n_neighbors": 25}
    by_trial = GridSearchCV(LinearDecoder(), {"alpha": [0.1, 1e6]}, cv=GroupKFold(4))
    assert by_trial.fit(RING, CLASSES, groups=np.arange(400) // 20).best_params_ == {"alpha": 0.1}


def test_folds_are_stretches_with_a_gap_on_both_sides():
    folds = list(TimeFolds(3, gap=5).split(RING))
    assert np.array_equal(np.concatenate([test for _, test in folds]), np.arange(400))
    for train, test in folds:
        assert min(abs(train[:, None] - test[None]).ravel()) == 6
    assert TimeFolds(3).get_n_splits() == len(folds)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KNNDecoder(500).fit(RING, ANGLE), "n_neighbors is 500; X has 400 samples"),
        (lambda: KNNDecoder(metric="cosin").fit(RING, ANGLE), "did you mean 'cosine'"),
        (lambda: KNNDecoder(kind="angel").fit(RING, ANGLE), "did you mean 'angle'"),
        (lambda: LinearDecoder("L2").fit(RING, ANGLE), "did you mean 'l2'"),
        (lambda: LinearDecoder(alpha=0).fit(RING, ANGLE), "alpha is 0"),
        (lambda: LinearDecoder(kind="angle").fit(RING, RING), "an angle has one"),
        (lambda: next(TimeFolds(3).split(RING[:5])), "5 samples in 3 folds"),
        (lambda: list(TimeFolds(2, gap=300).split(RING)), "gap is 300"),
        (lambda: TimeFolds(1), "n_splits is 1"),
    ],
)
def test_a_mistake_is_said_in_words(call, message):
    with pytest.raises(HapteraError, match=message):
        call()
