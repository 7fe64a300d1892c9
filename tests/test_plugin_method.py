"""The method of the example as a plugin: CONTRIBUTING alone, under 60 lines, in the catalog, right, and in a study."""

import math
import os
import runpy
from pathlib import Path

import pandas as pd
import pytest
import torch

from haptera.errors import HapteraError
from haptera.run.parts import check_adapter
from haptera.testing.adapters import example_batches, example_models

EXAMPLE = Path(__file__).parents[1] / "examples" / "my_own_method.py"


@pytest.fixture
def plugin(haptera, folder):
    """The command line with the example installed, as pip would leave it."""
    about = folder / "site" / "mine-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[haptera.adapters]\nhlr = my_own_method:HLR\n")
    (folder / "site" / EXAMPLE.name).write_bytes(EXAMPLE.read_bytes())
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    haptera.environment = haptera.environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return haptera


def test_the_file_has_at_most_60_lines():
    assert len(EXAMPLE.read_text().splitlines()) <= 60


@pytest.mark.long
def test_it_runs_in_a_study_by_its_name_with_settings_of_every_learner(plugin, folder):
    command = (
        "run",
        "--data",
        "digits",
        "--model",
        "resnet:width=4,stem=2",
        "--stream",
        "clean",
        "--no-check",
        "--quiet",
    )
    ran = plugin.apart(
        *command, "--adapter", "none", "--adapter", "hlr:lr=1e-3,steps=2,weight_decay=0.1", "--out", "found"
    )
    assert ran.returncode == 0, ran.stderr
    table = pd.read_parquet(folder / "found" / "table.parquet")
    assert {"none", "hlr:lr=0.001,steps=2,weight_decay=0.1"} <= set(table["adapter"])


def test_a_setting_that_it_does_not_have_is_refused_with_the_nearest_name():
    with pytest.raises(HapteraError, match="kappa"):
        check_adapter(runpy.run_path(str(EXAMPLE))["HLR"], "hlr", {"kapa": 0.5})


def test_its_loss_is_the_papers():
    method = runpy.run_path(str(EXAMPLE))["HLR"]
    adapter = method(example_models()["layer"], lr=0.0, kappa=0.75, delta=0.5)
    mean = None
    for inputs in example_batches()[:2]:
        logits = adapter(inputs).double()
        ratios = []
        for row in logits.tolist():
            first = max(range(len(row)), key=row.__getitem__)
            ratios.append(math.log(sum(math.exp(z) for i, z in enumerate(row) if i != first)) - row[first])
        own = logits.softmax(1).mean(0)
        mean = own if mean is None else 0.75 * mean + 0.25 * own
        even = sum(p * math.log(p * len(mean)) for p in mean.tolist())
        assert adapter.record["loss"] == pytest.approx(even + 0.5 * sum(ratios) / len(ratios), abs=1e-5)
    assert torch.allclose(adapter.memory["mean"].double(), mean, atol=1e-6)
