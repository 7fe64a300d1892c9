"""A study on a Dask cluster, of which a worker or the scheduler is killed in the middle, or which is not there."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import wait_until

import haptera
from haptera.data import ArrayData
from haptera.errors import Unfinished
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


@pytest.mark.long
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


@pytest.fixture
def cluster(tmp_path, slow):
    """A scheduler and a worker as processes of their own: the scheduler, and its address."""
    file = tmp_path / "scheduler.json"
    places = os.pathsep.join([str(tmp_path), str(Path(haptera.__file__).parents[1])])
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": places}}
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    processes = [subprocess.Popen([*start, "--host", "127.0.0.1", "--scheduler-file", file], **options)]

    def address():
        try:
            return json.loads(file.read_text())["address"]
        except (OSError, ValueError):
            return None

    wait_until(address, processes[0])
    start = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    processes.append(subprocess.Popen([*start, address()], cwd=tmp_path, **options))
    yield processes[0], address()
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_killed_scheduler_is_one_sentence_and_the_same_study_goes_on(tmp_path, study, cluster, capfd):
    scheduler, address = cluster
    together, said = study("together"), []

    def run():
        try:
            together.run(cluster=address)
        except Unfinished as error:
            said.append(str(error))

    runner = threading.Thread(target=run)
    runner.start()
    cells = tmp_path / "together" / "cells"
    wait_until(lambda: len(list(cells.glob("*.npz"))) >= 3 or not runner.is_alive())
    scheduler.kill()
    runner.join()
    assert said == [f"the Dask scheduler at {address} is gone; what is finished is kept, and the same command goes on"]
    assert "Traceback" not in capfd.readouterr().err
    again = study("together")
    table = again.run()
    assert again.last.kept >= 2
    assert again.last.ran + again.last.kept == 11
    pd.testing.assert_frame_equal(values(table), values(study("alone").run()))


@pytest.mark.long
@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:1", "tls://127.0.0.1:9"])
def test_an_address_that_cannot_be_is_one_sentence(haptera, address):
    run = ["run", "--model", "net.py:build", "--data", "data.npz", "--stream", "clean", "--out", "out", "--quiet"]
    done = haptera(*run, "--cluster", address)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: cannot reach a Dask scheduler at {address}: ")
    assert haptera(*run).returncode == 0
