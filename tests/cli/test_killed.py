"""Killed and resumed: nothing finished is run again, and the table is the same."""

import random
import signal
import time

import pandas as pd
import pytest

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]

STUDY = """
data = "data.npz"
batch_size = 8
models = [{name = "a", build = "net.py:build"}, {name = "b", build = "resnet", arguments = {width = 4}}]
streams = ["clean", {use = "corruptions", shifts = ["gaussian_noise"]}]
adapters = ["none", "batchnorm"]
"""


def values(path):
    table = pd.read_parquet(path)
    return table[~table["measure"].isin(COSTS)].reset_index(drop=True)


def stamps(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.glob("*.npz")}


def interrupted_by(stops, folder, haptera, jobs):
    """Run a study undisturbed, and again with each of these stops before it may end; both must say the same."""
    (folder / "study.toml").write_text(STUDY)
    run = ["run", "study.toml", "--quiet", "--jobs", jobs]
    start = time.monotonic()
    assert haptera("run", "study.toml", "--quiet", "--out", "undisturbed").returncode == 0
    duration = time.monotonic() - start
    cells, finished = folder / "disturbed" / "cells", {}
    for stop in stops:
        stop([*run, "--out", "disturbed"], duration)
        now = stamps(cells)
        assert finished.items() <= now.items(), "a finished cell was run again"
        finished = now
    assert haptera(*run, "--out", "disturbed").returncode == 0
    assert finished.items() <= stamps(cells).items()
    pd.testing.assert_frame_equal(
        values(folder / "disturbed/table.parquet"), values(folder / "undisturbed/table.parquet")
    )
    assert not list(cells.glob(".*")), "a half-written file was left"
    return finished


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_between_two_cells_it_goes_on(folder, haptera, jobs):
    def stop(run, _):
        process = haptera.start_until("*/cells/*.npz", *run, after=5)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    assert len(interrupted_by([stop], folder, haptera, jobs)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_a_random_moment_five_times_it_goes_on(folder, haptera, jobs):
    moments = random.Random(jobs)

    def stop(run, duration):
        process = haptera.start(*run)
        time.sleep(moments.uniform(0.3, 0.9) * duration)
        process.kill()
        process.communicate()

    interrupted_by([stop] * 5, folder, haptera, jobs)
