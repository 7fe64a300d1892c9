"""A study on a Dask cluster of two processes, one of which is killed in the middle."""

import os
import signal
import threading
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import wait_until

from haptera.data import ArrayData
from haptera.models import LeNet
from haptera.run.study import RunSummary, Study
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Corruptions

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]
SLOW = '''
import os, time, zlib
from pathlib import Path
from haptera.adapters import Adapter


class Slow(Adapter):
    """Says which cell begins where, and takes its time."""

    begun = False

    def step(self, inputs):
        if not self.begun and (log := os.environ.get("SLOW_LOG")):
            with open(log, "a") as file:
                file.write(f"{zlib.crc32(inputs.numpy().tobytes())} {os.getpid()}\\n")
        self.begun = True
        time.sleep(0.05)
        return self.predict(inputs)
'''


@pytest.fixture
def slow(tmp_path, monkeypatch):
    (tmp_path / "slow_adapter.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import slow_adapter

    return slow_adapter.Slow


@pytest.fixture
def study(tmp_path, slow):
    generator = np.random.default_rng(0)
    data = ArrayData(generator.integers(0, 256, (32, 16, 16), dtype=np.uint8), generator.integers(0, 10, 32))
    torch.manual_seed(0)
    model = LeNet(size=16, width=2)

    def study(out):
        streams = [Clean(data, batch_size=8), Corruptions(data, (GaussianNoise, Contrast), batch_size=8)]
        return Study({"net": model}, streams, {"slow": slow}, out=tmp_path / out)

    return study


def values(table):
    return table[~table["measure"].isin(COSTS)].reset_index(drop=True)


@pytest.mark.slow
def test_a_killed_worker_costs_only_the_cell_it_was_running(tmp_path, study):
    alone = study("alone").run()
    (tmp_path / "log").unlink()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        together = study("together")
        outcome = {}
        runner = threading.Thread(target=lambda: outcome.update(table=together.run(cluster=cluster.scheduler_address)))
        runner.start()
        cells = tmp_path / "together" / "cells"
        wait_until(lambda: len(list(cells.glob("*.npz"))) >= 3 or not runner.is_alive())
        victim = int((tmp_path / "log").read_text().split()[-1])
        os.kill(victim, signal.SIGKILL)
        runner.join()
    assert together.last == RunSummary(ran=11, kept=0, failed=0)
    pd.testing.assert_frame_equal(values(outcome["table"]), values(alone))
    begun = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    twice = [cell for cell, count in Counter(cell for cell, _ in begun).items() if count > 1]
    assert len({cell for cell, _ in begun}) == 11
    assert len(twice) <= 1
    assert all(next(pid for name, pid in begun if name == cell) == str(victim) for cell in twice)
