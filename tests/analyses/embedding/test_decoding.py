"""Decoders agree with slow references, angles wrap, settings are chosen on the validation part and nothing leaks."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from haptera.analyses.embedding.decoding import (
    Part,
    decode_bayesian,
    decode_constant,
    decode_knn,
    decode_ridge,
    nested_folds,
    windows,
)
from haptera.errors import HapteraError
from haptera.recordings.label import Label, circular_difference, label_scores, r2
from haptera.recordings.windows import Offset


def parts(kind, samples=(200, 60, 80), noise=0.1, seed=0):
    generator = np.random.default_rng(seed)
    made = []
    for count in samples:
        angle = generator.uniform(0, 2 * np.pi, count)
        ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(count)])
        values = {"angle": angle, "continuous": angle, "discrete": (angle > np.pi).astype(int)}[kind]
        made.append(Part(ring + noise * generator.normal(size=ring.shape), Label.of(values, kind)))
    return made


def slow_knn(train, rows, k, distance):
    """One sample after the other."""
    said = []
    for point in rows:
        if distance == "cosine":
            length = np.linalg.norm(train.embedding, axis=1) * np.linalg.norm(point)
            away = 1 - train.embedding @ point / length
        else:
            away = np.linalg.norm(train.embedding - point, axis=1)
        values = train.label.values[np.argsort(away, kind="stable")[:k]]
        if train.label.kind == "angle":
            said.append(np.angle(np.exp(1j * values).mean()) % (2 * np.pi))
        elif train.label.kind == "discrete":
            said.append(np.bincount(values).argmax())
        else:
            said.append(values.mean(0))
    return np.array(said)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", ["angle", "continuous", "discrete"])
def test_neighbours_are_those_of_a_slow_search(kind, distance):
    train, validation, test = parts(kind)
    found = decode_knn(train, validation, test, distance=distance)
    both = train.join_with(validation)
    assert np.allclose(found.predicted, slow_knn(both, test.embedding, int(found.setting), distance))
    scores = {}
    for k in (1, 4, 9, 16, 25):
        said = slow_knn(train, validation.embedding, k, distance)
        true = validation.label.values
        if kind == "angle":
            scores[k] = r2_score(np.c_[np.cos(true), np.sin(true)], np.c_[np.cos(said), np.sin(said)])
        else:
            scores[k] = (said == true).mean() if kind == "discrete" else r2_score(true, said)
    assert scores[int(found.setting)] == max(scores.values())


@pytest.mark.parametrize("kind", ["angle", "continuous"])
def test_ridge_is_that_of_scikit_learn(kind):
    train, validation, test = parts(kind)
    found = decode_ridge(train, validation, test)
    both = train.join_with(validation)
    outputs = Ridge(alpha=found.setting).fit(both.embedding, both.label.features).predict(test.embedding)
    outputs = outputs.reshape(len(outputs), -1)
    expected = np.arctan2(outputs[:, 1], outputs[:, 0]) % (2 * np.pi) if kind == "angle" else outputs[:, 0]
    assert np.allclose(found.predicted, expected)


def test_ridge_tells_classes_apart():
    train, validation, test = parts("discrete", noise=0.02)
    assert decode_ridge(train, validation, test).scores["accuracy"] > 0.95


def test_labels_of_several_dimensions_are_decoded_together():
    made = parts("continuous")
    both = [Part(part.embedding, Label.of(part.embedding[:, :2] * 3)) for part in made]
    found = decode_knn(*both, distance="euclidean")
    assert found.predicted.shape == (80, 2)
    assert found.scores["r2"] > 0.95
    assert decode_ridge(*both).scores["r2"] == pytest.approx(1.0, abs=1e-6)


def test_labels_of_the_test_part_change_no_prediction():
    train, validation, test = parts("angle")
    other = Part(test.embedding, test.label.shuffle(0))
    for decode in (decode_knn, decode_ridge):
        assert np.array_equal(decode(train, validation, test).predicted, decode(train, validation, other).predicted)


def test_shuffled_labels_give_chance():
    train, validation, test = parts("angle", samples=(2000, 500, 1000))
    shuffled = [Part(part.embedding, part.label.shuffle(1)) for part in (train, validation)]
    error = decode_knn(*shuffled, test).scores["median_error"]
    assert error == pytest.approx(90, abs=12)  # a uniform guess is 90 degrees off
    assert decode_knn(train, validation, test).scores["median_error"] < 10


def test_scores_of_angles_are_degrees_the_short_way_round():
    truth = Label.of(np.deg2rad([350.0, 10.0, 180.0]), "angle")
    scores = label_scores(truth, np.deg2rad([10.0, 15.0, 180.0]))
    assert scores["median_error"] == pytest.approx(5)
    assert scores["mean_error"] == pytest.approx(25 / 3)
    assert np.abs(circular_difference(np.linspace(-9, 9, 50), np.linspace(5, -5, 50))).max() <= np.pi


def test_r2_is_that_of_scikit_learn_without_constant_columns():
    generator = np.random.default_rng(0)
    true, said = generator.normal(size=(50, 3)), generator.normal(size=(50, 3))
    assert r2(true, said) == pytest.approx(r2_score(true, said))
    assert r2(np.column_stack([true, np.full(50, 0.1)]), np.column_stack([said, np.zeros(50)])) == pytest.approx(
        r2_score(true, said)
    )
    assert np.isnan(r2(np.ones(5), np.ones(5)))


def test_balanced_accuracy_counts_every_class_the_same():
    scores = label_scores(Label.of(np.array([0] * 9 + [1])), np.zeros(10, int))
    assert scores == {"accuracy": 0.9, "balanced_accuracy": 0.5}


def test_windows_are_the_samples_around_each_with_ends_repeated():
    signal = np.arange(5.0)[:, None]
    assert windows(signal, Offset(1, 2)).tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 4]]


def test_folds_keep_trials_whole_and_test_each_once():
    trials = np.repeat(np.arange(7) * 10, [5, 1, 8, 2, 6, 3, 4])
    tested = []
    for train, validation, test in nested_folds(trials):
        sets = [set(trials[rows]) for rows in (train, validation, test)]
        assert all(sets)
        assert sum(map(len, sets)) == len(set.union(*sets))
        assert sorted(np.concatenate([train, validation, test])) == list(range(len(trials)))
        tested += sorted(sets[2])
    assert sorted(tested) == sorted(set(trials))
    with pytest.raises(HapteraError, match="3 folds of 2 trials"):
        list(nested_folds(np.array([0, 1])))


def bells(kind, samples, seed, units=12):
    """Units that fire around an angle of their own."""
    generator = np.random.default_rng(seed)
    angle = np.mod(np.cumsum(generator.normal(0, 0.1, samples)), 2 * np.pi)
    centre = np.arange(units) * 2 * np.pi / units
    counts = generator.poisson(0.05 + 3 * np.exp(4 * (np.cos(angle[:, None] - centre) - 1)))
    values = angle if kind != "discrete" else (angle / (np.pi / 2)).astype(int)
    return counts, Label.of(values, kind)


def slow_bayes(train, label, test, places):
    """Unsmoothed tuning curves, one sample and place at a time, single bins."""
    width = 2 * np.pi / places
    codes = (label.values / width).astype(int)
    said = []
    for counts in test:
        best, at = -np.inf, 0
        for place in range(places):
            rows = train[codes == place]
            if not len(rows):
                continue
            rates = np.maximum(rows.mean(0), 1e-3)
            evidence = sum(n * np.log(rate) - rate for n, rate in zip(counts, rates, strict=True))
            if evidence > best:
                best, at = evidence, place
        said.append((at + 0.5) * width)
    return np.array(said)


def test_bayesian_decoder_is_that_of_the_formula():
    train, label = bells("angle", 800, 0)
    test, truth = bells("angle", 60, 1)
    found = decode_bayesian(train, label, test, truth, places=20, window=1, smoothing=0)
    assert np.allclose(found.predicted, slow_bayes(train, label, test, 20))


def test_bayesian_decoder_reads_angles_numbers_and_classes():
    for kind, name, least in (("angle", "r2", 0.9), ("continuous", "r2", 0.6), ("discrete", "accuracy", 0.7)):
        train, label = bells(kind, 4000, 0)
        test, truth = bells(kind, 1000, 1)
        assert decode_bayesian(train, label, test, truth).scores[name] > least
    wide = [decode_bayesian(*bells("angle", 4000, 0), *bells("angle", 1000, 1), window=w) for w in (1, 3)]
    assert wide[1].scores["median_error"] < wide[0].scores["median_error"]


RISING = Label.of(np.arange(4.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Part(np.zeros((3, 2)), Label.of(np.zeros(4))), "3 samples has a label of 4"),
        (lambda: Part(np.full((3, 2), np.nan), Label.of(np.zeros(3))), "not finite"),
        (lambda: decode_knn(*parts("angle"), distance="manhattan"), "'cosine' or 'euclidean'"),
        (lambda: decode_knn(*parts("angle", (3, 3, 3)), neighbours=(5,)), "the training part has 3 samples"),
        (lambda: decode_bayesian(-np.ones((4, 2)), RISING, np.ones((4, 2)), RISING), "negative values"),
        (lambda: decode_bayesian(np.ones((4, 2)), Label.of(np.ones(4)), np.ones((4, 2)), RISING), "label is constant"),
    ],
)
def test_bad_input_is_an_error(call, message):
    with pytest.raises(HapteraError, match=message):
        call()


def test_a_constant_is_the_mean_direction_the_mean_or_the_most_frequent_class():
    test = Part(np.zeros((2, 1)), Label.of(np.deg2rad([10.0, 30.0]), "angle"))
    train = Part(np.zeros((3, 1)), Label.of(np.deg2rad([350.0, 10.0, 0.0]), "angle"))
    assert decode_constant(train, test).scores["median_error"] == pytest.approx(20)
    train = Part(np.zeros((3, 1)), Label.of(np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]])))
    assert decode_constant(train, train).predicted.tolist() == [[3, 1]] * 3
    train = Part(np.zeros((3, 1)), Label.of(np.array([4, 7, 7])))
    assert decode_constant(train, train).scores["accuracy"] == pytest.approx(2 / 3)
