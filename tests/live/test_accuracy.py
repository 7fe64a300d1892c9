"""Accuracy in a window: the combination that diagnose has, how its interval holds, and what labels add."""

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.diagnosis.known_shifts import KnownShifts
from haptera.errors import HapteraError
from haptera.live.accuracy import Accuracy
from haptera.live.answer_window import MOST_CLASSES
from haptera.live.profile import Profile
from haptera.measures.combination import SIZE, combine
from haptera.measures.label_free import NUCLEAR, TRANSPORT, Reference, estimate_all

CLASSES = 4


def answers(random, images, sure, right):
    """Logits whose confidence is about `sure`, and targets of which a share is right whatever the confidence."""
    logits = random.normal(0, 0.3, (images, CLASSES))
    best = random.integers(CLASSES, size=images)
    logits[np.arange(images), best] += sure + random.normal(0, 0.8, images)
    best = logits.argmax(1)
    chance = 1 / (1 + np.exp(-(logits.max(1) - np.sort(logits, 1)[:, -2]) * right))
    targets = np.where(random.random(images) < chance, best, (best + 1) % CLASSES)
    return logits, targets


def confidence(logits):
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return chances.max(1)


def profile_of(random, corruptions=8, labels=True):
    logits, targets = answers(random, 2000, 3.0, 1.0)
    right = logits.argmax(1) == targets
    reference, rows = Reference.of(logits, targets), []
    for name in range(corruptions):
        slope = 1.0 + 0.1 * random.normal()
        for severity in (1, 3, 5):
            own, wanted = answers(random, 500, 3.0 - 0.4 * severity, slope)
            error = (own.argmax(1) != wanted).mean()
            row = {"shift": f"c{name}", "family": "f", "holdout": True, "severity": float(severity)}
            size = 0.3 * severity + 0.02 * random.normal()
            rows.append(row | {"size": size, "error": error} | reference.estimates(own))
    known = KnownShifts(pd.DataFrame(rows), np.zeros((0, 0)), {"error": float(1 - right.mean())}, 500)
    if not labels:
        return Profile("", {}, logits)
    return Profile("", {}, logits, targets, right, known=known if corruptions else KnownShifts())


@pytest.mark.parametrize("size", [None, 0.9])
def test_a_window_is_told_as_diagnose_tells_its_images(size):
    random = np.random.default_rng(0)
    profile = profile_of(random)
    logits, _ = answers(random, 700, 1.5, 1.0)
    accuracy = Accuracy(profile, window=600, level=0.95)
    for start in range(0, 700, 50):
        accuracy.update(logits[start : start + 50], size)
    told = estimate_all(profile.logits, profile.targets, logits[-600:])
    clean = estimate_all(profile.logits, profile.targets, profile.logits) | {"accuracy": profile.accuracy, SIZE: 0.0}
    known = profile.known.frame.drop(columns=TRANSPORT)
    known = known.assign(accuracy=1 - known["error"], **({} if size is None else {SIZE: known["size"]}))
    slow = combine(known, clean, 500)
    value = slow.accuracy(told | {SIZE: size})
    found = accuracy.estimate()
    assert found.value == pytest.approx(value, abs=2e-3)  # the nuclear norm is of up to 150 images before
    assert (found.low, found.high) == pytest.approx(slow.interval(value, 600), abs=4e-3)
    assert found.method == f"{slow.candidates[0].name} and others"


def test_many_classes_leave_the_nuclear_norm_out_so_that_a_step_stays_cheap():
    random = np.random.default_rng(1)
    for classes in (MOST_CLASSES, MOST_CLASSES + 1):
        logits = random.normal(size=(300, classes))
        targets = np.where(random.random(300) < 0.5, logits.argmax(1), 0)
        reference, rows = Reference.of(logits, targets), []
        for name in range(5):
            new = logits / (1.5 + name)
            rows.append({"shift": f"c{name}", "holdout": True, "size": 1.0 + name, "error": 0.3 + 0.1 * name})
            rows[-1] |= reference.estimates(new)
        known = KnownShifts(pd.DataFrame(rows), np.zeros((0, 0)), {"error": 0.3}, 300)
        accuracy = Accuracy(Profile("", {}, logits, targets, logits.argmax(1) == targets, known=known))
        accuracy.update(logits)
        names = {each.estimate for each in accuracy.combinations[False].candidates}
        assert (NUCLEAR in names) == (classes == MOST_CLASSES)
        assert TRANSPORT not in names
        assert 0 < accuracy.estimate().value < 1


def test_after_a_change_the_window_begins_with_the_images_since_then():
    random = np.random.default_rng(5)
    accuracy = Accuracy(profile_of(random), window=1000)
    before, wanted = answers(random, 1000, 3.0, 1.0)
    after, _ = answers(random, 60, 0.6, 1.0)
    accuracy.update(before)
    accuracy.label(before[:100], wanted[:100])
    accuracy.update(after)
    mixed = accuracy.estimate()
    accuracy.begin(60)
    found, alone = accuracy.estimate(), Accuracy(profile_of(np.random.default_rng(5)), window=1000)
    alone.update(after)
    assert found == alone.estimate()
    assert (found.images, found.labels) == (60, 0)
    assert found.value < mixed.value - 0.1
    assert found.high - found.low > mixed.high - mixed.low  # fewer images say less


@pytest.mark.long
def test_a_window_of_a_few_images_has_an_interval_that_holds_the_truth():
    random = np.random.default_rng(6)
    profile, held = profile_of(random), []
    for _ in range(60):
        accuracy = Accuracy(profile, window=1000, level=0.9)
        logits, targets = answers(random, 400, 1.8, 1.0)
        accuracy.update(logits[:4])
        found = accuracy.estimate()
        held.append(found.low <= (logits.argmax(1) == targets).mean() <= found.high)
    assert np.mean(held) > 0.8


@pytest.mark.long
def test_the_interval_holds_about_its_share_of_new_shifts():
    held, total = 0, 0
    for seed in range(16):
        random = np.random.default_rng(seed)
        accuracy = Accuracy(profile_of(random), window=500, level=0.9)
        for sure in (2.6, 1.8, 1.0):
            logits, targets = answers(random, 500, sure, 1.0 + 0.1 * random.normal())
            accuracy.update(logits)
            found = accuracy.estimate()
            assert found.source == "predicted"
            held += found.low <= (logits.argmax(1) == targets).mean() <= found.high
            total += 1
    assert 0.8 < held / total <= 1


def test_labels_correct_an_estimate_that_is_off_and_narrow_it():
    random = np.random.default_rng(3)
    accuracy = Accuracy(profile_of(random), window=1000)
    logits, targets = answers(random, 1000, 3.5, 0.05)  # sure, and mostly wrong
    true = (logits.argmax(1) == targets).mean()
    accuracy.update(logits)
    before = accuracy.estimate()
    assert not before.low <= true <= before.high
    accuracy.label(logits[:400], targets[:400])
    after = accuracy.estimate()
    assert (after.source, after.labels) == ("predicted and labels", 400)
    assert abs(after.value - true) < abs(before.value - true) / 3
    accuracy.forget_labels()
    assert accuracy.estimate() == before


def test_labels_of_other_data_are_taken_with_a_grain_of_salt():
    random = np.random.default_rng(8)
    accuracy = Accuracy(profile_of(random), window=1000)
    before, wanted = answers(random, 1000, 3.0, 1.0)
    after, targets = answers(random, 1000, 0.6, 1.0)
    accuracy.update(after)
    accuracy.label(before[:500], wanted[:500])  # of images before a change
    found, true = accuracy.estimate(), (after.argmax(1) == targets).mean()
    assert found.low <= true <= found.high
    assert abs(found.value - true) < abs((before.argmax(1) == wanted).mean() - true) / 3


def test_labels_cover_the_truth_as_often_as_they_say():
    held = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        accuracy = Accuracy(None, window=2000, level=0.9)
        logits, targets = answers(random, 2000, 2.0, 0.7)
        accuracy.update(logits)
        accuracy.label(logits[:150], targets[:150])
        found = accuracy.estimate()
        assert found.source == "labels"
        held += found.low <= (logits.argmax(1) == targets).mean() <= found.high
    assert 0.83 < held / 200 < 0.98


def test_what_cannot_be_told_is_said():
    random = np.random.default_rng(4)
    logits, targets = answers(random, 100, 2.0, 1.0)
    nothing = Accuracy().estimate()
    assert np.isnan(nothing.value)
    assert nothing.source == "nothing"
    for profile, source, method in (
        (None, "confidence", "average confidence"),
        (profile_of(random, labels=False), "confidence", "average confidence"),
        (profile_of(random, corruptions=0), "predicted", "thresholded confidence"),
    ):
        accuracy = Accuracy(profile)
        accuracy.update(logits)
        found = accuracy.estimate()
        assert (found.source, found.method, found.low, found.high) == (source, method, 0.0, 1.0)
        accuracy.label(logits[:5], targets[:5])
        assert accuracy.estimate() == found  # too few labels to speak


def test_the_window_holds_the_last_images():
    random = np.random.default_rng(5)
    sure, doubtful = answers(random, 300, 6.0, 1.0)[0], answers(random, 200, 0.0, 1.0)[0]
    accuracy = Accuracy(window=200)
    accuracy.update(sure)
    accuracy.update(doubtful)
    assert accuracy.estimate().value == pytest.approx(confidence(doubtful).mean())
    assert accuracy.estimate().images == 200


def test_a_state_goes_on_to_the_same_numbers():
    random = np.random.default_rng(6)
    profile = profile_of(random)
    first, second = Accuracy(profile), Accuracy(profile)
    logits, targets = answers(random, 300, 2.0, 1.0)
    first.update(logits, 0.4)
    first.label(logits[:50], targets[:50])
    second.restore(first.state())
    assert first.estimate() == second.estimate()
    assert first.estimate().labels == 50
    more, _ = answers(random, 700, 1.0, 1.0)
    for accuracy in (first, second):
        accuracy.update(more, 0.5)
    assert first.estimate() == second.estimate()


def test_wrong_input_is_named():
    accuracy = Accuracy()
    with pytest.raises(HapteraError, match=r"logits have shape \(3,\)"):
        accuracy.update(np.zeros(3))
    with pytest.raises(HapteraError, match=r"targets have shape \(2,\); \(3,\)"):
        accuracy.label(np.zeros((3, 4)), np.zeros(2, int))
    with pytest.raises(HapteraError, match="level is 1"):
        Accuracy(level=1)
    accuracy.update(np.full((4, 3), np.nan))
    assert np.isnan(accuracy.estimate().value)
