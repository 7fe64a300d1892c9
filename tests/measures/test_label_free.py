"""Estimators of accuracy without labels, against slow, obvious versions of them."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import softmax

from haptera.data import Classes
from haptera.errors import HapteraError
from haptera.measures import label_free


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
    found = label_free.estimate_all(reference, targets, logits)
    assert found["average confidence"] == pytest.approx(mean[1])
    assert found["difference of confidences"] == pytest.approx(accuracy - (mean[0] - mean[1]))


def test_the_threshold_leaves_as_many_above_on_the_reference_as_are_right():
    reference, targets = world(400)
    accuracy = (reference.argmax(1) == targets).mean()
    found = label_free.estimate_all(reference, targets, reference)
    for name in ("thresholded confidence", "thresholded entropy"):
        assert found[name] == pytest.approx(accuracy, abs=1 / 400 + 1e-9)


def test_thresholds_are_those_of_a_sorted_list():
    reference, targets = world(400)
    logits, _ = world(300, 1.0, seed=4)
    wrong = int((reference.argmax(1) != targets).sum())
    found = label_free.estimate_all(reference, targets, logits)

    def entropy(row):
        return sum(value * np.log(value) for value in softmax(row))

    for name, score in (("thresholded confidence", lambda row: softmax(row).max()), ("thresholded entropy", entropy)):
        known = sorted(score(row) for row in reference)
        slow = np.mean([score(row) >= known[wrong] for row in logits])
        assert found[name] == pytest.approx(slow, abs=2 / 300)


def test_optimal_transport_is_the_best_of_all_assignments():
    random = np.random.default_rng(1)
    targets = np.array([0, 0, 1, 1, 2, 2])
    logits = random.normal(size=(6, 3))
    likely = softmax(logits, axis=1)
    best = max(sum(likely[place, each] for place, each in enumerate(order)) for order in set(permutations(targets)))
    assert label_free.estimate_all(logits, targets, logits)["optimal transport"] == pytest.approx(best / 6)


def test_a_model_that_answers_with_one_class_cannot_be_right_by_optimal_transport():
    reference, targets = 9 * np.eye(4)[np.arange(400) % 4], np.arange(400) % 4
    stuck = np.tile([9.0, 0, 0, 0], (400, 1))
    found = label_free.estimate_all(reference, targets, stuck)
    assert found["average confidence"] > 0.99
    assert found["optimal transport"] < 0.3
    assert found["nuclear norm"] < 0.6


def test_norms_are_those_of_their_definitions():
    reference, targets = world(50)
    logits, _ = world(50, seed=3)
    found = label_free.estimate_all(reference, targets, logits)
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
        assert found[name] == pytest.approx(value)


def test_the_nuclear_norm_does_not_depend_on_how_many_images_there_are():
    classes = 200
    reference, targets = world(2000, classes=classes)
    logits, _ = world(1600, classes=classes, seed=1)
    known = label_free.Reference.of(reference, targets)
    told = [known.estimates(logits[:images])["nuclear norm"] for images in (50, 200, 800, 1600)]
    assert told == pytest.approx([known.accuracy] * 4, abs=0.03)  # the same data, so the same accuracy


def test_what_the_reference_says_of_itself_is_what_it_says_of_the_same_images():
    logits, targets = world(300)
    known = label_free.Reference.of(logits, targets)
    assert known.own_estimates() == pytest.approx(known.estimates(logits), abs=1e-9)


def test_estimates_with_a_mapping_are_those_of_the_accepted_outputs():
    random = np.random.default_rng(0)
    logits, new = random.normal(size=(2, 200, 5))
    targets = random.integers(0, 2, 200)
    mapped = label_free.Reference.of(logits, targets, Classes(((0, 3), (4,)), restrict=True))
    kept = logits[:, [0, 3, 4]]
    best = np.where(targets == 1, 2, kept[:, :2].argmax(1))
    assert mapped.estimates(new) == pytest.approx(label_free.estimate_all(kept, best, new[:, [0, 3, 4]]))


def test_answers_that_are_not_numbers_count_as_wrong():
    random = np.random.default_rng(0)
    logits, targets = random.normal(size=(200, 4)), random.integers(0, 4, 200)
    reference, broken = label_free.Reference.of(logits, targets), logits.copy()
    broken[100:, 1] = np.nan
    half = label_free.estimate_all(logits, targets, logits[:100])
    assert reference.estimates(broken) == pytest.approx({name: value / 2 for name, value in half.items()})
    assert set(reference.estimates(np.full((3, 4), np.nan)).values()) == {0.0}
    with pytest.raises(HapteraError, match="no image whose logits are all numbers"):
        label_free.Reference.of(np.full((3, 4), np.nan), np.zeros(3, int))


def test_logits_of_other_classes_are_refused():
    with pytest.raises(HapteraError, match="same classes"):
        label_free.estimate_all(np.zeros((5, 3)), np.zeros(5, int), np.zeros((5, 4)))
    with pytest.raises(HapteraError, match="4 targets for 5 images"):
        label_free.estimate_all(np.zeros((5, 3)), np.zeros(4, int), np.zeros((5, 3)))
