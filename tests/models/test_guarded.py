"""A profile and a rehearsal of a guard take models in the forms that `haptera run` takes."""

import json
import shlex

import numpy as np
import pytest
from tests.commands import call
from tests.models.conftest import CLASSES, SIZE, Forms

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`


@pytest.mark.parametrize(
    ("line", "adapter"),
    [
        ("--model hf:hf", "batchnorm"),
        ("--model net.py:build", "tent"),
        ("--model net.pt2 --allow-pickle", ""),
        ("--model net.onnx", ""),
        ("--model net.ts", ""),
        ("--model callable:net.py:answer", "lame"),
    ],
)
def test_a_model_is_watched_from_the_command_line(line, adapter, forms: Forms, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(forms.folder)
    random = np.random.default_rng(0)
    pixels, data = random.integers(0, 256, (128, SIZE, SIZE, 3), np.uint8), tmp_path / "data.npz"
    np.savez(data, images=pixels, labels=np.arange(128) % CLASSES)
    given = [*shlex.split(line), "--data", data, "--quiet", "--json"]
    reference = tmp_path / "profile.safetensors"
    assert call("profile", *given, "--out", reference) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 128
    streams = ["--stream", "clean", "--stream", "continual:shifts=contrast,severity=5"]
    streams += ["--adapter", adapter] if adapter else []
    more = ["--reference", reference, "--rate", 0, "--batch-size", 32, "--out", tmp_path / "log"]
    assert call("live", "simulate", *given, *streams, *more) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["steps"], said["images"], said["alarms"]) == (8, 256, 1)
    assert said["settings"]["adapter"].lower() == adapter
