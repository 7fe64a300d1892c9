"""`haptera materialise`: what it says, what it refuses, and how it goes on where it was stopped."""

import json
import random
import signal
import time

import numpy as np
import pytest
import torch
from tests.run.test_materialise import DATA, tree

from haptera.cli import main
from haptera.data import open_data
from haptera.run.materialise import materialise
from haptera.shifts import Contrast


def call(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code or 0


COMMAND = ["materialise", "--data", "data.npz", "--out", "c", "--shift", "contrast"]


def test_the_command_writes_says_and_goes_on(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert call(*COMMAND, "--severity", 1, "--severity", 2, "--quality", "png") == 0
    assert capsys.readouterr().out == "2 parts of 40 images written into c, 0 found finished\n"
    assert call(*COMMAND, "--quality", "png", "--quiet", "--json") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out) == {
        "out": "c",
        "written": ["contrast/3", "contrast/4", "contrast/5"],
        "kept": ["contrast/1", "contrast/2"],
        "images": 40,
    }
    data = open_data(folder / "c", channels=1)
    assert torch.equal(data.parts[4].data.images(np.arange(1)).mul(255).round() % 1, torch.zeros(1, 1, 12, 12))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--shift", "contrats"], "did you mean 'contrast'"),
        (["--layout", "cifar"], "unknown layout 'cifar'"),
        (["--quality", "jpg"], "quality is 'jpg'"),
        (["--severity", "9"], "severities are [9]"),
        (["--data", "dat.npz"], "did you mean 'data.npz'"),
    ],
)
def test_mistakes_end_with_2(folder, monkeypatch, capsys, more, message):
    monkeypatch.chdir(folder)
    assert call(*COMMAND, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_data_that_is_corrupted_already_is_refused(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    materialise(DATA, [Contrast], "c", severities=[1])
    assert call("materialise", "--data", "c", "--out", "d") == 2
    assert "c is corrupted already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("layout", "stop"),
    [
        ("imagenet-c", signal.SIGINT),
        pytest.param("imagenet-c", signal.SIGTERM, marks=pytest.mark.slow),
        ("imagenet-c", signal.SIGKILL),
        pytest.param("cifar-10-c", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_stopped_it_says_how_to_go_on_and_ends_with_the_same_files(folder, haptera, stop, layout):
    command = (*COMMAND, "--shift", "gaussian_noise", "--layout", layout)
    after = {"imagenet-c": ("*/contrast/*", 2), "cifar-10-c": ("*/contrast.npy", 0)}[layout]
    process = haptera.start_until(after[0], *command, after=after[1])
    process.send_signal(stop)
    _, error = process.communicate()
    if stop == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert error.endswith("error: stopped after 2 of 10 parts; the same command goes on from there\n")
    assert "Traceback" not in error
    done = json.loads(haptera(*command, "--json").stdout)
    assert done["kept"] == (["contrast/1", "contrast/2"] if layout == "imagenet-c" else [])
    assert len(done["written"]) + len(done["kept"]) == (10 if layout == "imagenet-c" else 2)
    assert haptera(*[word if word != "c" else "undisturbed" for word in command]).returncode == 0
    trees = [{path: content for path, (content, _) in tree(folder / name).items()} for name in ("c", "undisturbed")]
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_files(folder, haptera):
    moments = random.Random(0)
    command = ("materialise", "--data", "digits", "--shift", "contrast", "--shift", "glass_blur", "--shift", "snow")
    start = time.monotonic()
    assert haptera.apart(*command, "--out", "undisturbed").returncode == 0
    duration = time.monotonic() - start
    for _ in range(4):
        process = haptera.start(*command, "--out", "c")
        time.sleep(moments.uniform(0.3, 0.9) * duration)
        process.kill()
        process.communicate()
    assert haptera(*command, "--out", "c").returncode == 0
    trees = [{path: content for path, (content, _) in tree(folder / name).items()} for name in ("c", "undisturbed")]
    assert trees[0] == trees[1]
    assert not list((folder / "c").glob(".*.part"))
