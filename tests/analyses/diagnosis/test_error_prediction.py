"""The error predicted without labels: its interval holds for new corruptions as it says, or says that it cannot."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from haptera.analyses.diagnosis.error_prediction import (
    agreement,
    average_confidence,
    difference_of_confidences,
    fit_temperature,
    predict_error,
    thresholded_confidence,
)

CLEAN, IMAGES = 0.1, 300


def world(corruptions, seed, spread=0.25, confident=0.5):
    """Corruptions at three severities on the same images; each has a cost of its own for a shift of a given size.

    Doubt follows the error, but for corruptions that the model is too sure about.
    """
    random = np.random.default_rng(seed)
    rows = []
    luck = random.normal(0, np.sqrt(CLEAN * (1 - CLEAN) / IMAGES))  # of the images, the same for all
    for name in range(corruptions):
        slope, sure = 0.5 * np.exp(random.normal(0, spread)), confident * random.random()
        for size in random.uniform(0.05, 1.2, 3):
            truth = CLEAN + slope * size
            error = np.clip(truth + luck + random.normal(0, 0.01), 0, 1)
            doubt = np.clip(error - sure * slope * size, 0, 1)
            rows.append({"shift": f"shift {name}", "size": size, "doubt": doubt, "error": error, "truth": truth})
    return pd.DataFrame(rows), CLEAN + luck


@pytest.mark.parametrize("corruptions", [12, 19])
def test_the_interval_holds_a_new_corruption_at_least_as_often_as_it_says(corruptions):
    inside, widths = [], []
    for seed in range(150):
        frame, clean = world(corruptions + 1, seed)
        new = frame["shift"] == "shift 0"
        row = frame[new].iloc[seed % 3]
        random = np.random.default_rng(10_000 + seed)
        measured = row["truth"] + random.normal(0, np.sqrt(row["truth"] * max(1 - row["truth"], 0.05) / IMAGES))
        guess = predict_error(frame[~new], clean, row["size"], row["doubt"], (IMAGES, IMAGES))
        inside.append(guess.low <= min(measured, 1) <= guess.high)
        widths.append(guess.high - guess.low)
        assert guess.held >= 0.9
    assert np.mean(inside) >= 0.87  # at least 90 % is asked for; the standard error is 2.4 %
    assert np.mean(widths) < 0.4


def test_the_residuals_are_those_of_planes_through_the_other_corruptions():
    frame, clean = world(12, 3)
    guess = predict_error(frame, clean, 0.5, 0.3, (10**9, 10**9))
    offset, scores, weights = frame["size"].median(), [], []
    for name, own in frame.groupby("shift"):
        rest = frame[frame["shift"] != name]
        x = np.column_stack([np.ones(len(rest) + 1), [0, *rest["size"]], [clean, *rest["doubt"]]])
        a, b, c = np.linalg.lstsq(x, np.array([clean, *rest["error"]]), rcond=None)[0]
        for _, row in own.iterrows():
            predicted = min(max(a + b * row["size"] + c * row["doubt"], 0), 1)
            scores.append(abs(row["error"] - predicted) / (offset + row["size"]))
            weights.append(1 / 3 / 13)
    half, total = None, 0.0
    for score, weight in sorted(zip(scores, weights, strict=True)):
        total += weight
        if total >= 0.9 - 1e-9:
            half = score * (offset + 0.5)
            break
    assert half is not None
    assert guess.high - guess.error == pytest.approx(half, rel=1e-3)


def test_too_few_corruptions_cannot_say():
    frame, clean = world(6, 0)
    guess = predict_error(frame, clean, 0.5, 0.3, (IMAGES, IMAGES))
    assert (guess.low, guess.high) == (0, 1)
    assert not guess.means_something


def test_a_shift_larger_than_all_known_ones_cannot_be_said():
    frame, clean = world(19, 0)
    assert predict_error(frame, clean, 0.5, 0.3, (IMAGES, IMAGES)).means_something
    assert not predict_error(frame, clean, 5.0, 0.3, (IMAGES, IMAGES)).means_something


def test_fewer_images_widen_the_interval():
    frame, clean = world(19, 1)
    few, many = (predict_error(frame, clean, 0.2, 0.2, (n, n)) for n in (50, 5000))
    assert few.high - few.low > many.high - many.low


@pytest.fixture
def made():
    random = np.random.default_rng(0)
    targets = random.integers(0, 4, 3000)
    logits = random.normal(size=(3000, 4)) + 2 * np.eye(4)[targets]
    return logits, targets


def test_average_confidence_is_the_mean_of_the_largest_probability(made):
    logits, _ = made
    assert average_confidence(logits) == pytest.approx(np.mean([max(softmax(row)) for row in logits]))


def test_temperature_makes_overconfident_logits_calibrated(made):
    logits, targets = made
    right = (logits.argmax(1) == targets).mean()
    temperature = fit_temperature(5 * logits, targets)
    assert average_confidence(5 * logits) > right + 0.05
    assert average_confidence(5 * logits, temperature) == pytest.approx(right, abs=0.02)


def test_the_temperature_has_the_least_loss_of_its_neighbours(made):
    logits, targets = made

    def loss(t):
        return -np.log(softmax(3 * logits / t, axis=1)[np.arange(len(targets)), targets]).mean()

    best = fit_temperature(3 * logits, targets)
    assert loss(best) <= min(loss(0.98 * best), loss(1.02 * best))


def test_estimates_return_the_accuracy_where_nothing_shifted(made):
    logits, targets = made
    right = (logits.argmax(1) == targets).mean()
    assert difference_of_confidences(logits, targets, logits) == pytest.approx(right)
    assert thresholded_confidence(logits, targets, logits) == pytest.approx(right, abs=1e-3)


def test_less_confidence_lowers_them(made):
    logits, targets = made
    assert difference_of_confidences(logits, targets, logits / 3) < difference_of_confidences(logits, targets, logits)
    assert thresholded_confidence(logits, targets, logits / 3) < thresholded_confidence(logits, targets, logits)


def test_agreement_counts_equal_decisions():
    one, two = np.eye(3)[[0, 1, 2, 0]], np.eye(3)[[0, 1, 0, 0]]
    assert agreement(one, two) == 0.75
