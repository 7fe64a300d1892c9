"""Accuracy and its relatives against loops over samples."""

import numpy as np
import pytest
from scipy import stats

from haptera.measures import accuracy, accuracy_over_steps, error, seconds_per_image, top5_accuracy
from haptera.outputs import Outputs
from haptera.statistics.intervals import wilson


def outputs(n=60, batch=7, seed=0, shifts=("a", "b", "a")):
    generator = np.random.default_rng(seed)
    length = -(-n // len(shifts))
    step = np.concatenate([np.arange(length) // batch + i * -(-length // batch) for i in range(len(shifts))])[:n]
    return Outputs(
        {"logits": generator.normal(size=(n, 8)).astype(np.float32)},
        np.arange(n),
        generator.integers(0, 8, n),
        step=step.astype(np.int32),
        context={"shift": np.repeat(shifts, length)[:n], "severity": np.full(n, 2.0)},
        steps={"seconds": generator.uniform(size=step.max() + 1)},
    )


def test_accuracy_counts_right_samples_of_each_shift():
    given = outputs()
    for row in accuracy(given):
        inside = [i for i in range(60) if given.context["shift"][i] == row["shift"]]
        right = sum(int(np.argmax(given.logits[i]) == given.targets[i]) for i in inside)
        assert row["value"] == right / len(inside)
        assert row["n"] == len(inside)
        assert (row["low"], row["high"]) == wilson(right, len(inside))
    assert [row["shift"] for row in accuracy(given)] == ["a", "b"]


def test_error_is_one_minus_accuracy_with_the_interval_turned():
    for right, wrong in zip(accuracy(outputs()), error(outputs()), strict=True):
        assert wrong["value"] == 1 - right["value"]
        assert (wrong["low"], wrong["high"]) == (1 - right["high"], 1 - right["low"])


def test_top5_needs_more_than_five_classes():
    few = Outputs({"logits": np.zeros((3, 5), np.float32)}, np.arange(3), np.zeros(3, np.int64))
    assert top5_accuracy(few) == []
    given = outputs()
    best = np.argsort(-given.logits, axis=1)[:, :5]
    right = [given.targets[i] in best[i] for i in range(60)]
    rows = top5_accuracy(given)
    assert sum(row["value"] * row["n"] for row in rows) == pytest.approx(sum(right))


def test_windows_hold_one_context_and_together_all_samples():
    given = outputs(n=600, batch=3)
    rows = accuracy_over_steps(given)
    assert sum(row["n"] for row in rows) == 600
    assert len(rows) == 69  # 201 batches in windows of 3, 23 in each of 3 runs
    assert [row["step"] for row in rows] == sorted(row["step"] for row in rows)
    before = -1
    for row in rows:
        inside = (given.step > before) & (given.step <= row["step"])
        assert set(given.context["shift"][inside]) == {row["shift"]}
        assert row["value"] == pytest.approx(given.correct()[inside].mean())
        before = row["step"]
    assert before == given.step.max()


def test_a_return_to_an_earlier_shift_is_a_window_of_its_own():
    rows = accuracy_over_steps(outputs(n=21, batch=7))
    assert [row["shift"] for row in rows] == ["a", "b", "a"]


def test_seconds_are_shared_among_the_images_of_a_batch():
    given = outputs(n=20, batch=5, shifts=("a",))
    row = seconds_per_image(given)[0]
    assert row["value"] == pytest.approx(given.steps["seconds"][1:].sum() / 15)
    assert row["n"] == 15


def test_the_first_batch_of_a_cell_warms_up_and_counts_only_where_there_is_no_other():
    given = outputs(n=15, batch=5, shifts=("a", "b"))
    given.steps["seconds"][0] = 1000.0
    rows = {row["shift"]: row for row in seconds_per_image(given)}
    assert max(row["value"] for row in rows.values()) < 1
    alone = outputs(n=5, batch=5, shifts=("a",))
    assert seconds_per_image(alone)[0]["value"] == pytest.approx(alone.steps["seconds"].sum() / 5)


def test_without_targets_there_is_no_accuracy():
    given = outputs()
    given.targets = None
    assert accuracy(given) == error(given) == accuracy_over_steps(given) == []


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(0, 10, 0.0, 0.27754), (10, 10, 0.72246, 1.0), (81, 263, 0.25527, 0.36622), (15, 148, 0.06239, 0.16048)],
)
def test_wilson_interval_against_published_values(right, n, low, high):
    # 81/263 and 15/148 are the worked examples of Newcombe (1998), table I, method 3
    assert wilson(right, n) == pytest.approx((low, high), abs=1e-4)


def test_wilson_interval_covers_the_truth_as_often_as_it_says():
    ends = np.array([wilson(k, 50) for k in range(51)])
    coverage = []
    for truth in np.linspace(0.05, 0.95, 181):
        covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        coverage.append(stats.binom.pmf(np.arange(51), 50, truth)[covered].sum())
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.005)
    assert min(coverage) > 0.9


def test_wilson_interval_of_nothing_is_everything():
    assert wilson(0, 0) == (0.0, 1.0)
