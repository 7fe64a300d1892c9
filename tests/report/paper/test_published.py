"""Published results stand beside those of a study only where the protocol fits, and are never taken for its own."""

import numpy as np
import pytest

from haptera import catalog
from haptera.measures import shift_margin, shift_mean
from haptera.report.paper.published import MEASURE, misfit, published_results, published_rows
from haptera.report.paper.table import Choice, paper_tables
from haptera.run.report import StudyReport
from haptera.table import join, tidy

USUAL = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
SOURCE = [72.3, 65.7, 72.9, 46.9, 54.3, 34.8, 42.0, 25.1, 41.3, 26.0, 9.3, 46.7, 26.6, 58.5, 30.3]


def study(model="WRN-28-10", stream="mine", offset=0.0, n=10_000):
    """CIFAR-10-C at severity 5: unadapted as RobustBench has it, and an adapter that halves every error."""
    return [
        {"model": model, "stream": stream, "adapter": adapter, "shift": shift, "severity": 5.0, "seed": 0, "n": n}
        | {"measure": "error", "value": factor * error / 100 + offset}
        for adapter, factor in (("none", 1.0), ("tent", 0.5))
        for shift, error in zip(USUAL, SOURCE, strict=True)
    ]


def protocol(**about):
    row = {"stream": "mine", "kind": "continual", "data": "CIFAR-10-C", "batch size": 200, "shifts": ", ".join(USUAL)}
    return {"streams": [row | about], "adapters": []}


def table_with(rows, about):
    table = tidy(rows)
    table = join(table, shift_mean(table) + shift_margin(table))
    return join(table, published_rows(table, about))


def shown(rows, about, of="error"):
    [made] = paper_tables(table_with(rows, about), Choice(of))
    return made, {(row.source.split(",")[0], row.name): row for row in made.rows if row.source}


def test_results_of_the_same_protocol_are_shown_under_their_own_names_and_not_ranked():
    made, printed = shown(study(), protocol())
    assert {source for source, _ in printed} == {"RobustBench", "Döbler"}
    roid = printed["Döbler", "ROID"]
    assert roid.cells[-1].value == pytest.approx(0.162)
    assert all(cell is None for cell in roid.cells[:-1])
    standard = printed["RobustBench", "Standard"]
    assert [cell.value for cell in standard.cells[:-1]] == pytest.approx(np.array(SOURCE) / 100)
    assert all(cell.rank == 0 for row in printed.values() for cell in row.cells if cell)
    names = [row.name for row in made.rows]
    assert names[:5] == ["none", "tent", "Standard", "Source", "BN-1"]  # what was measured, then source by source
    assert made.rows[1].cells[-1].rank == 1  # 0.22, although ROID has 0.162
    assert "published results and are not ranked" in made.caption


def test_a_published_error_is_an_accuracy_where_accuracies_are_printed():
    rows = study()
    rows += [row | {"measure": "accuracy", "value": 1 - row["value"]} for row in rows]
    _, printed = shown(rows, protocol(), "accuracy")
    assert printed["Döbler", "ROID"].cells[-1].value == pytest.approx(0.838)


@pytest.mark.parametrize(
    ("rows", "about", "why"),
    [
        (study(model="net"), {}, "the network is WRN-28-10, not net"),
        (study(), {"kind": "gradual"}, "the stream is continual, not gradual"),
        (study(), {"shifts": ", ".join(reversed(USUAL))}, "the 15 test corruptions in the usual order"),
        (study(), {"batch size": 64}, "batch size 200, not 64"),
        (study(n=1000), {}, "images of each 10,000, not 1,000"),
        ([row | {"severity": 3.0} for row in study()], {}, "severity 5, not 3"),
        (study(offset=0.02), {}, "the unadapted error is 43.5 %, not 45.5 %, so network or images are others"),
        ([row for row in study() if row["shift"] != "fog"], {"shifts": ", ".join(USUAL[:9])}, "15 test corruptions"),
    ],
)
def test_a_protocol_that_does_not_fit_is_not_shown_and_says_why(rows, about, why):
    made, printed = shown(rows, protocol(**about))
    assert "Döbler" not in {source for source, _ in printed}
    [note] = made.notes
    assert why in note
    assert "not shown because the protocol differs" in note


def test_other_data_says_which_data_there_are():
    made, printed = shown(study(), protocol(data="digits"))
    assert printed == {}
    assert made.notes == (
        "Published results are not shown: they are about CIFAR-10-C, CIFAR-100-C and ImageNet-C, and the data here is "
        "digits.",
    )


def test_names_differ_in_case_and_punctuation_alone():
    _, printed = shown(study(model="wideresnet_28_10"), protocol(data="cifar10_c"))
    assert ("Döbler", "CoTTA") in printed


def test_published_rows_are_not_taken_for_results():
    report = StudyReport(study(), settings={"protocol": protocol()})
    table = report.table()
    own = table[table["measure"] == MEASURE]
    assert own["value"].notna().any()
    assert own["seed"].isna().all()
    assert set(table.loc[table["measure"] != MEASURE, "adapter"].replace("", "none")) == {"none", "tent"}
    assert MEASURE not in catalog.entries("measures")


def test_every_published_result_has_a_source_and_a_protocol_that_adds_up():
    for result in published_results():
        assert {"source", "data", "network", "also", "stream", "severities", "rows"} <= set(result)
        assert set(result["stream"]) <= set(catalog.entries("streams"))
        names = [row["name"] for row in result["rows"]]
        assert len(set(names)) == len(names)
        assert result.get("unadapted", names[0]) in names
        for row in result["rows"]:
            assert len(row.get("errors", USUAL)) == len(USUAL)
            if {"errors", "mean"} <= set(row):  # as printed, to the last digit
                assert np.mean(row["errors"]) == pytest.approx(row["mean"], abs=0.06)


def test_what_is_not_known_about_a_study_does_not_fit():
    facts = {"network": "WRN-28-10", "stream": None, "shifts": USUAL, "severities": [5.0], "images": None}
    told = misfit(published_results()[1], facts | {"batch_size": None, "unadapted": None})
    assert told == [
        "the stream is continual, not known here",
        "images of each 10,000, not known here",
        "batch size 200, not known here",
    ]
