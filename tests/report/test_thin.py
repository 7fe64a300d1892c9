"""Thinning bounds the points and moves no mean."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.report.thin import MOST_PER_LINE, blocks, bounded, over_steps

LINE = ["stream", "model", "adapter"]


def windows(lengths: list[int], seeds: int = 1) -> pd.DataFrame:
    random = np.random.default_rng(3)
    images = random.integers(1, 99, (len(lengths), max(lengths)))  # the same for every seed
    rows = [
        {"stream": f"stream {line}", "model": "m", "adapter": "none", "step": 10 * place + 9, "severity": 1.0}
        | {
            "shift": "fog" if place < length / 3 else "noise",
            "value": random.random(),
            "n": int(images[line, place]),
            "seed": seed,
        }
        for line, length in enumerate(lengths)
        for place in range(length)
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows).sample(frac=1, random_state=0)
    return frame.assign(low=frame["value"] - 0.1, high=frame["value"] + 0.1)


def weighted(frame: pd.DataFrame, column: str) -> pd.Series:
    total = (frame[column] * frame["n"]).groupby(frame["stream"]).sum()
    return total / frame.groupby("stream")["n"].sum()


@given(st.lists(st.integers(1, 120), min_size=1, max_size=4), st.integers(1, 3), st.integers(20, 300))
@settings(max_examples=25, deadline=None)
def test_weighted_means_are_kept_and_images_counted_once(lengths: list[int], seeds: int, most: int) -> None:
    rows = windows(lengths, seeds)
    points, _ = over_steps(rows, LINE, most)
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(weighted(points, column).astype(float), weighted(rows, column))
    assert points["n"].sum() == rows.loc[rows["seed"] == 0, "n"].sum()
    assert len(points) <= max(most, 10 * len(lengths))
    assert points.groupby("stream")["step"].max().equals(rows.groupby("stream")["step"].max())


def test_few_windows_stay_as_they_are() -> None:
    rows = windows([30])
    points, most = over_steps(rows, LINE, 1000)
    rows = rows.sort_values("step")
    assert most == 1
    assert points["value"].tolist() == pytest.approx(rows["value"].tolist())
    assert points["shift"].tolist() == rows["shift"].tolist()


def test_neighbours_are_averaged_and_mixed_shifts_named() -> None:
    rows = windows([31])
    points, most = over_steps(rows, LINE, 10)
    assert len(points) == 10
    assert most == 4
    assert points["step"].is_monotonic_increasing
    assert points["shift"].tolist() == ["fog"] * 3 + ["several"] + ["noise"] * 6


def test_a_single_long_line_is_bounded_too() -> None:
    points, _ = over_steps(windows([3 * MOST_PER_LINE]), LINE, 200_000)
    assert len(points) == MOST_PER_LINE


def test_without_n_every_window_counts_the_same() -> None:
    rows = windows([20]).assign(n=pd.array([pd.NA] * 20, "Int64"))
    points, _ = over_steps(rows, LINE, 10)
    assert points["n"].isna().all()
    assert points["value"].mean() == pytest.approx(rows["value"].mean())


def test_bounded_keeps_the_first_whole_values() -> None:
    frame = pd.DataFrame({"stream": list("bbbaac"), "value": range(6)})
    assert bounded(frame, "stream", 6)[1] == ""
    kept, sentence = bounded(frame, "stream", 5)
    assert kept["stream"].tolist() == list("bbbaa")
    assert sentence == " This page has 2 of 3 streams; the table file has all."
    assert bounded(frame, "stream", 1)[0]["stream"].tolist() == list("bbb")


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_come_by_line_and_step_whether_or_not_they_were_sorted(shuffled: bool) -> None:
    rows = windows([7, 3, 12]).sort_values(["stream", "step"], ascending=[False, True], ignore_index=True)
    rows = rows.sample(frac=1, random_state=1, ignore_index=True) if shuffled else rows
    found = blocks(rows, LINE)
    step = rows["step"].to_numpy(dtype=float)
    assert found.whole(step) is not shuffled
    ordered = rows.iloc[found.order(step)].reset_index(drop=True)
    pd.testing.assert_frame_equal(ordered, rows.sort_values(["stream", "step"], ignore_index=True))


def test_a_step_that_comes_twice_is_no_whole_block() -> None:
    rows = pd.DataFrame({"stream": "s", "model": "m", "adapter": "none", "step": [1, 2, 2, 3]})
    assert not blocks(rows, LINE).whole(rows["step"].to_numpy(dtype=float))
