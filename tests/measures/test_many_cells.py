"""Cells that are measured together have the rows, to the last digit, that they have one after the other."""

from collections.abc import Sequence
from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest

from haptera import catalog
from haptera.errors import HapteraError
from haptera.measures import accuracy, many_cells, stacks
from haptera.measures.facts import fact, required_settings
from haptera.measures.many_cells import CellRows
from haptera.measures.stacks import FEWEST, form_of, layout_of
from haptera.outputs import Outputs
from haptera.table import measure_outputs, tidy
from haptera.testing.measures import example_outputs, example_poses, example_stability

MEASURES = [catalog.find("measures", name) for name in catalog.entries("measures")]
MEASURES = [each for each in MEASURES if fact(each, "of") == "outputs" and not required_settings(each)]
SHAPES = [(1, 1), (1, 10), (8, 10), (29, 3), (30, 3), (31, 12), (600, 4), (40, 700)]
SHIFTS = ["clean", "fog", "gaussian_noise"]


def cell(number: int, samples: int = 8, width: int = 10, batch: int = 0, **changes) -> Outputs:
    """Return a plain cell whose numbers are its own."""
    generator = np.random.default_rng([number, samples, width])
    step = np.arange(samples) // (batch or samples)
    steps = {"seconds": generator.uniform(0.1, 0.2, step[-1] + 1), "peak_bytes": np.full(step[-1] + 1, 1e8 + number)}
    content = {
        "arrays": {"logits": generator.normal(scale=2, size=(samples, width)).astype(np.float32)},
        "ids": np.arange(samples),
        "targets": generator.integers(0, width, samples),
        "step": step,
        "context": {
            "shift": np.full(samples, SHIFTS[number % 3]),
            "severity": np.full(samples, float(number % 3)),
        },
        "steps": steps,
        "provenance": {"model": f"net {number % 4}", "stream": "s", "adapter": "tent", "seed": number % 5},
    }
    return Outputs(**content | changes)


def several(count: int = FEWEST + 3, **settings) -> list[Outputs]:
    return [cell(number, **settings) for number in range(count)]


def demand_same(cells: Sequence[Outputs], measures=MEASURES) -> pd.DataFrame:
    """Compare with the obvious way, and return the table."""
    rows = CellRows(measures)
    for each in cells:
        rows.add(rows.measure(each))
    table = rows.table()
    slow = tidy([row for each in cells for row in measure_outputs(each, measures)])
    pd.testing.assert_frame_equal(table, slow, check_exact=True, check_like=True)
    return table


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cells_of_any_shape(shape):
    table = demand_same(several(samples=shape[0], width=shape[1]))
    assert len(table) >= 10 * (FEWEST + 3)


@pytest.mark.parametrize("batch", [1, 7, 100, 299])
def test_windows_of_several_steps(batch):
    table = demand_same(several(samples=600, width=4, batch=batch))
    assert table["step"].nunique() > 1


def test_steps_out_of_order():
    order = np.random.default_rng(0).permutation(600)
    demand_same(several(samples=600, width=4, step=(np.arange(600) // 8)[order], steps={}))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_logits_of_any_kind_and_size(kind):
    cells = several()
    for number, each in enumerate(cells):
        each.arrays["logits"] = (each.logits * 10.0 ** (number % 5)).astype(kind)
    demand_same(cells)


def test_ties_and_sure_answers():
    cells = several(samples=40)
    for number, each in enumerate(cells):
        each.arrays["logits"] = np.round(each.logits * number) * 100
    demand_same(cells)


@pytest.mark.parametrize(
    "changes",
    [
        {"targets": None},
        {"step": None},
        {"steps": {}},
        {"steps": {"seconds": np.array([0.1]), "peak_bytes": np.array([np.nan]), "loss": np.array([2.0])}},
        {"steps": {"seconds": np.array([1], np.int32), "kept": np.array([0.0]), "resets": np.array([1])}},
        {"context": {}},
        {"context": {"shift": np.full(8, "fog"), "class": np.full(8, 3), "confidence": np.full(8, 0.5)}},
        {"context": {"shift": np.full(8, "fog"), "n": np.full(8, 2), "step": np.full(8, 7)}},
        {"context": {"shift": np.repeat(["fog", "snow"], 4), "sample": np.arange(8)}},
        {"context": {"shift": np.full(8, "fog"), "expected": np.full(8, 0.4), "difficulty": np.full(8, 0.4)}},
        {"context": {"epoch": np.repeat([1, 2], 4)}, "step": np.arange(8) // 2, "steps": {"seconds": np.ones(4)}},
        {"classes": np.array([f"class {number}" for number in range(10)])},
        {"accepted": np.eye(10, dtype=bool) | np.eye(10, k=1, dtype=bool)},
        {"columns": np.arange(10) * 3 + 2, "accepted": np.eye(10, dtype=bool)},
        {"arrays": {"labels": np.arange(8)}},
        {"arrays": {"top_indices": np.argsort(np.random.default_rng(0).random((8, 10)))[:, :5]}},
        {"provenance": {"seed": None}},
        {"provenance": {"model": "net", "part": "fog 3", "parent": "batchnorm", "seed": None}},
    ],
    ids=str,
)
def test_cells_that_lack_something_or_have_more(changes):
    demand_same(several(**changes))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_cells_with_logits_that_are_not_finite(value):
    cells = several(2 * FEWEST)
    for each in cells[::3]:
        each.logits[1, 2] = value
    cells[-1].logits[:] = value
    demand_same(cells)


def test_only_some_cells_have_a_record_or_a_part():
    cells = several(2 * FEWEST)
    for number, each in enumerate(cells):
        each.steps["peak_bytes"][:] = np.nan if number % 3 else 1.0
        each.provenance |= {"part": f"part {number}"} if number % 2 else {"imported": "file.npz"}
    demand_same(cells)


def test_layouts_that_take_turns_keep_the_order_of_the_cells():
    one = {"provenance": {"model": "net", "seed": None}, "context": {}}
    shapes = [{"samples": 8}, {"samples": 9}, {"samples": 9, "targets": None}, {"samples": 8, "width": 3}]
    demand_same([cell(number, **shapes[number % 7 % 4], **one) for number in range(60)])


def test_cells_of_every_sort_together():
    examples = [example_outputs(), example_outputs(labelled=False), example_outputs(mapped=True), example_stability()]
    for each in examples:
        each.provenance = {"model": "another", "seed": 0}
    demand_same([*several(), *examples, *several(samples=12), *examples[::-1]])


def test_poses_among_others():
    poses = [example_poses(), example_poses(labelled=False)]
    for each in poses:
        each.provenance |= {"seed": None}
    demand_same([*several(), *poses, *several()], [each for each in MEASURES if fact(each, "reads") == "keypoints"])


def test_what_waits_is_measured_when_it_has_grown_large(monkeypatch):
    monkeypatch.setattr(many_cells, "MOST", 10 * 80)
    monkeypatch.setattr(many_cells, "WAITING", 25 * 80)
    demand_same([cell(number, samples=(8, 8, 9, 10)[number % 4]) for number in range(100)])


def test_no_cells_make_an_empty_table():
    demand_same([])
    demand_same(several(), [])


def test_one_measure_alone():
    for each in MEASURES:
        demand_same(several(), [each])
    assert len(demand_same(several(), [accuracy, accuracy])) == 2 * (FEWEST + 3)


def test_a_measure_with_settings_or_around_another_is_taken_alone():
    @wraps(accuracy)
    def half(outputs):
        return [row | {"value": row["value"] / 2} for row in accuracy(outputs)]

    assert form_of(accuracy)
    assert not form_of(half)
    assert not form_of(partial(accuracy))
    demand_same(several(), [half, accuracy])


def test_forms_have_the_columns_that_no_context_of_a_stack_has():
    stacked = stacks.stack(several(classes=np.array(list("abcdefghij"))))
    columns = {name for each in MEASURES if (form := form_of(each)) for name in form(stacked)}
    assert columns - {"cell"} == stacks.COLUMNS


def test_small_plain_cells_are_stacked_and_large_ones_are_not():
    assert layout_of(cell(0)) == layout_of(cell(1))
    assert layout_of(cell(0)) != layout_of(cell(0, samples=9))
    assert layout_of(cell(0, samples=stacks.MOST // FEWEST // 10 + 1)) is None


def picky(outputs):
    """A measure that one sort of cell does not agree with."""
    if (outputs.logits > 90).any():
        raise HapteraError("a logit is above 90")
    return [outputs.groups[0][0] | {"measure": "picky", "value": float(outputs.logits.max()), "n": len(outputs)}]


def picky_together(stacked):
    if (stacked.flat.logits > 90).any():
        raise ValueError("of one of the cells, and who knows which")
    best = stacked.flat.logits.reshape(stacked.cells, -1).max(1).astype(float)
    return {"cell": stacked.every, "measure": "picky", "value": best, "n": stacked.samples}


def test_a_cell_that_fails_in_a_stack_is_the_only_one_that_fails(monkeypatch):
    monkeypatch.setitem(stacks._FORMS, picky, picky_together)
    cells, measures = several(20), [*MEASURES, picky]
    demand_same(cells, measures)
    cells[13].logits[2, 3] = 99
    with pytest.raises(HapteraError, match="above 90"):
        measure_outputs(cells[13], measures)
    rows = CellRows(measures)
    for each in cells:
        rows.add(rows.measure(each))
    assert {place: str(error) for place, error in rows.failures().items()} == {13: "a logit is above 90"}
    slow = tidy([row for each in cells[:13] + cells[14:] for row in measure_outputs(each, measures)])
    pd.testing.assert_frame_equal(rows.table(), slow, check_exact=True, check_like=True)


def test_a_form_that_fails_on_cells_that_are_fine_costs_nothing_but_time(monkeypatch):
    def broken(stacked):
        raise ZeroDivisionError

    monkeypatch.setitem(stacks._FORMS, accuracy, broken)
    demand_same(several(20))
