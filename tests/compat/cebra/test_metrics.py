"""Metrics by the names of that package, against what they are defined as."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import haptera.compat.cebra as cebra
from haptera.errors import HapteraError

metrics = cebra.sklearn.metrics
RNG = np.random.default_rng(0)
A = RNG.normal(size=(300, 3))
B = A @ RNG.normal(size=(3, 4)) + 0.5 * RNG.normal(size=(300, 4))


def test_consistency_of_runs_is_r2_of_ordered_pairs():
    scores, pairs, ids = metrics.consistency_score([A, B], between="runs")
    expected = [LinearRegression().fit(*one).score(*one) for one in ((A, B), (B, A))]
    np.testing.assert_allclose(scores, expected)
    assert (pairs.tolist(), ids.tolist()) == ([[0, 1], [1, 0]], [0, 1])


def test_consistency_of_datasets_is_high_where_labels_agree_and_averages_equal_ids():
    position = RNG.uniform(size=500)
    ring = np.stack([np.cos(2 * np.pi * position), np.sin(2 * np.pi * position)], 1)
    other = ring[::-1] @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    labels, points = [position, position[::-1], position], [ring, other, ring]
    scores, pairs, _ = metrics.consistency_score(points, between="datasets", labels=labels, dataset_ids=["a", "b", "a"])
    assert sorted(map(tuple, pairs.tolist())) == [("a", "b"), ("b", "a")]
    assert (scores > 0.99).all()
    shuffled = [position, RNG.permutation(position), position]
    assert (metrics.consistency_score(points, "datasets", shuffled)[0] < 0.99).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"between": None}, "between is None"),
        ({"between": "runs", "labels": [A, B]}, "labels or dataset_ids"),
        ({"between": "datasets"}, "0 labels"),
        ({"between": "datasets", "labels": [A[:, 0], A[:, 0]], "dataset_ids": ["a", "a"]}, "dataset_ids"),
    ],
)
def test_consistency_refuses_what_does_not_fit_together(arguments, message):
    with pytest.raises(HapteraError, match=message):
        metrics.consistency_score([A, B], **arguments)


def test_loss_and_goodness_of_fit_say_the_same_of_a_model():
    model = cebra.CEBRA(max_iterations=30, batch_size=64, output_dimension=3, learning_rate=3e-3, random_state=0)
    wave = np.sin(np.arange(300) / 20)
    signal = np.stack([wave, np.cos(np.arange(300) / 20)], 1)
    model.fit(signal, wave)
    loss = metrics.infonce_loss(model, signal, wave, num_batches=20)
    corrected = metrics.infonce_loss(model, signal, wave, num_batches=20, correct_by_batchsize=True)
    assert corrected == pytest.approx(loss - np.log(64))
    bits = metrics.goodness_of_fit_score(model, signal, wave, num_batches=20)
    assert bits == pytest.approx(metrics.infonce_to_goodness_of_fit(loss, model))
    assert bits == pytest.approx((np.log(64) - loss) / np.log(2))
    assert 0 < bits < np.log2(64)
    np.testing.assert_allclose(
        metrics.goodness_of_fit_history(model),
        metrics.infonce_to_goodness_of_fit(model.state_dict_["loss"].numpy(), batch_size=64, num_sessions=1),
        rtol=1e-4,
        atol=1e-5,
    )
    assert loss == pytest.approx(slow_loss(model.transform(signal), wave), abs=0.1)
    with pytest.raises(HapteraError, match="2 sessions"):
        metrics.infonce_loss(model, [signal, signal])
    with pytest.raises(HapteraError, match="batch_size is None"):
        metrics.infonce_to_goodness_of_fit(1.0)


def slow_loss(points, label, count=3000):
    """The loss by its definition, one reference at a time."""
    random, losses = np.random.default_rng(1), []
    changes = np.diff(label)
    for _ in range(count):
        reference = random.integers(len(label))
        positive = np.abs(label - label[reference] - random.choice(changes)).argmin()
        negatives = points[random.integers(len(label), size=64)]
        losses.append(np.log(np.exp(negatives @ points[reference]).sum()) - points[positive] @ points[reference])
    return np.mean(losses)
