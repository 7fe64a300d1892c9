"""Estimates of accuracy without labels: each against its definition, written out."""

import numpy as np
import pytest
from scipy.special import softmax

from haptera.analyses.diagnosis.baselines import (
    agreement,
    average_confidence,
    difference_of_confidences,
    fitted_temperature,
    thresholded_confidence,
)


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
    temperature = fitted_temperature(5 * logits, targets)
    assert average_confidence(5 * logits) > right + 0.05
    assert average_confidence(5 * logits, temperature) == pytest.approx(right, abs=0.02)


def test_the_temperature_has_the_least_loss_of_its_neighbours(made):
    logits, targets = made

    def loss(t):
        return -np.log(softmax(3 * logits / t, axis=1)[np.arange(len(targets)), targets]).mean()

    best = fitted_temperature(3 * logits, targets)
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
