"""The numbers of the paper's table, against sums written out."""

from math import sqrt

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.measures import benchmark_accuracy, mean_over_seeds, shift_margin, shift_mean
from haptera.table import join, tidy

SHIFTS = ("fog", "snow", "contrast")


def cell(adapter, shift, severity, value, seed=0, **names):
    row = {"model": "net", "stream": "corruptions", "adapter": adapter, "shift": shift, "severity": severity}
    ends = {"low": value - 0.02, "high": value + 0.02}
    return row | {"measure": "error", "value": value, "n": 100, "seed": seed} | ends | names


def study(adapters=("none", "tent", "eta"), seeds=(0, 1, 2), severities=(1, 5)):
    generator = np.random.default_rng(1)
    cells = [(a, s, level, seed) for a in adapters for s in SHIFTS for level in severities for seed in seeds]
    return [cell(a, s, level, float(generator.uniform(0.1, 0.6)), seed) for a, s, level, seed in cells]


def select(rows, **names):
    return [row for row in rows if all(row.get(key, "") == value for key, value in names.items())]


def test_a_shift_has_the_mean_over_severities_and_the_mean_counts_every_shift_alike():
    rows = [*study(), cell("none", "fog", 3, 0.9), cell("none", "clean", 0, 0.01)]
    rows = [row for row in rows if row["adapter"] == "none" and row["seed"] == 0]
    found = {row["shift"]: row for row in shift_mean(tidy(rows))}
    assert set(found) == {"", *SHIFTS}
    each = {shift: np.mean([row["value"] for row in select(rows, shift=shift)]) for shift in SHIFTS}
    assert {shift: found[shift]["value"] for shift in SHIFTS} == pytest.approx(each)
    assert found[""]["value"] == pytest.approx(np.mean(list(each.values())))
    assert {row["of"] for row in found.values()} == {"error"}


def test_the_standard_deviation_is_that_of_the_means_of_seeds():
    rows = study()
    table = tidy(rows)
    summed = mean_over_seeds(join(table, shift_mean(table)))
    for shift in ("", *SHIFTS):
        [row] = select(summed, measure="shift_mean_over_seeds", adapter="tent", shift=shift)
        own = [row for row in rows if row["adapter"] == "tent" and shift in ("", row["shift"])]
        means = [np.mean([row["value"] for row in own if row["seed"] == seed]) for seed in (0, 1, 2)]
        middle = sum(means) / 3
        assert row["value"] == pytest.approx(middle)
        assert row["sd"] == pytest.approx(sqrt(sum((each - middle) ** 2 for each in means) / 2))


def test_a_seed_interval_of_a_share_stays_a_share():
    table = tidy([cell("none", "fog", 5, value, seed) for seed, value in enumerate([0.001, 0.03, 0.002])])
    [row] = select(mean_over_seeds(tidy(shift_mean(table))), shift="fog")
    assert 0 <= row["sd"] < row["high"] < 1
    assert row["low"] >= -0.02  # as low as the mean of the intervals that the rows came with


def test_a_run_that_lacks_a_shift_or_a_severity_has_no_mean_and_does_not_win():
    rows = [row for row in study() if not (row["adapter"] == "eta" and row["shift"] == "fog" and row["severity"] == 5)]
    rows = [row | ({"value": 0.0} if row["adapter"] == "eta" else {}) for row in rows]
    found = shift_mean(tidy(rows))
    assert select(found, adapter="eta", shift="") == []
    assert len(select(found, adapter="eta", shift="fog")) == 3
    [row] = shift_margin(tidy(rows))
    assert {row["adapter"], row["against"]} == {"none", "tent"}


def test_hold_out_shifts_count_where_there_are_no_others():
    held = [cell("none", shift, 5, value) for shift, value in (("spatter", 0.8), ("saturate", 0.6))]
    both = shift_mean(tidy([*held, cell("none", "fog", 5, 0.2)]))
    assert [row["value"] for row in select(both, shift="")] == [0.2]
    assert [row["value"] for row in select(both, shift="spatter")] == [0.8]
    assert [row["value"] for row in select(shift_mean(tidy(held)), shift="")] == [pytest.approx(0.7)]


def test_the_margin_is_paired_by_seed():
    means = {"none": [0.5, 0.6, 0.55], "tent": [0.30, 0.42, 0.33], "eta": [0.29, 0.40, 0.33]}
    rows = [cell(name, "fog", 5, value, seed) for name, values in means.items() for seed, value in enumerate(values)]
    [row] = shift_margin(tidy(rows))
    change = np.subtract(means["tent"], means["eta"])
    assert (row["adapter"], row["against"], row["seeds"]) == ("eta", "tent", 3)
    assert row["value"] == pytest.approx(change.mean())
    half = 4.302653 * change.std(ddof=1) / sqrt(3)  # Student's t, two degrees of freedom
    assert (row["low"], row["high"]) == pytest.approx((change.mean() - half, change.mean() + half), rel=1e-5)


def test_a_margin_of_accuracy_is_the_margin_of_error():
    rows = study()
    mirrored = [
        row | {"measure": "accuracy", "value": 1 - row["value"], "low": 1 - row["high"], "high": 1 - row["low"]}
        for row in rows
    ]
    table = tidy(rows + mirrored)
    [error], [accuracy] = shift_margin(table), shift_margin(table, of="accuracy")
    assert (error["adapter"], error["against"]) == (accuracy["adapter"], accuracy["against"])
    for name in ("value", "low", "high"):
        assert error[name] == pytest.approx(accuracy[name])


def test_a_score_without_a_better_direction_has_no_best():
    with pytest.raises(HapteraError, match="no direction of outside_mapping is better"):
        shift_margin(tidy(study()), of="outside_mapping")


def walk(difficulty, number, accuracy, speed=1000):
    row = {"model": "net", "stream": "ccc_benchmark", "adapter": "none", "seed": 0, "measure": "walk_accuracy"}
    return row | {"value": accuracy, "low": accuracy, "high": accuracy, "n": 500, "difficulty": difficulty} | {
        "speed": speed, "walk": number, "part": f"{difficulty} {speed} {number}",
    }  # fmt: skip


def test_walks_have_a_column_for_each_difficulty():
    walks = [walk(0.34, 0, 0.3), walk(0.34, 1, 0.4), walk(0.34, 1, 0.5, 2000), walk(0.02, 0, 0.1)]
    steps = [cell("none", "fog > snow", 2, 0.9, stream="ccc_benchmark")]
    found = {row["shift"]: row["value"] for row in shift_mean(tidy(walks + steps))}
    assert found == pytest.approx({"difficulty 0.34": 0.6, "difficulty 0.02": 0.9, "": 0.75})


def test_a_benchmark_says_how_much_its_walks_differ():
    rows = [walk(0.34, 0, 0.3), walk(0.34, 1, 0.4), walk(0.34, 2, 0.8), walk(0.02, 0, 0.1)]
    found = {row.get("difficulty"): row for row in benchmark_accuracy(tidy(rows))}
    assert found[0.34]["walk_sd"] == pytest.approx(sqrt((0.2**2 + 0.1**2 + 0.3**2) / 2))
    assert "walk_sd" not in found[0.02]  # one walk
    assert found[None]["value"] == pytest.approx((0.5 + 0.1) / 2)
