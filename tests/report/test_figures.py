"""The frames behind the figures and tables of each section."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.report.figure import Figure
from haptera.report.study import cost, heatmap, results, severity, time
from haptera.table import tidy

Make = Callable[..., pd.DataFrame]


def only(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def value_of(table: pd.DataFrame, **where: object) -> float:
    (value,) = only(table, measure="accuracy", **where)["value"]
    return float(value)


def test_a_figure_names_the_column_it_misses() -> None:
    with pytest.raises(HapteraError, match=r"unknown column in figure 'Try' 'acuracy'; did you mean 'accuracy'"):
        Figure("Try", "", pd.DataFrame({"step": [1], "accuracy": [0.5]}), "line", x="step", y="acuracy")


def test_severity_has_clean_at_zero_and_the_mean_over_shifts(study: pd.DataFrame) -> None:
    section = severity.section(study)
    assert section is not None
    (figure,) = section.figures
    line = only(figure.frame, stream="corruptions", shift="contrast", model="resnet-18", adapter="none")
    where = {"model": "resnet-18", "adapter": "none"}
    expected = [value_of(study, shift="clean", **where)]
    expected += [value_of(study, stream="corruptions", shift="contrast", severity=k, **where) for k in range(1, 6)]
    assert line["severity"].tolist() == [0, 1, 2, 3, 4, 5]
    assert line["accuracy"].tolist() == pytest.approx(expected)
    mean = only(figure.frame, stream="corruptions", shift=severity.MEAN, severity=3, **where)
    three = only(study, measure="accuracy", stream="corruptions", severity=3, **where)
    assert mean["accuracy"].item() == pytest.approx(three["value"].mean())
    assert mean["low"].item() == pytest.approx(three["low"].mean())
    assert mean["n"].item() == 3000
    assert figure.frame["shift"].iloc[0] == severity.MEAN
    assert figure.frame["stream"].iloc[0] == "corruptions"


def test_severity_starts_with_the_best_and_the_worst(study: pd.DataFrame) -> None:
    section = severity.section(study)
    assert section is not None
    (figure,) = section.figures
    means = only(study, measure="accuracy", stream="corruptions", adapter="none").groupby("model")["value"].mean()
    ranked = means.sort_values(ascending=False).index.tolist()
    assert figure.start["model"] == ranked[:3] + ranked[-2:]
    assert figure.frame["model"].drop_duplicates().tolist() == ranked


@pytest.mark.long
def test_seeds_are_averaged_and_their_images_counted_once(make: Make) -> None:
    table = make(models=("resnet-18",), seeds=(0, 1))
    section = severity.section(table)
    assert section is not None
    point = only(section.figures[0].frame, stream="corruptions", shift="contrast", adapter="none", severity=5)
    both = only(table, measure="accuracy", stream="corruptions", shift="contrast", adapter="none", severity=5)
    assert len(both) == 2
    assert point["accuracy"].item() == pytest.approx(both["value"].mean())
    assert point["high"].item() >= both["high"].mean()
    assert point["n"].item() == 1000


def test_heatmap_differences_are_of_the_same_cells(study: pd.DataFrame) -> None:
    section = heatmap.section(study)
    assert section is not None
    frame = section.figures[0].frame
    where = {"stream": "continual", "model": "vit-small"}
    cell = only(frame, adapter="batchnorm:prior=16", severity="4", shift="contrast", **where)
    values = [
        value_of(study, adapter=name, severity=4, shift="contrast", **where) for name in ("batchnorm:prior=16", "none")
    ]
    assert cell["change"].item() == pytest.approx(values[0] - values[1])
    overall = only(frame, adapter="none", severity="mean over severities", shift="mean over shifts", **where)
    assert overall["accuracy"].item() == pytest.approx(
        only(study, measure="accuracy", adapter="none", **where)["value"].mean()
    )
    assert only(frame, adapter="none")["change"].isna().all()
    assert frame["shift"].drop_duplicates().tolist() == [
        "clean", "contrast", "gaussian_noise", "motion_blur", "mean over shifts",
    ]  # fmt: skip


def test_heatmap_without_adapters_has_no_difference(study: pd.DataFrame) -> None:
    section = heatmap.section(only(study, adapter="none"))
    assert section is not None
    assert section.figures[0].value == ("accuracy",)
    assert "change" not in section.figures[0].frame


def test_over_time_shows_every_window(study: pd.DataFrame) -> None:
    section = time.section(study)
    assert section is not None
    (figure,) = section.figures
    rows = only(study, measure="accuracy_over_steps")
    assert len(figure.frame) == len(rows)
    line = only(figure.frame, model="vit-small", adapter="none")
    expected = only(rows, model="vit-small", adapter="none").sort_values("step")
    assert line["step"].tolist() == expected["step"].tolist()
    assert line["accuracy"].tolist() == pytest.approx(expected["value"].tolist())
    assert line["shift"].tolist() == expected["shift"].tolist()


def test_a_stream_that_resets_is_shown_part_by_part() -> None:
    rows = [
        {"model": "a", "stream": stream, "adapter": "none", "shift": shift, "severity": level, "step": step, "seed": 0}
        | {"measure": "accuracy_over_steps", "value": 0.1 * level + 0.01 * step, "n": 10}
        for stream, steps in (("corruptions", {}), ("walk", {"fog": 0, "noise": 4}))
        for shift in ("fog", "noise")
        for level in (1, 2)
        for step in (steps.get(shift, 0) + 2 * bool(steps) * (level - 1) + k for k in range(2))
    ]
    section = time.section(tidy(rows))
    assert section is not None
    frame = section.figures[0].frame
    assert frame["stream"].drop_duplicates().tolist() == [
        "walk", "corruptions: fog 1", "corruptions: fog 2", "corruptions: noise 1", "corruptions: noise 2",
    ]  # fmt: skip
    assert only(frame, stream="corruptions: noise 2")["accuracy"].tolist() == pytest.approx([0.2, 0.21])
    assert only(frame, stream="walk")["step"].tolist() == list(range(8))


def test_cost_compares_with_the_same_model_unadapted(study: pd.DataFrame) -> None:
    section = cost.section(study)
    assert section is not None
    frame = section.tables[0].frame
    assert only(frame, adapter="batchnorm:prior=16")["relative"].tolist() == pytest.approx([1.3] * 12)
    assert only(frame, adapter="none")["relative"].tolist() == [1.0] * 12
    rows = only(study, measure="relative_seconds")
    assert sorted(rows["value"]) == pytest.approx(sorted(only(frame, adapter="batchnorm:prior=16")["relative"]))
    seconds = only(study, measure="seconds_per_image", model="vgg-16-bn", adapter="none")["value"].item()
    assert only(frame, model="vgg-16-bn", adapter="none")["milliseconds"].item() == pytest.approx(1000 * seconds)


def test_results_have_the_worst_shift_and_what_was_lost(study: pd.DataFrame) -> None:
    section = results.section(study)
    assert section is not None
    overview, values = (listing.frame for listing in section.tables)
    where = {"stream": "corruptions", "model": "resnet-50", "adapter": "none"}
    row = only(overview, **where).iloc[0]
    by_shift = only(study, measure="accuracy", **where).groupby("shift")["value"].mean()
    assert row["worst"] == by_shift.idxmin()
    assert row["worst_accuracy"] == pytest.approx(by_shift.min())
    assert row["accuracy"] == pytest.approx(by_shift.mean())
    assert row["lost"] == pytest.approx(row["clean"] - row["accuracy"])
    assert overview["accuracy"].is_monotonic_decreasing
    assert len(values) == study["step"].isna().sum()


def test_a_figure_too_large_for_a_page_keeps_whole_streams(
    monkeypatch: pytest.MonkeyPatch, study: pd.DataFrame
) -> None:
    monkeypatch.setattr(severity, "MOST_ROWS", 600)
    section = severity.section(study)
    assert section is not None
    assert section.figures[0].frame["stream"].unique().tolist() == ["corruptions"]
    assert section.figures[0].caption.endswith("This page has 1 of 2 streams; the table file has all.")
    assert np.isfinite(section.figures[0].frame["accuracy"]).all()
