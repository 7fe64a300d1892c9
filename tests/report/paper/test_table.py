"""The paper's table says what the rows of the table say: who is best, by how much, and what is not there."""

import re

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.report.paper.table import Choice, paper_tables
from haptera.table import tidy

SHIFTS = ("gaussian_noise", "shot_noise", "fog", "contrast")


def cell(adapter, shift, value, seed=0, measure="error", **names):
    row = {"model": "net", "stream": "continual", "adapter": adapter, "shift": shift, "severity": 5.0}
    ends = {"low": value - 0.02, "high": value + 0.02}
    return row | {"measure": measure, "value": value, "n": 100, "seed": seed} | ends | names


def rows(errors, **names):
    """Rows of `{adapter: [error under each shift]}`; every further seed is a point worse."""
    return [
        cell(adapter, shift, value + 0.01 * seed, seed, **names)
        for adapter, values in errors.items()
        for shift, value in zip(SHIFTS, values, strict=False)
        for seed in (0, 1, 2)
    ]


ERRORS = {"none": [0.8, 0.7, 0.5, 0.6], "eta": [0.41, 0.42, 0.4, 0.3], "tent": [0.5, 0.4, 0.4, 0.35]}


def only(table, choice=None, order=()):
    [made] = paper_tables(tidy(table), choice, order)
    return made


def test_columns_come_in_the_usual_order_and_rows_in_that_of_the_study():
    made = only(reversed(rows(ERRORS)), order=["tent", "none", "eta"])
    assert made.shifts == SHIFTS
    assert [row.name for row in made.rows] == ["tent", "none", "eta"]
    assert [row.name for row in only(rows(ERRORS)).rows] == ["none", "eta", "tent"]


def test_numbers_are_means_over_seeds_with_their_standard_deviation():
    made = only(rows(ERRORS))
    for row in made.rows:
        values = [each.value for each in row.cells]
        assert values == pytest.approx(
            [*(value + 0.01 for value in ERRORS[row.name]), np.mean(ERRORS[row.name]) + 0.01]
        )
        assert [each.sd for each in row.cells] == pytest.approx([0.01] * 5)
    assert made.seeds == 3


@pytest.mark.long
def test_the_best_and_the_second_of_every_column_are_marked_and_what_prints_alike_ranks_alike():
    ranks = {row.name: [each.rank for each in row.cells] for row in only(rows(ERRORS)).rows}
    assert ranks == {"none": [0, 0, 2, 0, 0], "eta": [1, 2, 1, 1, 1], "tent": [2, 1, 1, 2, 2]}
    near = rows({"eta": [0.4], "tent": [0.4004], "rpl": [0.41]})
    assert [row.cells[0].rank for row in only(near).rows] == [1, 2, 1]  # by name: eta, rpl, tent
    assert [row.cells[0].rank for row in only(near, Choice(digits=2)).rows] == [1, 0, 2]


def test_more_is_better_for_accuracies():
    made = only(rows(ERRORS, measure="accuracy"), Choice("accuracy"))
    assert {row.name: row.cells[-1].rank for row in made.rows} == {"none": 1, "eta": 0, "tent": 2}


def test_the_margin_says_who_is_ahead_by_how_much_and_with_which_interval():
    margins = np.array([1.0, 2.0, 4.5])  # points, seed by seed
    table = [cell("eta", "fog", 0.3, seed) for seed in range(3)]
    table += [cell("tent", "fog", 0.3 + margin / 100, seed) for seed, margin in enumerate(margins)]
    half = 4.302653 * margins.std(ddof=1) / 3**0.5
    low, high = (f"{end:.2f}".replace("-", "−") for end in (margins.mean() - half, margins.mean() + half))
    said = only(table).margin
    assert said == f"eta is 2.50 points below tent on average (95 % interval {low} to {high}, paired over 3 seeds)."


def test_the_margin_is_that_of_the_adapters_shown():
    everyone = rows(ERRORS | {"zeal": [0.1] * 4})
    assert only(everyone).margin.startswith("zeal is")
    made = only(everyone, Choice(adapters=["tent", "none", "eta"]))
    assert made.margin.startswith("eta is 3.00 points below tent")
    assert [row.name for row in made.rows] == ["tent", "none", "eta"]


def test_an_adapter_without_some_shift_has_a_gap_and_no_mean():
    made = only(rows(ERRORS | {"memo": [0.1, 0.1]}))
    [memo] = [row for row in made.rows if row.name == "memo"]
    assert [each is None for each in memo.cells] == [False, False, True, True, True]
    assert made.margin.startswith("eta is")


def test_hold_out_shifts_are_columns_where_there_are_no_others():
    held = [cell("none", "spatter", 0.5), cell("none", "speckle_noise", 0.4)]
    assert only(held).shifts == ("speckle_noise", "spatter")
    assert only([*held, cell("none", "fog", 0.3)]).shifts == ("fog",)


def test_every_stream_and_model_has_a_table_of_its_own():
    table = [*rows(ERRORS), *rows(ERRORS, model="vit"), *rows(ERRORS, stream="mixed")]
    made = paper_tables(tidy(table))
    assert [(each.stream, each.model) for each in made] == [
        ("continual", "net"),
        ("continual", "vit"),
        ("mixed", "net"),
    ]
    [one] = paper_tables(tidy(table), Choice(models=["vit"]))
    assert one.title == "Error in % of vit in the stream continual at severity 5"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(streams=["continal"]), "unknown stream 'continal'; did you mean 'continual'"),
        (Choice(models=["nett"]), "unknown model 'nett'; did you mean 'net'"),
        (Choice(adapters=["tnt"]), "unknown adapter 'tnt'; did you mean 'tent'"),
        (Choice("eror"), "unknown measure 'eror'; did you mean 'error'"),
        (Choice("brier_score"), "no adapter has brier_score under a shift"),
    ],
)
def test_what_is_not_there_is_refused_by_name(choice, message):
    with pytest.raises(HapteraError, match=re.escape(message)):
        paper_tables(tidy(rows(ERRORS)), choice)


def test_a_held_out_shift_is_no_column_and_no_part_of_the_mean_and_that_is_said():
    blurred = [cell(name, "gaussian_blur", 0.1, seed) for name in ERRORS for seed in (0, 1, 2)]
    made = only(rows(ERRORS) + blurred)
    assert made.shifts == SHIFTS
    assert [row.cells[-1].value for row in made.rows] == pytest.approx([0.66, 0.3925, 0.4225])
    [note] = made.notes
    assert note.startswith("gaussian_blur is a held-out shift")
    assert only(rows(ERRORS)).notes == ()
    assert only(blurred).shifts == ("gaussian_blur",)
    assert only(blurred).notes == ()
