"""A history keeps counts exactly and means as they are, however long the log is, and whatever the clock does."""

import numpy as np
import pandas as pd
import pytest
from tests.live.recorded_rows import EVERY, START, event_row, rows, step_row

from haptera.live import history as module
from haptera.live.history import MEANS, History


def made(content, since=None, cut=None):
    history = History(since)
    for place in range(0, len(content), cut or len(content) or 1):
        history.add(pd.DataFrame(content[place : place + (cut or len(content))]))
    return history


def test_a_long_log_takes_no_more_memory_and_keeps_its_means(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 64)
    content = [step_row(step, images=1 + step % 7) for step in range(1000)]
    content[300]["accuracy"] = None
    history = made(content, cut=33)
    frame = history.frame()
    assert len(frame) <= 64
    assert (history.steps, history.images) == (1000, sum(row["images"] for row in content))
    assert frame["n"].sum() == history.images
    for name in set(MEANS) - {"labelled"}:
        known = [(row[name], row["images"]) for row in content if row[name] is not None]
        slow = sum(value * images for value, images in known) / sum(images for _, images in known)
        near = 1e-2 if name == "accuracy" else 1e-6  # where a step does not know it, a row stands for fewer images
        assert np.average(frame[name], weights=frame["n"]) == pytest.approx(slow, rel=near)
    assert frame["slowest"].max() == max(row["latency"] for row in content)
    assert frame["position"].iloc[-1] == 999


def test_how_the_log_is_cut_does_not_matter():
    whole, pieces = made(rows()), made(rows(), cut=7)
    pd.testing.assert_frame_equal(whole.frame(), pieces.frame())
    assert whole.events == pieces.events
    assert whole.counts == pieces.counts


def test_latencies_that_a_share_kept_to_are_within_their_classes():
    latencies = np.random.default_rng(0).lognormal(-4, 0.5, 2000)
    history = made([step_row(step, latency=float(value)) for step, value in enumerate(latencies)])
    for share in (0.5, 0.9, 0.99):
        assert history.latency(share) == pytest.approx(np.quantile(latencies, share), rel=0.04)


@pytest.mark.parametrize("cut", [None, 1, 7])
def test_the_first_batch_after_each_start_warms_up_and_is_no_latency_of_the_run(cut):
    """A process that was started again goes on with its steps, and warms up anew."""
    content = [event_row(0, "start", "camera is watched")]
    content += [step_row(step, latency=3.0 if step in (1, 12) else 0.01) for step in range(1, 20)]
    content.insert(12, event_row(11, "start", "camera is watched"))
    content.append(event_row(19, "start", "camera is watched"))
    history = made(content) if cut is None else made(content, cut=cut)
    assert history.latency(1.0) == pytest.approx(0.01, rel=0.04)
    assert history.frame()["slowest"].max() == 3.0  # shown all the same
    history.add(pd.DataFrame([step_row(20, latency=3.0), step_row(21, latency=0.5)]))
    assert history.latency(1.0) == pytest.approx(0.5, rel=0.04)


def test_a_clock_that_is_set_back_does_not_fold_the_run():
    content = [step_row(step) for step in range(20)]
    for row in content[10:]:
        row["time"] -= 3600
    history = made(content, cut=3)
    assert history.set_back == pytest.approx(3600 - EVERY)
    times = history.frame()["time"]
    assert (times.diff().dropna() >= 0).all()
    assert history.last - history.first == pytest.approx(18 * EVERY)


def test_rows_of_threads_that_are_a_little_out_of_order_are_no_clock_that_was_set_back():
    content = [step_row(step, time=START + 0.01 * (step ^ 1)) for step in range(100)]
    assert made(content).set_back == 0


def test_an_alarm_of_before_still_holds_and_one_that_was_cleared_does_not():
    alarm, cleared = event_row(2, "alarm", "changed", since=1), event_row(5, "cleared", "back")
    steps = [step_row(step) for step in range(10)]
    since = steps[7]["time"]
    assert [event.event for event in made([*steps[:3], alarm, *steps[3:]], since).events] == ["alarm"]
    assert made([*steps[:3], alarm, *steps[3:6], cleared, *steps[6:]], since).events == []


def test_rows_that_say_nonsense_are_survived():
    nonsense = step_row(1, images="many", latency="fast", accuracy={"a": 1}, served=7, where=None)
    odd = [{"kind": "step", "time": START}, nonsense, {"kind": "event", "time": START, "numbers": 3}]
    history = made(odd)
    assert history.steps == 2
    assert np.isnan(history.frame()["accuracy"]).all()
