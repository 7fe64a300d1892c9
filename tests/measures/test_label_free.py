"""Estimators of accuracy without labels, against slow, obvious versions of them."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import softmax

from haptera.errors import HapteraError
from haptera.measures import label_free

RANDOM = np.random.default_rng(0)


def world(images, shift=0.0, classes=4, seed=0):
    """Logits whose softmax is what is true: targets are drawn from it."""
    random = np.random.default_rng(seed)
    logits = (2 - shift) * random.normal(size=(images, classes))
    chances = softmax(logits, axis=1).cumsum(1)
    return logits, (chances > random.random((images, 1))).argmax(1).clip(0, classes - 1)


def test_calibrated_models_are_predicted_by_their_confidences():
    reference, targets = world(4000)
    for shift in (0.0, 0.8):
        logits, truth = world(4000, shift, seed=1)
        accuracy = (logits.argmax(1) == truth).mean()
        found = label_free.estimate_all(reference, targets, logits)
        assert set(found) == set(label_free.ESTIMATES)
        off = {name: abs(value - accuracy) for name, value in found.items()}
        assert off["average confidence"] < 0.03
        assert off["difference of confidences"] < 0.03
        assert off["optimal transport"] < 0.05
        assert max(off["nuclear norm"], off["MaNo"]) < 0.1


def test_confidence_falls_are_taken_from_the_accuracy():
    reference, targets = world(200)
    logits, _ = world(150, 1.0, seed=2)
    accuracy = np.mean([row.argmax() == target for row, target in zip(reference, targets, strict=True)])
    mean = [np.mean([softmax(row).max() for row in side]) for side in (reference, logits)]
    assert label_free.average_confidence(reference, targets, logits) == pytest.approx(mean[1])
    expected = accuracy - (mean[0] - mean[1])
    assert label_free.difference_of_confidences(reference, targets, logits) == pytest.approx(expected)


def test_the_threshold_leaves_as_many_above_on_the_reference_as_are_right():
    reference, targets = world(400)
    accuracy = (reference.argmax(1) == targets).mean()
    for estimate in (label_free.thresholded_confidence, label_free.thresholded_entropy):
        assert estimate(reference, targets, reference) == pytest.approx(accuracy, abs=1 / 400 + 1e-9)


def test_optimal_transport_is_the_best_of_all_assignments():
    random = np.random.default_rng(1)
    targets = np.array([0, 0, 1, 1, 2, 2])
    logits = random.normal(size=(6, 3))
    likely = softmax(logits, axis=1)
    best = max(sum(likely[place, each] for place, each in enumerate(order)) for order in set(permutations(targets)))
    assert label_free.optimal_transport(logits, targets, logits) == pytest.approx(best / 6)


def test_a_model_that_answers_with_one_class_cannot_be_right_by_optimal_transport():
    reference, targets = 9 * np.eye(4)[np.arange(400) % 4], np.arange(400) % 4
    stuck = np.tile([9.0, 0, 0, 0], (400, 1))
    assert label_free.average_confidence(reference, targets, stuck) > 0.99
    assert label_free.optimal_transport(reference, targets, stuck) < 0.3
    assert label_free.nuclear_norm(reference, targets, stuck) < 0.6


def test_norms_are_those_of_their_definitions():
    reference, targets = world(50)
    logits, _ = world(30, seed=3)
    accuracy = (reference.argmax(1) == targets).mean()

    def nuclear(side):
        likely = softmax(side, axis=1)
        return np.linalg.svd(likely, compute_uv=False).sum() / np.sqrt(len(likely) * 4)

    def fourth(side):
        likely, total = softmax(side, axis=1), 0.0
        for value in likely.ravel():
            total += value**4
        score = (total / likely.size) ** 0.25
        return (score - 0.25) / (0.25**0.25 - 0.25)

    expected = {"nuclear norm": nuclear, "MaNo": fourth}
    for name, score in expected.items():
        value = np.clip(accuracy - (score(reference) - score(logits)), 0, 1)
        assert label_free.ESTIMATES[name](reference, targets, logits) == pytest.approx(value)


def test_logits_of_other_classes_are_refused():
    with pytest.raises(HapteraError, match="same classes"):
        label_free.estimate_all(np.zeros((5, 3)), np.zeros(5, int), np.zeros((5, 4)))
    with pytest.raises(HapteraError, match="4 targets for 5 images"):
        label_free.estimate_all(np.zeros((5, 3)), np.zeros(4, int), np.zeros((5, 3)))
