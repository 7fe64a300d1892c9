"""Killed at a random moment, ten times, and resumed: nothing finished is run again, and the table is the same."""

import random
import time

import pandas as pd
import pytest

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]

STUDY = """
data = "data.npz"
batch_size = 2
models = [{name = "a", build = "net.py:build"}, {name = "b", build = "resnet", arguments = {width = 4}}]
streams = ["clean", {use = "corruptions", shifts = ["gaussian_noise", "contrast", "gaussian_blur"]}]
adapters = ["none", "batchnorm"]
"""


def values(path):
    table = pd.read_parquet(path)
    return table[~table["measure"].isin(COSTS)].reset_index(drop=True)


def stamps(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.glob("*.npz")}


@pytest.mark.parametrize("jobs", [1, 2])
def test_kill_and_resume(folder, holdfast, jobs):
    (folder / "study.toml").write_text(STUDY)
    run = ["run", "study.toml", "--quiet", "--jobs", jobs]
    start = time.monotonic()
    assert holdfast(*run, "--out", "undisturbed").returncode == 0
    whole = time.monotonic() - start
    cells, finished = folder / "disturbed" / "cells", {}
    moments = random.Random(jobs)
    for _ in range(5):
        process = holdfast.start(*run, "--out", "disturbed")
        time.sleep(moments.uniform(0.3, 0.9) * whole)
        process.kill()
        process.communicate()
        now = stamps(cells)
        assert finished.items() <= now.items(), "a finished cell was run again"
        finished = now
    assert holdfast(*run, "--out", "disturbed").returncode == 0
    assert finished.items() <= stamps(cells).items()
    pd.testing.assert_frame_equal(
        values(folder / "disturbed/table.parquet"), values(folder / "undisturbed/table.parquet")
    )
    assert not list(cells.glob(".*")), "a half-written file was left"
