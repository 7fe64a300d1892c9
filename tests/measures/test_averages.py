"""Averages, gains, margins and seeds, each written out once more by loops; epochs and orders are counted once."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from haptera.measures import (
    accuracy,
    adapter_margin,
    clean_accuracy,
    idle_steps,
    mean_accuracy,
    mean_error,
    mean_gain,
    mean_over_seeds,
    model_margin,
    recovered,
)
from haptera.measures.pairs import newcombe
from haptera.outputs import Outputs
from haptera.statistics.intervals import wilson
from haptera.table import measure_outputs, tidy

SHIFTS, LEVELS = ("fog", "snow", "contrast"), (1.0, 3.0)
NET = {"model": "net", "stream": "s", "adapter": "none", "seed": 0}


def share(right, n=200, measure="accuracy", **names):
    low, high = wilson(right, n)
    return NET | {"measure": measure, "value": right / n, "low": low, "high": high, "n": n} | names


def study(models=("a", "b"), adapters=("none", "bn", "tent"), seeds=(0,), streams=("one", "two")):
    """Every model on clean data and under three shifts at two severities, in two streams."""
    generator = np.random.default_rng(1)
    rows = []
    for model, adapter, seed in product(models, adapters, seeds):
        names = {"model": model, "adapter": adapter, "seed": seed}
        rows.append(share(int(generator.integers(170, 200)), stream="clean", shift="clean", severity=0.0, **names))
        for stream, shift, severity in product(streams, SHIFTS, LEVELS):
            right = int(generator.integers(60, 150))
            rows.append(share(right, stream=stream, shift=shift, severity=severity, **names))
    return rows


def only(rows, **wanted):
    return [row for row in rows if all(row.get(key, "") == value for key, value in wanted.items())]


def test_epochs_are_not_averaged_and_their_images_not_added():
    """The case of the issue: three epochs over 897 images."""
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 5, 897)
    right = np.concatenate([generator.random(897) < rate for rate in (0.2, 0.5, 0.8)])
    outputs = Outputs(
        {"labels": np.where(right, np.tile(targets, 3), -1)},
        np.tile(np.arange(897), 3),
        np.tile(targets, 3),
        step=np.arange(3 * 897) // 64,
        context={
            "shift": np.repeat("fog", 3 * 897),
            "severity": np.full(3 * 897, 3.0),
            "epoch": np.repeat([1, 2, 3], 897),
        },
        provenance=NET,
    )
    rows = measure_outputs(outputs, [accuracy])
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    errors = [row | {"measure": "error", "value": 1 - row["value"]} for row in rows]
    [mean] = mean_error(tidy(errors))
    assert (mean["value"], mean["n"]) == (pytest.approx(1 - right[-897:].mean()), 897)


def test_orders_of_a_stream_are_averaged_and_their_images_counted_once():
    rows = [share(right, measure="error", shift="fog", severity=5.0, part=f"order {k}", order=k) for k, right in
            ((1, 100), (2, 60), (3, 20))]  # fmt: skip
    [mean] = mean_error(tidy(rows))
    assert (mean["value"], mean["n"]) == (pytest.approx(0.3), 200)


def test_the_mean_accuracy_is_over_shifts_of_the_mean_over_severities():
    rows = study()
    for found in mean_accuracy(tidy(rows)):
        own = only(rows, model=found["model"], adapter=found["adapter"], stream=found["stream"])
        for end in ("value", "low", "high"):
            expected = np.mean([np.mean([row[end] for row in own if row["shift"] == shift]) for shift in SHIFTS])
            assert found[end] == pytest.approx(expected)
        assert (found["n"], found["shifts"]) == (6 * 200, 3)


def test_accuracy_on_clean_data_is_that_of_the_clean_stream():
    rows = [share(180, stream="clean", shift="clean"), share(20, stream="other", shift="clean")]
    assert [(row["value"], row["n"]) for row in clean_accuracy(tidy(rows))] == [(0.9, 200)]
    assert [row["value"] for row in clean_accuracy(tidy(rows[1:]))] == [0.1]


def test_the_mean_gain_counts_every_cell_the_same():
    rows = study()
    found = [row for row in mean_gain(tidy(rows)) if row["adapter"] == "tent"]
    pairs = []
    for own in only(rows, adapter="tent"):
        same = {key: own[key] for key in ("model", "stream", "shift", "severity")}
        [base] = only(rows, adapter="none", **same)
        ends = newcombe(*((row["value"], row["low"], row["high"]) for row in (own, base)))
        pairs.append(same | {"value": own["value"] - base["value"], "low": ends[0], "high": ends[1],
                             "before": base["value"], "after": own["value"]})  # fmt: skip
    places = [{}, *({"shift": shift} for shift in (*SHIFTS, "clean")), {"stream": "one"}, {"stream": "two"}]
    assert len(found) == len(places)
    for place in places:
        [row] = [row for row in found if {key: row[key] for key in ("shift", "stream") if key in row} == place]
        cells = [pair for pair in only(pairs, **place) if place.get("shift") == "clean" or pair["shift"] != "clean"]
        assert row["cells"] == len(cells)
        for name in ("value", "low", "high", "before", "after"):
            assert row[name] == pytest.approx(np.mean([cell[name] for cell in cells]))


def test_what_is_recovered_is_the_gain_over_the_loss():
    rows = study(models=("a",), streams=("one",))
    for row in recovered(tidy(rows)):
        values = {
            adapter: np.mean([each["value"] for each in only(rows, adapter=adapter, shift=row["shift"])])
            for adapter in ("none", row["adapter"])
        }
        [clean] = only(rows, adapter="none", stream="clean")
        assert row["lost"] == pytest.approx(clean["value"] - values["none"])
        assert row["value"] == pytest.approx((values[row["adapter"]] - values["none"]) / row["lost"])


def test_nothing_is_recovered_where_hardly_anything_was_lost():
    rows = []
    for adapter, right in (("none", 177), ("bn", 187)):
        rows.append(share(180, stream="clean", shift="clean", severity=0.0, adapter=adapter))
        rows.append(share(right, shift="fog", severity=1.0, adapter=adapter))
    assert recovered(tidy(rows)) == []


def test_margins_are_between_the_best_two_with_their_interval():
    rows = study(streams=("one",))
    table = tidy(rows)
    means = pd.DataFrame(mean_accuracy(table)).set_index(["model", "adapter"])
    for row in adapter_margin(table):
        if "model" not in row or not row["model"]:
            continue
        own = means.loc[row["model"]].sort_values("value", ascending=False)
        assert [row["adapter"], row["against"]] == own.index[:2].tolist()
        best, second = (own.iloc[place][["value", "low", "high"]] for place in (0, 1))
        assert row["value"] == pytest.approx(best["value"] - second["value"])
        assert (row["low"], row["high"]) == pytest.approx(newcombe(best, second))
    [row] = model_margin(table)
    plain = means.xs("none", level="adapter")["value"].sort_values(ascending=False)
    assert (row["model"], row["against"]) == tuple(plain.index)
    assert row["value"] == pytest.approx(plain.iloc[0] - plain.iloc[1])


def test_seeds_have_a_mean_a_standard_deviation_and_the_images_of_one():
    values = [140, 150, 148]
    rows = [share(right, shift="fog", severity=3.0, seed=seed) for seed, right in enumerate(values)]
    [row] = mean_over_seeds(tidy(rows))
    shares = np.array(values) / 200
    assert row["measure"] == "accuracy_over_seeds"
    assert (row["value"], row["sd"]) == pytest.approx((shares.mean(), shares.std(ddof=1)))
    assert (row["n"], row["seeds"]) == (200, 3)
    assert "seed" not in row


def test_the_interval_over_seeds_is_students_where_that_is_wider_and_else_that_of_a_seed():
    far = [share(right, seed=seed, measure="adaptation_gain") for seed, right in enumerate((20, 100, 180))]
    [row] = mean_over_seeds(tidy(far))
    expected = stats.t.interval(0.95, 2, 0.5, stats.sem([0.1, 0.5, 0.9]))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    same = [share(100, seed=seed) for seed in range(3)]  # what seeds do not change is not known for certain
    [row] = mean_over_seeds(tidy(same))
    assert (row["low"], row["high"], row["sd"]) == pytest.approx((*wilson(100, 200), 0))


def test_the_interval_over_seeds_covers_another_seed_on_the_same_images():
    generator = np.random.default_rng(0)
    rows = [
        NET | {"model": f"net {k}", "measure": "adaptation_gain", "value": value, "n": 100, "seed": seed}
        for k in range(400)
        for seed, value in enumerate(generator.normal(0.1, 0.02, 3))
    ]
    covered = np.mean([row["low"] <= 0.1 <= row["high"] for row in mean_over_seeds(tidy(rows))])
    assert 0.92 < covered < 0.98


def test_one_seed_has_no_rows_over_seeds():
    assert mean_over_seeds(tidy(study())) == []


@pytest.mark.parametrize(("kept", "share"), [([0, 0, 0.5, 0], 0.75), ([0.1, np.nan], 0.0), ([np.nan], None)])
def test_idle_steps_are_those_of_which_nothing_was_kept(kept, share):
    given = Outputs({"labels": np.zeros(4, np.int64)}, np.arange(4), steps={"kept": np.array(kept)})
    rows = idle_steps(given)
    assert [row["value"] for row in rows] == ([] if share is None else [share])
