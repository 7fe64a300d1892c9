"""A study over a folder in CIFAR-10-C's layout: five streams, four adapters, killed and continued; file and flags."""

import signal

import numpy as np
import pandas as pd
import pytest

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]
STREAMS = ["directory", "continual", "gradual", "mixed", "correlated"]
STUDY = """
data = "CIFAR-10-C"
batch_size = 10
models = [{name = "net", build = "net.py:build", arguments = {classes = 10, channels = 3}}]
adapters = ["none", "batchnorm", "tent", "eta"]

[[streams]]
use = "directory"
severities = [1, 5]

[[streams]]
use = "continual"
order = 1
labels = "dirichlet"

[[streams]]
use = "gradual"
shifts = ["fog", "gaussian_noise"]
samples_per_step = 10

[[streams]]
use = "mixed"
severities = [3, 5]

[[streams]]
use = "correlated"
by = "contrast:5"
"""
FLAGS = [
    *("--data", "CIFAR-10-C", "--batch-size", 10, "--model", "net.py:build:classes=10,channels=3"),
    *("--stream", "directory:severities=1,5", "--stream", "continual:order=1,labels=dirichlet"),
    *("--stream", "gradual:shifts=fog,gaussian_noise,samples_per_step=10"),
    *("--stream", "mixed:severities=3,5", "--stream", "correlated:by=contrast:5", "--adapter", "none"),
]


@pytest.fixture
def corrupted(folder):
    """A folder with `net.py` and `CIFAR-10-C`: three corruptions and a hold-out one, 20 images at five severities."""
    generator, root = np.random.default_rng(0), folder / "CIFAR-10-C"
    root.mkdir()
    np.save(root / "labels.npy", np.tile(generator.integers(0, 10, 20), 5))
    for name in ("contrast", "fog", "gaussian_noise", "speckle_noise"):
        np.save(root / f"{name}.npy", generator.integers(0, 256, (100, 8, 8, 3), dtype=np.uint8))
    # Without weights every build of the network is another one.
    net = (folder / "net.py").read_text().replace("    return Net(", "    torch.manual_seed(0)\n    return Net(")
    (folder / "net.py").write_text(net)
    (folder / "study.toml").write_text(STUDY)
    return folder


def values(path):
    table = pd.read_parquet(path)
    return table[~table["measure"].isin(COSTS)].drop(columns="model").reset_index(drop=True)


@pytest.mark.long
def test_a_study_of_five_streams_and_four_adapters_is_killed_and_goes_on_to_the_same_table(corrupted, haptera):
    assert haptera("run", "study.toml", "--quiet", "--out", "undisturbed").returncode == 0
    undisturbed = values(corrupted / "undisturbed" / "table.parquet")
    process = haptera.start_until("*/cells/*.npz", "run", "study.toml", "--quiet", "--out", "out", after=25)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    cells = corrupted / "out" / "cells"
    finished = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.npz")}
    assert len(finished) >= 25
    assert haptera("run", "study.toml", "--quiet", "--out", "out").returncode == 0
    now = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.npz")}
    assert finished.items() <= now.items()
    assert len(now) == 4 * (3 * 2 + 4)
    pd.testing.assert_frame_equal(values(corrupted / "out" / "table.parquet"), undisturbed)

    accuracy = undisturbed[undisturbed["measure"] == "accuracy"]
    assert set(accuracy["stream"]) == set(STREAMS)
    assert accuracy["adapter"].nunique() == 4
    assert set(accuracy["shift"]) == {"contrast", "fog", "gaussian_noise"}
    assert set(accuracy[accuracy["stream"] == "mixed"]["severity"]) == {3.0, 5.0}
    assert accuracy[accuracy["stream"] == "gradual"]["n"].sum() == 4 * 2 * 9 * 10


@pytest.mark.long
def test_flags_say_the_same_as_the_file(corrupted, haptera):
    assert haptera("run", *FLAGS, "--quiet", "--out", "by_flags").returncode == 0
    (corrupted / "study.toml").write_text(STUDY.replace('["none", "batchnorm", "tent", "eta"]', '["none"]'))
    assert haptera("run", "study.toml", "--quiet", "--out", "by_file").returncode == 0
    by_flags, by_file = (values(corrupted / name / "table.parquet") for name in ("by_flags", "by_file"))
    pd.testing.assert_frame_equal(by_flags, by_file)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("continual:shifts=fgo", "unknown shift of CIFAR-10-C 'fgo'; did you mean 'fog'"),
        ("continual:severity=6", "severity 6 of gaussian_noise is not in the data; there are 1, 2, 3, 4, 5"),
        ("continual:table=cifar", "CIFAR-10-C is corrupted already"),
        ("correlated:by=smoke:5", "unknown shift of CIFAR-10-C 'smoke'"),
        ("clean", "takes one data set"),
    ],
)
def test_mistakes_are_one_sentence(corrupted, haptera, stream, message):
    ended = haptera("run", *FLAGS[:6], "--stream", stream, "--out", "out")
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
