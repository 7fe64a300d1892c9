"""The error predicted without labels: by all estimators, and it says so where it cannot be told."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from haptera.analyses.diagnosis.error_prediction import agreement, fit_temperature, predict_error
from haptera.measures.label_free import ESTIMATES

CLEAN, IMAGES = 0.1, 300


def world(corruptions, seed):
    """Corruptions at three severities, of which the first four choose; estimates are too high by shares of the loss."""
    random = np.random.default_rng(seed)
    rows = []
    for place in range(corruptions):
        slope = 0.5 * np.exp(random.normal(0, 0.25))
        for size in random.uniform(0.05, 1.2, 3):
            error = min(CLEAN + slope * size, 1.0)
            told = {
                name: 1 - error + share * slope * size for share, name in zip(np.arange(7) / 10, ESTIMATES, strict=True)
            }
            rows.append({"shift": f"shift {place}", "holdout": place < 4, "size": size, "error": error} | told)
    return pd.DataFrame(rows), dict.fromkeys(ESTIMATES, 1 - CLEAN) | {"error": CLEAN}


def of_size(size, told=0.7):
    return dict.fromkeys(ESTIMATES, told) | {"size": size}


def test_estimates_are_combined_and_listed_with_what_they_say():
    frame, clean = world(19, 0)
    guess = predict_error(frame, clean, of_size(0.4), (IMAGES, IMAGES), "holdout")
    rows = {row["method"]: row for row in guess.methods}
    assert sum(row["weight"] for row in rows.values()) == pytest.approx(1)
    assert 1 - guess.error == pytest.approx(sum(row["weight"] * row["accuracy"] for row in rows.values()))
    assert guess.methods[0]["method"].endswith("average confidence")  # told exactly in this world
    assert rows["MaNo"]["off"] > rows["line of MaNo"]["off"]
    assert (guess.corruptions, guess.chosen_on) == (15, ("shift 0", "shift 1", "shift 2", "shift 3"))


def test_too_few_corruptions_cannot_say():
    frame, clean = world(3, 0)
    guess = predict_error(frame, clean, of_size(0.4), (IMAGES, IMAGES))
    assert (guess.low, guess.high) == (0, 1)
    assert not guess.means_something
    assert predict_error(frame[~frame["holdout"]], clean, of_size(0.4), (IMAGES, IMAGES), "holdout") is None


def test_a_shift_larger_than_all_known_ones_cannot_be_said():
    frame, clean = world(19, 0)
    assert predict_error(frame, clean, of_size(0.5), (IMAGES, IMAGES)).means_something
    assert not predict_error(frame, clean, of_size(5.0), (IMAGES, IMAGES)).means_something


def test_fewer_images_widen_the_interval():
    frame, clean = world(19, 1)
    few, many = (predict_error(frame, clean, of_size(0.2, 0.8), (n, n)) for n in (50, 5000))
    assert few.high - few.low > many.high - many.low


@pytest.fixture
def made():
    random = np.random.default_rng(0)
    targets = random.integers(0, 4, 3000)
    logits = random.normal(size=(3000, 4)) + 2 * np.eye(4)[targets]
    return logits, targets


def test_temperature_makes_overconfident_logits_calibrated(made):
    logits, targets = made
    right = (logits.argmax(1) == targets).mean()
    temperature = fit_temperature(5 * logits, targets)
    assert softmax(5 * logits, axis=1).max(1).mean() > right + 0.05
    assert softmax(5 * logits / temperature, axis=1).max(1).mean() == pytest.approx(right, abs=0.02)


def test_the_temperature_has_the_least_loss_of_its_neighbours(made):
    logits, targets = made

    def loss(t):
        return -np.log(softmax(3 * logits / t, axis=1)[np.arange(len(targets)), targets]).mean()

    best = fit_temperature(3 * logits, targets)
    assert loss(best) <= min(loss(0.98 * best), loss(1.02 * best))


def test_agreement_counts_equal_decisions():
    one, two = np.eye(3)[[0, 1, 2, 0]], np.eye(3)[[0, 1, 0, 0]]
    assert agreement(one, two) == 0.75
