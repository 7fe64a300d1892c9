"""A study that everybody exports, and packages that call nobody."""

import json
import os
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.data import ArrayData
from haptera.run.journal import JOURNAL
from haptera.run.study import Study
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Continual, Corruptions

SILENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_MODE": "offline",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


@pytest.fixture(scope="session", autouse=True)
def silence(tmp_path_factory):
    """No package asks the network, or leaves files in the home of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    places = {name: str(home) for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR")}
    with mock.patch.dict(os.environ, SILENT | places):
        yield


def network(seed=0):
    torch.manual_seed(seed)
    layers = torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4 * 6 * 6, 3)
    return torch.nn.Sequential(*layers).eval()


def digits():
    generator = np.random.default_rng(0)
    return ArrayData(generator.integers(0, 255, (40, 8, 8, 1), np.uint8), generator.integers(0, 3, 40))


def run_study(out, seed=0, seeds=(0,), adapters=None):
    """Run a study of one network on two streams."""
    streams = [
        Continual(digits(), (GaussianNoise, Contrast), batch_size=20),
        Corruptions(digits(), (Contrast,), severities=(1, 5), batch_size=20),
    ]
    adapters = adapters or {"none": NoAdaptation, "batchnorm:prior=4": partial(BatchNorm, prior=4)}
    Study({"net": network(seed)}, streams, adapters, out=out, seeds=list(seeds)).run(progress=False)
    return out


def forget_last_cell(study):
    """Make a study one that was stopped before its last cell."""
    journal = study / JOURNAL
    *before, last = journal.read_text().splitlines()
    journal.write_text("".join(f"{line}\n" for line in before))
    (study / "cells" / f"{json.loads(last)['key']}.npz").unlink()
    (study / "table.parquet").unlink(missing_ok=True)


@pytest.fixture(scope="session")
def study(tmp_path_factory, silence):
    return run_study(tmp_path_factory.mktemp("studies") / "audit")


@pytest.fixture
def own_study(study, tmp_path):
    """A copy that a test may change."""
    import shutil

    return shutil.copytree(study, tmp_path / "audit")
