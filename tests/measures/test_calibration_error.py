"""Calibration against loops over samples, scikit-learn, and cases that can be computed by hand."""

import math

import numpy as np
import pytest
from scipy.stats import t
from sklearn.metrics import log_loss

from haptera.measures import brier_score, expected_calibration_error, negative_log_likelihood, reliability
from haptera.outputs import Outputs

ALL = (expected_calibration_error, reliability, brier_score, negative_log_likelihood)


def outputs(n=90, classes=6, shifts=("a", "b", "a"), seed=0, scale=2.0):
    generator = np.random.default_rng(seed)
    return Outputs(
        {"logits": (scale * generator.normal(size=(n, classes))).astype(np.float32)},
        np.arange(n),
        generator.integers(0, classes, n),
        context={"shift": np.repeat(shifts, n // len(shifts))},
    )


def softmax(logits):
    """Row by row, with Python's own floats."""
    found = []
    for row in np.asarray(logits, float).tolist():
        powers = [math.exp(value - max(row)) for value in row]
        found.append([power / sum(powers) for power in powers])
    return np.array(found)


def slow_ece(probabilities, targets):
    total = 0.0
    for place in range(15):
        members = [i for i, row in enumerate(probabilities) if place / 15 < max(row) <= (place + 1) / 15]
        if members:
            right = sum(int(np.argmax(probabilities[i]) == targets[i]) for i in members) / len(members)
            sure = sum(max(probabilities[i]) for i in members) / len(members)
            total += len(members) / len(targets) * abs(right - sure)
    return total


def test_calibration_error_is_the_weighted_gap_of_fifteen_bins_of_each_shift():
    given = outputs()
    rows = expected_calibration_error(given)
    assert [row["shift"] for row in rows] == ["a", "b"]
    for row in rows:
        inside = given.context["shift"] == row["shift"]
        assert row["value"] == pytest.approx(slow_ece(softmax(given.logits[inside]), given.targets[inside]), abs=1e-6)
        assert row["n"] == inside.sum()


def test_a_model_that_is_right_as_often_as_it_says_has_no_calibration_error():
    logits = np.log(np.tile([[0.75, 0.25]], (8, 1))).astype(np.float32)
    fitting = Outputs({"logits": logits}, np.arange(8), np.array([0, 0, 0, 1] * 2))
    assert expected_calibration_error(fitting)[0]["value"] == pytest.approx(0, abs=1e-6)
    too_sure = Outputs({"logits": logits}, np.arange(8), np.ones(8, np.int64))
    assert expected_calibration_error(too_sure)[0]["value"] == pytest.approx(0.75, abs=1e-6)


def test_bins_of_the_reliability_diagram_hold_all_samples_and_the_calibration_error():
    given = outputs(shifts=("a",))
    rows = reliability(given)
    assert sum(row["n"] for row in rows) == len(given)
    gap = sum(row["n"] * abs(row["value"] - row["confidence"]) for row in rows) / len(given)
    assert gap == pytest.approx(expected_calibration_error(given)[0]["value"])
    sure = softmax(given.logits).max(1)
    for row in rows:
        place = math.ceil(row["confidence"] * 15) - 1
        inside = [i for i in range(len(given)) if place / 15 < sure[i] <= (place + 1) / 15]
        assert row["n"] == len(inside)
        assert row["value"] == pytest.approx(np.mean([given.correct()[i] for i in inside]))
        assert row["confidence"] == pytest.approx(np.mean(sure[inside]), abs=1e-6)


def test_the_reliability_of_a_cell_with_several_shifts_is_pooled_and_names_none():
    assert all("shift" not in row for row in reliability(outputs()))
    assert {row["shift"] for row in reliability(outputs(shifts=("fog",)))} == {"fog"}


def test_full_confidence_is_in_the_last_bin():
    given = Outputs({"logits": np.array([[200.0, 0.0]], np.float32)}, np.arange(1), np.array([0]))
    [row] = reliability(given)
    assert (row["confidence"], row["value"]) == (1.0, 1.0)
    assert expected_calibration_error(given)[0]["value"] == 0


def test_brier_score_sums_squares_over_classes():
    given = outputs(shifts=("a",))
    probabilities = softmax(given.logits)
    slow = [
        sum((p - (j == target)) ** 2 for j, p in enumerate(row))
        for row, target in zip(probabilities.tolist(), given.targets, strict=True)
    ]
    [row] = brier_score(given)
    assert row["value"] == pytest.approx(np.mean(slow), abs=1e-6)
    error = np.std(slow, ddof=1) / math.sqrt(len(slow))
    factor = math.exp(t.ppf(0.975, len(slow) - 1) * error / np.mean(slow))  # Student's t on the logarithm
    assert (row["low"], row["high"]) == pytest.approx((np.mean(slow) / factor, np.mean(slow) * factor), abs=1e-6)


def test_fewer_than_thirty_samples_have_a_mean_score_without_an_interval():
    given = outputs(shifts=("a",))
    few = Outputs({"logits": given.logits[:29]}, given.ids[:29], given.targets[:29])
    for score in (brier_score, negative_log_likelihood):
        [row] = score(few)
        assert not {"low", "high"} & set(row)


def test_log_likelihood_agrees_with_scikit_learn():
    given = outputs()
    for row in negative_log_likelihood(given):
        inside = given.context["shift"] == row["shift"]
        expected = log_loss(given.targets[inside], softmax(given.logits[inside]), labels=range(6))
        assert row["value"] == pytest.approx(expected, rel=1e-6)
        assert row["low"] < row["value"] < row["high"]


def test_a_probability_of_zero_costs_much_and_not_everything():
    logits = np.array([[0.0, -np.inf], [0.0, -np.inf]], np.float32)
    given = Outputs({"logits": logits}, np.arange(2), np.array([0, 1]))
    assert negative_log_likelihood(given)[0]["value"] == pytest.approx(744.44 / 2, abs=0.01)
    assert brier_score(given)[0]["value"] == pytest.approx(1.0)


def test_large_logits_do_not_overflow():
    logits = np.array([[1e4, 0.0], [0.0, 300.0]], np.float32)
    given = Outputs({"logits": logits}, np.arange(2), np.array([0, 0]))
    assert negative_log_likelihood(given)[0]["value"] == pytest.approx(150)


@pytest.mark.parametrize("function", ALL)
def test_samples_without_a_confidence_are_left_out(function):
    given = outputs(shifts=("a",))
    given.arrays["logits"][:30] = np.nan
    rest = Outputs({"logits": given.logits[30:]}, given.ids[30:], given.targets[30:], context={"shift": ["a"] * 60})
    assert function(given) == function(rest)
    given.arrays["logits"][:] = np.nan
    assert function(given) == []


@pytest.mark.parametrize("function", ALL)
def test_nothing_is_measured_without_logits_or_without_targets(function):
    given = outputs()
    assert function(Outputs({"labels": given.predictions()}, given.ids, given.targets)) == []
    best = {"top_values": given.logits[:, :2], "top_indices": np.zeros((90, 2), np.int32)}
    assert function(Outputs(best, given.ids, given.targets)) == []
    assert function(Outputs(given.arrays, given.ids)) == []


@pytest.mark.parametrize("function", ALL)
def test_half_precision_gives_nearly_the_same(function):
    given = outputs(shifts=("a",))
    coarse = Outputs({"logits": given.logits.astype(np.float16)}, given.ids, given.targets, context=given.context)
    total, expected = (sum(row["value"] for row in function(each)) for each in (coarse, given))
    assert total == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("function", ALL)
def test_a_mapping_one_to_one_only_renames_classes(function):
    given = outputs(classes=4, shifts=("a",))
    order = np.array([2, 0, 3, 1])
    renamed = Outputs(given.arrays, given.ids, order[given.targets], context=given.context)
    accepted = np.zeros((4, 4), bool)
    accepted[np.arange(4), order] = True
    mapped = Outputs(given.arrays, given.ids, given.targets, context=given.context, accepted=accepted)
    for one, two in zip(function(mapped), function(renamed), strict=True):
        assert one == pytest.approx(two)


def test_where_several_classes_are_accepted_their_probabilities_are_added():
    given = outputs(classes=5)
    accepted = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 1]], bool)
    targets = given.targets % 2
    mapped = Outputs(given.arrays, given.ids, targets, accepted=accepted)
    probabilities = softmax(given.logits)
    slow = [-math.log(probabilities[i][accepted[t]].sum()) for i, t in enumerate(targets)]
    assert negative_log_likelihood(mapped)[0]["value"] == pytest.approx(np.mean(slow), rel=1e-6)
    assert brier_score(mapped) == []  # which of the two it should have been, nobody can say
    gap = sum(row["n"] * abs(row["value"] - row["confidence"]) for row in reliability(mapped)) / len(given)
    assert gap == pytest.approx(expected_calibration_error(mapped)[0]["value"])
    right = sum(row["n"] * row["value"] for row in reliability(mapped))
    assert right == pytest.approx(sum(accepted[t, np.argmax(given.logits[i])] for i, t in enumerate(targets)))
