"""What compares cells: gain, forgetting, cost and rank correlation, from tables written by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from haptera.errors import HapteraError
from haptera.measures import (
    adaptation_gain,
    difference,
    forgetting,
    peak_bytes,
    rank_correlation,
    relative_bytes,
    relative_seconds,
)
from haptera.measures.pairs import newcombe
from haptera.outputs import Outputs
from haptera.statistics.intervals import wilson
from haptera.table import tidy


def share(right, n, **names):
    low, high = wilson(right, n)
    return {"measure": "accuracy", "seed": 0, "value": right / n, "low": low, "high": high, "n": n} | names


def cell(adapter, right, n=100, **names):
    return share(right, n, model="net", stream="s", adapter=adapter, shift="fog", severity=3) | names


def test_gain_is_the_difference_to_the_same_cell_unadapted():
    table = tidy([
        cell("none", 50), cell("tent", 70),
        cell("none", 40, shift="snow"), cell("tent", 30, shift="snow"),
        cell("none", 10, seed=1), cell("tent", 10, seed=1),
        cell("none", 99, model="other"), cell("tent", 5, stream="alone"),
    ])  # fmt: skip
    rows = adaptation_gain(table)
    assert {(row["shift"], row["seed"]): round(row["value"], 9) for row in rows} == {
        ("fog", 0): 0.2, ("snow", 0): -0.1, ("fog", 1): 0.0,
    }  # fmt: skip
    assert {row["adapter"] for row in rows} == {"tent"}
    [row] = [row for row in rows if (row["shift"], row["seed"]) == ("fog", 0)]
    assert (row["low"], row["high"]) == pytest.approx(newcombe((0.7, *wilson(70, 100)), (0.5, *wilson(50, 100))))
    assert row["n"] == 100


def test_parts_of_a_stream_are_compared_each_with_itself():
    # clean samples between those of two parts: the same shift and severity twice, told apart by the part alone
    right = {("none", "fog 1"): 80, ("none", "fog 5"): 60, ("tent", "fog 1"): 82, ("tent", "fog 5"): 50}
    rows = [cell(adapter, count, shift="clean", severity=0, part=part) for (adapter, part), count in right.items()]
    gains = {row["part"]: round(row["value"], 9) for row in adaptation_gain(tidy(rows))}
    assert gains == {"fog 1": 0.02, "fog 5": -0.1}


def test_an_unnamed_adapter_is_none():
    [row] = adaptation_gain(tidy([cell("", 50), cell("tent", 60)]))
    assert row["value"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 10), 0.6075, 1.0)],
)
def test_intervals_of_differences_against_published_values(one, other, low, high):
    # Newcombe (1998), table II, method 10, examples (a), (b) and (h)
    ends = newcombe(*((right / n, *wilson(right, n)) for right, n in (one, other)))
    assert ends == pytest.approx((low, high), abs=1e-4)


def test_paired_samples_have_a_narrower_interval_than_independent_ones():
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 10, 500)
    before = np.where(generator.random(500) < 0.6, targets, (targets + 1) % 10)
    after = np.where(generator.random(500) < 0.1, targets, before)
    one = Outputs({"labels": after[::-1].copy()}, np.arange(500)[::-1].copy(), targets[::-1].copy())
    other = Outputs({"labels": before}, np.arange(500), targets)
    value, low, high = difference(one, other)
    change = (after == targets).astype(float) - (before == targets)
    assert value == pytest.approx(change.mean())
    # Bonett and Price: Wald's interval with one more sample for which only the one is right, and one for the other.
    more = np.append(change, [1.0, -1.0])
    assert (low, high) == pytest.approx(stats.norm.interval(0.95, more.mean(), more.std() / np.sqrt(502)))
    right = [int((labels == targets).sum()) for labels in (after, before)]
    apart = newcombe(*((k / 500, *wilson(k, 500)) for k in right))
    assert high - low < 0.5 * (apart[1] - apart[0])
    with pytest.raises(HapteraError, match="not about the same samples: 500 and 499"):
        difference(one, Outputs({"labels": before[1:]}, np.arange(1, 500), targets[1:]))


def window(adapter, step, right, shift="fog", severity=3.0, n=50, **names):
    return cell(adapter, right, n, shift=shift, severity=severity, step=step, measure="accuracy_over_steps") | names


def test_forgetting_is_what_is_lost_on_clean_data_at_the_end():
    rows = []
    for place in range(16):  # clean after every two of fog; the adapter loses one image each time
        for adapter, right in (("none", 45), ("tent", 45 - place)):
            rows.append(window(adapter, 3 * place + 1, 20))
            rows.append(window(adapter, 3 * place + 2, right, "clean", 0.0))
    [row] = forgetting(tidy(rows))
    lost = [place / 50 for place in (12, 13, 14, 15)]  # the last quarter
    assert row["value"] == pytest.approx(np.mean(lost))
    assert row["n"] == 200
    own, other = 4 * 45 - (12 + 13 + 14 + 15), 4 * 45
    expected = newcombe((other / 200, *wilson(other, 200)), (own / 200, *wilson(own, 200)))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert (row["adapter"], row["shift"]) == ("tent", "clean")


def test_severity_that_returns_to_zero_is_clean_data():
    rows = [
        window(adapter, step, right, severity=severity)
        for adapter, ends in (("none", 40), ("tent", 25))
        for step, severity, right in ((0, 0.0, 40), (1, 3.0, 20), (2, 0.0, ends))
    ]
    [row] = forgetting(tidy(rows))
    assert row["value"] == pytest.approx(0.3)
    assert row["n"] == 50


def test_clean_data_before_the_shift_shows_no_forgetting():
    rows = [
        window(adapter, step, 40, shift, severity)
        for adapter in ("none", "tent")
        for step, shift, severity in ((0, "clean", 0.0), (1, "fog", 3.0))
    ]
    assert forgetting(tidy(rows)) == []
    assert forgetting(tidy([row for row in rows if row["shift"] == "clean"])) == []


def timed(adapter, value, n, measure="seconds_per_image", **names):
    return {
        "model": "net",
        "stream": "s",
        "adapter": adapter,
        "seed": 0,
        "measure": measure,
        "value": value,
        "n": n,
    } | names


def test_relative_time_is_the_ratio_of_all_seconds():
    rows = [timed("none", 1e-3, 100, shift="a"), timed("tent", 3e-3, 100, shift="a")]
    rows += [timed("none", 2e-3, 300, shift="b"), timed("tent", 2e-3, 300, shift="b"), timed("tent", 9.0, 9, shift="c")]
    [row] = relative_seconds(tidy(rows))
    assert row["value"] == pytest.approx((0.3 + 0.6) / (0.1 + 0.6))
    assert row["n"] == 400


def test_memory_is_the_peak_of_all_steps_and_compared_alike():
    given = Outputs({"labels": np.zeros(4, np.int64)}, np.arange(4), steps={"peak_bytes": np.array([5.0, 9.0, np.nan])})
    [row] = peak_bytes(given)
    assert (row["value"], row["n"]) == (9.0, 4)
    given.steps = {"peak_bytes": np.array([np.nan])}
    assert peak_bytes(given) == []
    table = tidy([timed("none", 100, 4, "peak_bytes"), timed("cotta", 250, 4, "peak_bytes")])
    assert relative_bytes(table)[0]["value"] == pytest.approx(2.5)


# Table B.18 of the thesis: errors of seven ResNet-50 on ImageNet-D, mCE on ImageNet-C, error on ImageNet-R, in %.
DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
ROBUST = {
    "vanilla": (76.0, 89.6, 65.1, 99.2, 40.1, 82.0, 76.7, 63.9),
    "SIN": (71.3, 88.6, 62.6, 97.5, 40.6, 77.0, 69.3, 58.5),
    "ANT": (73.4, 88.9, 63.3, 99.2, 39.9, 80.8, 62.4, 61.0),
    "ANT+SIN": (68.4, 88.6, 60.6, 95.5, 40.8, 70.3, 60.7, 53.7),
    "AugMix": (70.8, 88.6, 62.1, 99.1, 39.0, 78.5, 65.3, 58.9),
    "DeepAugment": (72.0, 88.8, 61.4, 98.9, 39.4, 78.5, 60.4, 57.8),
    "DeepAug+Augmix": (68.4, 88.1, 58.7, 98.2, 39.2, 75.2, 53.6, 53.2),
}


def robust_table():
    rows = []
    for model, errors in ROBUST.items():
        places = [*(("imagenet-d", domain) for domain in DOMAINS), ("imagenet-c", "all"), ("imagenet-r", "all")]
        rows += [
            {"model": model, "stream": stream, "adapter": "none", "shift": shift, "measure": "error", "n": 1000}
            | {"value": error / 100, "seed": seed}
            for (stream, shift), error in zip(places, errors, strict=True)
            for seed in (0, 1)
        ]
    return tidy(rows)


def test_rank_correlation_agrees_with_scipy_and_with_what_the_thesis_says():
    columns = dict(zip([*DOMAINS, "c", "r"], zip(*ROBUST.values(), strict=True), strict=True))
    found = {}
    for against, column in (("imagenet-c", "c"), ("imagenet-r", "r")):
        rows = {
            row["shift"]: row
            for row in rank_correlation(robust_table(), against=against)
            if row["stream"] == "imagenet-d"
        }
        for domain in DOMAINS:
            expected = stats.spearmanr(columns[domain], columns[column]).statistic
            assert rows[domain]["value"] == pytest.approx(expected)
            assert rows[domain]["n"] == 7
        mean = np.mean([columns[domain] for domain in DOMAINS], axis=0)
        assert rows[""]["value"] == pytest.approx(stats.spearmanr(mean, columns[column]).statistic)
        found[column] = rows
    # "The only domain where the coefficient is higher for IN-C is the Real domain"
    assert [domain for domain in DOMAINS if found["c"][domain]["value"] > found["r"][domain]["value"]] == ["real"]


def test_rank_correlation_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.7 / 2)  # Spearman's of a normal pair with correlation .7
    covered = []
    for _ in range(4):
        clean = generator.normal(size=40)
        others = 0.7 * clean[:, None] + np.sqrt(1 - 0.7**2) * generator.normal(size=(40, 50))
        frame = pd.DataFrame(np.column_stack([clean, others]), columns=["clean", *(f"set {i}" for i in range(50))])
        frame = frame.melt(var_name="stream", ignore_index=False).reset_index(names="model").astype({"model": "str"})
        rows = rank_correlation(tidy(frame.assign(adapter="none", shift=frame["stream"], measure="error", n=1)))
        covered += [row["low"] <= truth <= row["high"] for row in rows]
    assert len(covered) == 200
    assert 0.9 < np.mean(covered) < 0.99


def test_rank_correlation_needs_three_models_that_differ_and_a_known_yardstick():
    table = robust_table()
    few = table[table["model"].isin(["SIN", "ANT"])]
    assert rank_correlation(few, against="imagenet-c") == []
    assert rank_correlation(table) == []  # there is no clean data
    with pytest.raises(HapteraError, match="unknown stream or shift 'imagenet-x'; did you mean 'imagenet-r'"):
        rank_correlation(table, against="imagenet-x")
    same = table.assign(value=table["value"].where(table["stream"] != "imagenet-c", 0.5))
    assert rank_correlation(same, against="imagenet-c") == []
