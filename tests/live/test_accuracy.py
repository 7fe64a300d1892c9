"""Accuracy in a window: which estimator is chosen, how its interval holds, and what labels add."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.diagnosis.known_shifts import KnownShifts
from haptera.errors import HapteraError
from haptera.live.accuracy import Accuracy
from haptera.live.estimators import PLANES, Clean, choose_estimator, make_estimator
from haptera.live.profile import Profile
from haptera.measures import label_free

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
    threshold = float(np.quantile(confidence(logits), 1 - right.mean()))
    rows = []
    for name in range(corruptions):
        slope = 1.0 + 0.1 * random.normal()
        for severity in (1, 3, 5):
            own, wanted = answers(random, 500, 3.0 - 0.4 * severity, slope)
            error = (own.argmax(1) != wanted).mean()
            sure = confidence(own)
            row = {"shift": f"c{name}", "family": "f", "holdout": True, "severity": float(severity)}
            size = 0.3 * severity + 0.02 * random.normal()
            rows.append(
                row | {"size": size, "error": error, "doubt": (sure < threshold).mean(), "confidence": sure.mean()}
            )
    known = KnownShifts(pd.DataFrame(rows), np.zeros((0, 0)), {"error": float(1 - right.mean())}, threshold, 500)
    if not labels:
        return Profile("", {}, logits)
    return Profile("", {}, logits, targets, right, known=known if corruptions else KnownShifts())


def test_candidates_without_a_fit_are_those_of_the_measures():
    random = np.random.default_rng(0)
    profile = profile_of(random)
    logits, _ = answers(random, 300, 1.5, 1.0)
    sure, threshold = confidence(logits), profile.known.threshold
    clean = Clean(float(1 - profile.right.mean()), float(confidence(profile.logits).mean()))
    features = {"confidence": np.array([sure.mean()]), "doubt": np.array([(sure < threshold).mean()])}
    for name in ("average confidence", "difference of confidences", "thresholded confidence"):
        found = 1 - make_estimator(name, profile.known.frame, clean)(features)[0]
        slow = label_free.ESTIMATES[name](profile.logits, profile.targets, logits)
        assert found == pytest.approx(slow, abs=1e-3)


def test_a_threshold_that_few_images_gave_leaves_thresholded_confidence_right_on_clean_data():
    profile = profile_of(np.random.default_rng(0))
    wrong, sure = 1 - profile.right.mean(), confidence(profile.logits)
    for share in (0.7, 1.4):  # as chance has it
        doubt = float((sure < np.quantile(sure, share * wrong)).mean())
        told = make_estimator("thresholded confidence", profile.known.frame, Clean(wrong, sure.mean(), doubt))
        assert told({"doubt": np.array([doubt, doubt + 0.1])}) == pytest.approx([wrong, wrong + 0.1])
    few = replace(profile, known=replace(profile.known, threshold=float(np.quantile(sure, 1.4 * wrong))))
    accuracy = Accuracy(few)
    assert accuracy._predict(sure)[0] == pytest.approx(Accuracy(profile)._predict(sure)[0], abs=0.04)


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


def test_the_candidate_is_chosen_that_is_least_off_on_corruptions_left_out():
    random = np.random.default_rng(1)
    rows = []
    for name in range(6):
        for size in (0.2, 0.6, 1.0):
            doubt = 0.1 + 0.2 * size + 0.02 * random.normal()
            error = 0.05 + 0.5 * size  # the size tells it exactly
            rows.append({"shift": f"c{name}", "size": size, "doubt": doubt, "confidence": 0.9, "error": error})
    known, clean = pd.DataFrame(rows), Clean(0.05, 0.9)
    chosen = choose_estimator(known, clean, 500)
    assert chosen.name == "plane of doubt and size"
    off = []
    for name in range(6):  # leave out, fit by the normal equations, look
        own = known["shift"] == f"c{name}"
        fitted = known[~own]
        design = np.array([[1, 0.05, 0.0], *np.column_stack([np.ones(15), fitted["doubt"], fitted["size"]])])
        wanted = np.array([0.05, *fitted["error"]])
        plane = np.linalg.solve(design.T @ design, design.T @ wanted)
        predicted = np.clip(np.column_stack([np.ones(3), known[own][["doubt", "size"]]]) @ plane, 0, 1)
        off.append(np.abs(predicted - known[own]["error"]).mean())
    assert chosen.off == pytest.approx(np.mean(off), abs=1e-9)
    assert choose_estimator(known, clean, 500, size=False).name != "plane of doubt and size"


def test_fits_that_beat_every_candidate_without_one_are_averaged_by_inverse_squares():
    random = np.random.default_rng(2)
    rows = []
    for name in range(5):
        own = 0.1 * random.normal()
        for size in (0.2, 0.5, 0.8, 1.1):
            doubt, error = 0.05 + 0.2 * size + 0.03 * random.normal(), 0.05 + (0.5 + own) * size
            sure = 0.95 - 0.3 * size + 0.05 * random.normal()
            rows.append({"shift": f"c{name}", "size": size, "doubt": doubt, "confidence": sure, "error": error})
    known, clean = pd.DataFrame(rows), Clean(0.05, 0.95)

    def off(frame, name):
        parts = []
        for shift in frame["shift"].unique():
            own = frame[frame["shift"] == shift]
            made = make_estimator(name, frame[frame["shift"] != shift], clean)
            told = made({column: own[column].to_numpy() for column in ("doubt", "confidence", "size")})
            parts.append(np.abs(told - own["error"]).mean())
        return np.mean(parts)

    def mean_of(frame, features):
        fixed = ("average confidence", "difference of confidences", "thresholded confidence")
        limit = min(off(frame, name) for name in fixed)
        fits = {name: off(frame, name) for name in PLANES}
        weights = {name: 1 / each**2 for name, each in fits.items() if each < limit}
        assert len(weights) > 1
        values = sum(weight * make_estimator(name, frame, clean)(features) for name, weight in weights.items())
        return values / sum(weights.values())

    chosen = choose_estimator(known, clean, 500)
    features = {"doubt": np.array([0.2]), "confidence": np.array([0.7]), "size": np.array([0.6])}
    assert chosen.predict(features) == pytest.approx(mean_of(known, features))
    parts = []
    for shift in known["shift"].unique():  # left out before anything is fitted, chosen or weighted
        own = known[known["shift"] == shift]
        told = mean_of(known[known["shift"] != shift], {name: own[name].to_numpy() for name in features})
        parts.append(np.abs(told - own["error"]).mean())
    assert chosen.off == pytest.approx(np.mean(parts))


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


def test_one_corruption_is_enough_for_a_fit():
    known = pd.DataFrame([{"shift": "c", "size": 0.5, "doubt": 0.3, "confidence": 0.7, "error": 0.4}])
    found = choose_estimator(known, Clean(0.05, 0.95), 100).accuracy({"doubt": 0.3, "confidence": 0.7, "size": 0.5})
    assert found == pytest.approx(0.6)


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
