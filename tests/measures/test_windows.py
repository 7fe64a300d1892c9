"""Windows along a stream, and what adapters report in them."""

import numpy as np
import pytest

from haptera.measures import accuracy_over_steps, records
from haptera.measures.windows import windows
from haptera.outputs import Outputs


def outputs(n, batch, shifts, **steps):
    return Outputs(
        {"labels": np.zeros(n, np.int64)},
        np.arange(n),
        np.arange(n) % 2,
        step=(np.arange(n) // batch).astype(np.int32),
        context={"shift": np.asarray(shifts), "severity": np.full(n, 3.0)},
        steps={key: np.asarray(values, float) for key, values in steps.items()},
    )


def test_where_batches_mix_shifts_windows_do_too_and_name_what_is_common():
    generator = np.random.default_rng(0)
    given = outputs(5000, 10, generator.choice(list("abcdefgh"), 5000))
    rows = accuracy_over_steps(given)
    assert len(rows) == 100
    assert [row["step"] for row in rows] == list(range(4, 500, 5))
    assert all("shift" not in row and row["severity"] == 3.0 for row in rows)
    assert sum(row["n"] for row in rows) == 5000
    assert rows[0]["value"] == 0.5


def test_a_batch_at_the_border_of_two_shifts_is_cut_there():
    given = outputs(40, 10, ["a"] * 25 + ["b"] * 15)
    rows = accuracy_over_steps(given)
    assert [(row["shift"], row["step"], row["n"]) for row in rows] == [
        ("a", 0, 10), ("a", 1, 10), ("a", 2, 5), ("b", 2, 5), ("b", 3, 10),
    ]  # fmt: skip


def test_windows_that_ignore_shifts_are_at_most_a_hundred():
    given = outputs(1230, 1, np.tile(["a", "b", "c"], 410))
    assert len(windows(given)) == 1230
    plain = windows(given, by_context=False)
    assert len(plain) == 95  # of 13 batches each
    assert np.bincount(plain.sample).tolist() == [13] * 94 + [8]
    assert plain.last.tolist() == [*range(12, 1222, 13), 1229]


def test_records_are_averaged_skipped_steps_counted_and_resets_as_many_as_there_were():
    steps = np.arange(300)
    loss = np.where(steps % 3 == 2, np.nan, steps)
    skipped = np.where(steps % 50 == 49, 1.0, np.nan)
    rows = records(outputs(600, 2, ["a"] * 600, loss=loss, resets=steps // 100, skipped=skipped, seconds=steps))
    assert {row["measure"] for row in rows} == {"loss", "resets", "skipped"}
    by_name = {name: [row for row in rows if row["measure"] == name] for name in ("loss", "resets", "skipped")}
    assert [row["step"] for row in by_name["loss"]] == list(range(2, 300, 3))
    assert [row["value"] for row in by_name["loss"]] == [3 * k + 0.5 for k in range(100)]
    assert {row["n"] for row in by_name["loss"]} == {2}
    assert [row["value"] for row in by_name["resets"]] == [(3 * k + 2) // 100 for k in range(100)]
    assert [row["step"] for row in by_name["skipped"]] == [50, 101, 149, 200, 251, 299]
    assert {row["value"] for row in by_name["skipped"]} == {1}


def test_a_window_without_a_record_has_no_row():
    rows = records(outputs(4, 1, ["a"] * 4, change=[np.nan, 1.0, np.inf, 2.0]))
    assert [(row["step"], row["value"]) for row in rows] == [(1, 1.0), (3, 2.0)]
    assert records(outputs(4, 1, ["a"] * 4, seconds=[1, 1, 1, 1])) == []


def test_a_record_cannot_pass_for_a_measure():
    rows = records(outputs(4, 1, ["a"] * 4, accuracy=[1, 1, 1, 1], kept=[1, 1, 1, 0]))
    assert {row["measure"] for row in rows} == {"kept"}
    assert rows[-1]["value"] == pytest.approx(0)
