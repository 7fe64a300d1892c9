"""Attracted classes, predictions outside a mapping, and signs of collapse, against counting by hand."""

import math

import numpy as np
import pytest

from haptera.measures import (
    class_attraction,
    filtered_error,
    largest_class_share,
    mean_prediction_entropy,
    outside_mapping,
)
from haptera.outputs import Outputs
from haptera.statistics.intervals import wilson


def labelled(predictions, targets, **more):
    predictions = np.asarray(predictions)
    return Outputs({"labels": predictions}, np.arange(len(predictions)), np.asarray(targets), **more)


def test_attraction_is_predicted_minus_true_frequency():
    generator = np.random.default_rng(0)
    targets, predictions = generator.integers(0, 5, 200), generator.integers(0, 4, 200)
    rows = class_attraction(labelled(predictions, targets))
    assert {row["class"] for row in rows} == set(range(5))
    for row in rows:
        often = sum(int(p == row["class"]) for p in predictions) / 200
        true = sum(int(t == row["class"]) for t in targets) / 200
        assert row["value"] == pytest.approx(often - true)
        assert (row["predicted"], row["actual"]) == pytest.approx((often, true))
        change = [int(p == row["class"]) - int(t == row["class"]) for p, t in zip(predictions, targets, strict=True)]
        change += [1, -1]  # Bonett and Price add one sample either way
        half = 1.959964 * np.std(change) / math.sqrt(202)
        assert (row["low"], row["high"]) == pytest.approx((np.mean(change) - half, np.mean(change) + half), abs=1e-6)
    sizes = [abs(row["value"]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_a_perfect_model_attracts_nothing_but_three_samples_do_not_make_that_sure():
    rows = class_attraction(labelled([0, 1, 1], [0, 1, 1]))
    assert [row["value"] for row in rows] == [0, 0]
    assert all(row["low"] < -0.3 and row["high"] > 0.3 for row in rows)


def test_of_many_classes_the_ten_most_attracted_or_repelled_are_kept():
    targets = np.arange(1000) % 100
    predictions = np.where(targets < 20, 7, targets)
    rows = class_attraction(labelled(predictions, targets))
    assert len(rows) == 10
    assert (rows[0]["class"], rows[0]["value"]) == (7, pytest.approx(0.19))
    assert all(row["value"] == pytest.approx(-0.01) for row in rows[1:])


def test_with_a_mapping_classes_are_the_models_and_true_is_where_they_would_be_right():
    # class 0 of the data accepts columns 0 and 1, class 1 accepts column 2; column 3 is outside
    accepted = np.array([[1, 1, 0, 0], [0, 0, 1, 0]], bool)
    logits = np.eye(4, dtype=np.float32)[[0, 1, 3, 3, 2, 3]]
    given = Outputs({"logits": logits}, np.arange(6), np.array([0, 0, 0, 0, 1, 1]), accepted=accepted)
    found = {row["class"]: (row["predicted"], row["actual"]) for row in class_attraction(given)}
    assert found[3] == pytest.approx((3 / 6, 0))
    assert found[0] == pytest.approx((1 / 6, 4 / 6))
    assert found[2] == pytest.approx((1 / 6, 2 / 6))
    assert outside_mapping(given)[0]["value"] == pytest.approx(3 / 6)
    restricted = Outputs(
        {"logits": logits[:, [0, 2]]},
        np.arange(6),
        given.targets,
        accepted=accepted[:, [0, 2]],
        columns=np.array([5, 9]),
    )
    assert {row["class"] for row in class_attraction(restricted) if row["actual"]} == {5, 9}
    assert outside_mapping(restricted)[0]["value"] == 0


def test_the_share_outside_a_mapping_is_counted_for_each_shift_and_needs_no_labels():
    generator = np.random.default_rng(1)
    accepted = np.zeros((3, 8), bool)
    accepted[[0, 1, 2], [1, 4, 6]] = True
    logits = generator.normal(size=(90, 8)).astype(np.float32)
    logits[3] = np.nan
    shift = np.repeat(["a", "b"], 45)
    rows = outside_mapping(Outputs({"logits": logits}, np.arange(90), context={"shift": shift}, accepted=accepted))
    for row in rows:
        inside = [i for i in range(90) if shift[i] == row["shift"]]
        out = sum(int(i == 3 or np.argmax(logits[i]) not in (1, 4, 6)) for i in inside)
        assert row["value"] == out / 45
        assert (row["low"], row["high"]) == wilson(out, 45)
    assert outside_mapping(Outputs({"logits": logits}, np.arange(90))) == []


def test_the_filtered_error_is_that_of_predictions_that_some_class_accepts():
    generator = np.random.default_rng(2)
    accepted = np.zeros((3, 8), bool)
    accepted[[0, 0, 1, 2], [1, 2, 4, 6]] = True
    logits = generator.normal(size=(90, 8)).astype(np.float32)
    logits[:60, 4] += 2
    logits[80:, 3] += 50  # outside throughout: nothing is left to be right or wrong about
    targets = generator.integers(0, 3, 90)
    shift = np.repeat(["a", "b", "c"], [40, 40, 10])
    given = Outputs({"logits": logits}, np.arange(90), targets, context={"shift": shift}, accepted=accepted)
    rows = filtered_error(given)
    assert [row["shift"] for row in rows] == ["a", "b"]
    for row in rows:
        left = wrong = 0
        for i in np.flatnonzero(shift == row["shift"]):
            predicted = int(np.argmax(logits[i]))
            if predicted in (1, 2, 4, 6):
                left += 1
                wrong += not accepted[targets[i], predicted]
        assert (row["value"], row["n"]) == (wrong / left, left)
        assert (row["low"], row["high"]) == wilson(wrong, left)
    assert filtered_error(Outputs({"logits": logits}, np.arange(90), targets % 8)) == []


def stream(logits, batch=100):
    steps = np.arange(len(logits)) // batch
    return Outputs({"logits": logits.astype(np.float32)}, np.arange(len(logits)), step=steps.astype(np.int32))


def test_signs_of_collapse_go_from_one_end_to_the_other():
    spread, single = np.eye(10)[np.arange(1500) % 10] * 50, np.eye(10)[np.zeros(1500, int)] * 50
    given = stream(np.concatenate([spread, single]))
    share, entropy = largest_class_share(given), mean_prediction_entropy(given)
    assert [row["step"] for row in share] == [row["step"] for row in entropy] == list(range(2, 30, 3))
    assert [row["value"] for row in share] == pytest.approx([0.1] * 5 + [1.0] * 5)
    assert [row["value"] for row in entropy] == pytest.approx([math.log(10)] * 5 + [0.0] * 5, abs=1e-6)


def test_signs_of_collapse_against_loops_over_windows():
    logits = np.random.default_rng(2).normal(size=(2500, 4)) * 2
    given = stream(logits)  # 25 batches in windows of 3, so that each holds 250 samples
    share, entropy = largest_class_share(given), mean_prediction_entropy(given)
    assert len(share) == len(entropy) == 9
    powers = np.exp(logits.astype(np.float32).astype(float))
    probabilities = powers / powers.sum(1, keepdims=True)
    for place, (one, two) in enumerate(zip(share, entropy, strict=True)):
        rows = slice(300 * place, min(300 * place + 300, 2500))
        counts = np.bincount(logits[rows].argmax(1))
        assert one["value"] == pytest.approx(counts.max() / counts.sum())
        mean = probabilities[rows].mean(0)
        assert two["value"] == pytest.approx(-sum(p * math.log(p) for p in mean), abs=1e-6)
        assert one["n"] == two["n"] == counts.sum()


def test_a_long_stream_has_a_hundred_windows_however_many_samples():
    logits = np.random.default_rng(3).normal(size=(60_000, 3))
    assert len(largest_class_share(stream(logits))) == 100
    assert len(mean_prediction_entropy(stream(logits, batch=1))) == 100


def test_a_row_that_is_nan_is_no_class():
    logits = np.eye(3)[[0, 0, 1, 2]] * 50
    logits[3] = np.nan
    given = stream(logits)
    assert largest_class_share(given)[0]["value"] == pytest.approx(2 / 4)
    expected = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert mean_prediction_entropy(given)[0]["value"] == pytest.approx(expected, abs=1e-6)
    assert mean_prediction_entropy(given)[0]["n"] == 3
    nothing = stream(np.full((4, 3), np.nan))
    assert largest_class_share(nothing)[0]["value"] == 0
    assert mean_prediction_entropy(nothing) == []


def test_decisions_alone_have_a_largest_class_and_no_entropy():
    given = labelled([1, 1, 2, 1], [0, 0, 0, 0], step=np.zeros(4, np.int32))
    assert largest_class_share(given)[0]["value"] == 0.75
    assert mean_prediction_entropy(given) == []
