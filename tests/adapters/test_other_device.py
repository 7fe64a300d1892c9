"""Adapters predict and learn on a device that is not the CPU as they do on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration

from adapter_cases import ADAPTERS

TESTS = Path(__file__).parents[1]
CODE = """
import copy, sys
import torch
from other_device import There, other_device
from adapter_cases import ADAPTERS
from haptera.testing.adapters import example_batches, example_models

torch.set_num_threads(1)
with other_device() as device:
    try:
        torch.zeros(2, device=device) + torch.zeros(2)
        raise SystemExit("tensors of two devices were added")
    except RuntimeError as error:
        assert "same device" in str(error)
for name in sys.argv[1:]:
    make, norms = ADAPTERS[name]
    model, batches = example_models()[norms[0]], example_batches()[:3]
    here = make(model)
    wanted = [here(batch) for batch in batches]
    with other_device() as device:
        there = make(copy.deepcopy(model).to(device))
        found = [there(batch.to(device)) for batch in batches]
    assert all(isinstance(outputs, There) for outputs in found), name
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.values, other, rtol=1e-4, atol=1e-5, msg=name)
print("through")
"""
pytestmark = pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch has no devices that are written in Python",
)
FEW = ("none", "batchnorm", "tent", "sar", "cotta")
IMAGE_TEXT = [name for name, (_, norms) in ADAPTERS.items() if norms[0] == "text"]
"""Their models have a tokeniser, and tensors of their own beside their weights."""


def run(names):
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *names],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.strip().endswith("through"), done.stderr[-3000:]


@pytest.mark.long
def test_a_few_adapters_learn_there_as_here():
    run(FEW)


@pytest.mark.slow
def test_every_adapter_learns_there_as_here():
    run([name for name in ADAPTERS if name not in FEW and name not in IMAGE_TEXT])
