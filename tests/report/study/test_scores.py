"""The frames behind the sections on methods, adaptation, calibration and classes."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.report.conftest import learning_outputs

from haptera.measures import expected_calibration_error
from haptera.measures.pairs import newcombe
from haptera.report.section import Section
from haptera.report.study import REPORTED, adaptation, calibration, classes, complete, methods, results, time
from haptera.report.study.summary import summarise
from haptera.table import tidy

Make = Callable[..., pd.DataFrame]


def made(section: Section | None) -> Section:
    assert section is not None
    return section


def only(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def accuracy(adapter: str, value: float, shift: str = "fog", seed: int = 0, **names: object) -> dict[str, object]:
    row = {"model": "net", "stream": "s", "adapter": adapter, "shift": shift, "severity": 3, "seed": seed, "n": 100}
    return row | {"measure": "accuracy", "value": value, "low": value - 0.03, "high": value + 0.05} | names


def test_the_margin_over_seeds_is_that_of_a_paired_t_test() -> None:
    first, second = [0.70, 0.74, 0.72], [0.66, 0.71, 0.70]
    rows = [accuracy("tent", value, seed=seed) for seed, value in enumerate(first)]
    rows += [accuracy("eta", value, seed=seed) for seed, value in enumerate(second)]
    rows += [accuracy("none", 0.5, seed=seed) for seed in range(3)]
    row = made(methods.section(complete(tidy(rows)))).tables[0].frame.iloc[0]
    assert (row["winner"], row["next"], row["seeds"]) == ("tent", "eta", 3)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    assert row["margin"] == pytest.approx(0.03)
    assert row["clear"] == "yes"


def test_the_margin_with_one_seed_is_as_wide_as_two_shares() -> None:
    table = complete(tidy([accuracy("tent", 0.7), accuracy("none", 0.65)]))
    row = made(methods.section(table)).tables[0].frame.iloc[0]
    assert row["margin"] == pytest.approx(0.05)
    own, other = ((value, value - 0.03, value + 0.05) for value in (0.7, 0.65))
    assert (row["low"], row["high"]) == pytest.approx(newcombe(own, other))
    assert row["clear"] == "no"


@pytest.mark.long
def test_adapters_are_compared_on_what_all_of_them_met() -> None:
    rows = [accuracy("tent", 0.7), accuracy("none", 0.6), accuracy("none", 0.1, "snow"), accuracy("none", 0.9, "clean")]
    frame = made(methods.section(complete(tidy(rows)))).figures[0].frame
    assert frame.set_index("adapter")["accuracy"].to_dict() == pytest.approx({"none": 0.6, "tent": 0.7})
    assert frame.set_index("adapter")["change"]["tent"] == pytest.approx(0.1)
    assert methods.section(complete(tidy(rows[1:]))) is None


@pytest.mark.long
def test_the_mean_over_models_takes_those_with_every_adapter(study: pd.DataFrame) -> None:
    lacking = study[(study["model"] != "vgg-16-bn") | (study["adapter"] == "none")]
    section = made(methods.section(complete(tidy(lacking[~lacking["measure"].isin(REPORTED)]))))
    where = {"measure": "accuracy", "stream": "corruptions", "adapter": "batchnorm:prior=16"}
    expected = only(lacking, **where).groupby("model")["value"].mean().mean()
    cell = only(section.figures[0].frame, model=methods.MEAN, stream="corruptions", adapter="batchnorm:prior=16")
    assert cell["accuracy"].item() == pytest.approx(expected)
    assert "vgg-16-bn" not in set(section.tables[0].frame["model"])
    assert section.tables[0].frame["model"].iloc[0] == methods.MEAN


def as_good(adapter: str, value: float, **names: object) -> list[dict[str, object]]:
    parent = {"parent": "batchnorm:prior=0"} if adapter == "rdumb" else {}
    return [accuracy(adapter, value, shift, **parent, **names) for shift in ("fog", "snow")]


@pytest.mark.long
def test_a_tie_goes_to_the_adapter_that_does_not_learn() -> None:
    rows = as_good("none", 0.5) + as_good("rdumb", 0.7) + as_good("batchnorm:prior=0", 0.7) + as_good("tent", 0.6)
    idle = accuracy("rdumb", 0.98, measure="idle_steps")
    table = complete(tidy([*rows, idle]))
    sentence = summarise(table)[-1].sentence
    assert sentence.startswith(
        "Yes: batchnorm:prior=0 raises accuracy by 0.20 (0.14 to 0.26) on average, from 0.50 to 0.70"
    )
    assert "; rdumb ties with it" in sentence
    assert "best of" not in sentence
    assert "kept nothing to learn from: rdumb at 98 % of its steps" in sentence
    row = made(methods.section(table)).tables[0].frame.iloc[0]
    assert (row["winner"], row["next"], row["margin"], row["clear"]) == ("batchnorm:prior=0", "rdumb", 0, "tie")


@pytest.mark.long
def test_a_learner_that_is_hardly_better_than_its_parent_is_level_with_it() -> None:
    plain = as_good("none", 0.5) + as_good("batchnorm:prior=0", 0.7)
    near, far = (complete(tidy(plain + as_good("rdumb", value))) for value in (0.71, 0.9))
    said = "batchnorm:prior=0, which does not learn, is level with it (within the interval)"
    assert said in summarise(near)[-1].sentence
    assert said not in summarise(far)[-1].sentence
    credit = "its parent batchnorm:prior=0, which does not learn, changes it by +0.20 alone"
    assert credit in summarise(far)[-1].sentence
    assert credit not in summarise(near)[-1].sentence
    (row,) = only(near, measure="learning_gain").to_dict("records")
    assert row["value"] == pytest.approx(0.01)
    ends = ((value, value - 0.03, value + 0.05) for value in (0.71, 0.7))
    assert (row["low"], row["high"], row["cells"]) == pytest.approx((*newcombe(*ends), 2))


@pytest.mark.long
def test_an_adapter_that_changes_nothing_does_not_win() -> None:
    table = complete(tidy(as_good("none", 0.5) + as_good("rdumb", 0.5) + as_good("tent", 0.4)))
    row = made(methods.section(table)).tables[0].frame.iloc[0]
    assert (row["winner"], row["clear"]) == ("none", "tie")
    assert summarise(table)[-1].sentence == (
        "No: rdumb, the best of 2 adapters, ties with the unadapted model, at 0.50 on the same 2 cells; tent (−0.10) "
        "does harm."
    )


def test_a_collapse_is_marked_where_it_begins(learning: pd.DataFrame) -> None:
    figure = made(time.section(learning)).figures[0]
    marked = figure.frame.dropna(subset="collapse")
    assert set(marked["adapter"]) == {"tent"}
    assert marked["collapse"].tolist() == ["below batchnorm:prior=0, for good", "below none, for good"]
    steps = only(learning, measure="collapse", adapter="tent").groupby("against")["step"].mean()
    assert marked["step"].tolist() == pytest.approx(steps[["batchnorm:prior=0", "none"]].tolist(), abs=2)
    assert figure.flags == "collapse"
    assert "A cross marks" in figure.caption


def test_without_a_collapse_nothing_is_marked(learning: pd.DataFrame) -> None:
    figure = made(time.section(learning[learning["adapter"] != "tent"])).figures[0]
    assert figure.flags is None
    assert "collapse" not in figure.frame


def test_clean_batches_in_between_are_a_line_of_their_own() -> None:
    rows = [
        accuracy("none", 0.5 + 0.4 * clean, "clean" if clean else "fog", step=step, interleaved=bool(clean))
        | {"measure": "accuracy_over_steps"}
        for step in range(8)
        for clean in [step % 2]
    ]
    frame = made(time.section(tidy(rows))).figures[0].frame
    lines = {name: set(part["shift"]) for name, part in frame.groupby("stream")}
    assert lines == {"s": {"fog"}, "s, the clean batches": {"clean"}}


def test_records_and_signs_are_drawn_under_names_that_speak(learning: pd.DataFrame) -> None:
    section = made(adaptation.section(learning))
    frame = section.figures[0].frame
    assert frame["shown"].drop_duplicates().tolist() == [
        "share of samples learnt from", "resets so far", "share of the largest class", "entropy of the mean prediction",
    ]  # fmt: skip
    resets = only(frame, shown="resets so far")
    assert set(resets["adapter"]) == {"rdumb"}
    assert resets["value"].max() == 2
    kept = only(learning, measure="kept")
    assert only(frame, shown="share of samples learnt from")["value"].mean() == pytest.approx(kept["value"].mean())
    own = only(frame, shown="share of the largest class", adapter="tent")["value"]
    assert own.iloc[-1] > 2 * own.iloc[0]


def test_collapses_are_counted_and_the_worst_come_first(learning: pd.DataFrame) -> None:
    section = made(adaptation.section(learning))
    listing = next(table for table in section.tables if table.title == "Collapse")
    assert listing.frame[["adapter", "against", "runs", "collapsed"]].head(2).to_numpy().tolist() == [
        ["tent", "batchnorm:prior=0", 2, 2], ["tent", "none", 2, 2],
    ]  # fmt: skip
    assert (listing.frame["collapsed"].iloc[2:] == 0).all()
    assert listing.caption.startswith("4 of 10 runs")


def test_the_summary_says_who_collapsed_and_who_did_not(learning: pd.DataFrame) -> None:
    sentence = summarise(learning)[-1].sentence
    assert sentence.startswith("Yes: rdumb, the best of 3 adapters")
    assert "; rdumb never collapsed in 2 runs; collapsed: tent in 2 of 2 runs." in sentence


def test_forgetting_is_averaged_over_parts_and_seeds() -> None:
    rows = [
        accuracy("tent", value, "clean", seed=seed, measure="forgetting", part=part)
        for (part, seed), value in {("fog 1", 0): 0.1, ("fog 1", 1): 0.2, ("fog 5", 0): 0.3, ("fog 5", 1): 0.4}.items()
    ]
    [listing] = made(adaptation.section(complete(tidy(rows)))).tables
    assert listing.frame["lost"].tolist() == pytest.approx([0.25])
    assert listing.frame["n"].tolist() == [200]


def test_bins_of_the_reliability_diagram_are_means_over_seeds(learning: pd.DataFrame) -> None:
    section = made(calibration.section(learning))
    line = only(section.figures[0].frame, adapter="rdumb")
    assert line["n"].sum() == pytest.approx(7680, abs=len(line))  # each is rounded
    assert line["confidence"].is_monotonic_increasing
    both = [learning_outputs("rdumb", seed) for seed in (0, 1)]
    right = sum(int(outputs.correct().sum()) for outputs in both)
    assert (line["n"] * line["accuracy"]).sum() == pytest.approx(right / 2, rel=1e-3)
    assert section.figures[0].diagonal
    scores = only(section.tables[0].frame, adapter="rdumb").iloc[0]
    errors = [row["value"] for outputs in both for row in expected_calibration_error(outputs)]
    assert scores["expected_calibration_error"] == pytest.approx(np.mean(errors))


def test_classes_that_take_over_are_seen(learning: pd.DataFrame) -> None:
    frame = made(classes.section(learning)).figures[0].frame
    cell = only(frame, adapter="tent", **{"class": "3"}).iloc[0]
    expected = only(learning, measure="class_attraction", adapter="tent", **{"class": 3})["value"].mean()
    assert cell["difference"] == pytest.approx(expected)
    assert cell["difference"] > 0.1
    assert cell["difference"] == pytest.approx(cell["predicted"] - cell["actual"])
    assert only(frame, adapter="none")["difference"].abs().max() < 0.05


def test_only_classes_with_large_differences_are_shown_of_many() -> None:
    rows = [
        accuracy("none", 0.01 * label, f"shift {label % 3}", measure="class_attraction")
        | {"class": label, "predicted": 0.01 * label, "actual": 0.0}
        for label in range(40)
    ]
    frame = made(classes.section(tidy(rows))).figures[0].frame
    assert frame["class"].astype(int).drop_duplicates().tolist() == list(range(20, 40))


def test_families_stand_beside_each_other() -> None:
    rows = [
        accuracy("none", value, family, measure="family_error", severity=None)
        for family, value in {"noise": 0.3, "blur": 0.5}.items()
    ]
    rows.append(accuracy("none", 0.4, "", measure="mean_error", severity=None))
    listing = next(table for table in made(results.section(tidy(rows))).tables if table.title == "Mean error by family")
    assert listing.frame.to_dict("records") == [
        {"model": "net", "stream": "s", "adapter": "none", "noise": 0.3, "blur": 0.5, "all": 0.4}
    ]


def test_bins_and_classes_are_not_listed_again(learning: pd.DataFrame) -> None:
    listing = made(results.section(learning)).tables[-1]
    assert not set(listing.frame["measure"]) & {"reliability", "class_attraction", "collapse", "kept"}
    assert not {"confidence", "class", "parent"} & set(listing.frame)
    assert {"expected_calibration_error", "adaptation_gain"} <= set(listing.frame["measure"])
