"""Analyses that take long, stopped at any moment: the same command goes on and ends with the same result."""

import json
import random
import shutil
import signal
import time

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.conftest import CommandLine

from haptera.models import LeNet, ResNet

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

COMMANDS = {
    "diagnose": (
        "diagnose --model resnet:width=4,stem=2 --weights resnet.safetensors --data new.npz --reference old.npz "
        "--known-samples 16 --device cpu",
        "known",
        "known corruption",
    ),
    "stability": (
        "stability --model lenet:width=4 --weights lenet.safetensors --data new.npz --delta 1 --delta 2 --delta 3 "
        "--interpolation bilinear --interpolation gaussian",
        "measurements",
        "measurement",
    ),
}
"""Name -> a command, the folder of its pieces, and what they are called."""
RESULTS = ("result.json", "table.parquet")


@pytest.fixture(params=COMMANDS, scope="module")
def undisturbed(request, tmp_path_factory, fork_server):
    """The name of a command, and a folder with what it reads and, in `whole`, what it ends with."""
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    save_file(ResNet(width=4, stem=2).state_dict(), folder / "resnet.safetensors")
    save_file(LeNet(width=4).state_dict(), folder / "lenet.safetensors")
    generator = np.random.default_rng(0)
    for name in ("old", "new"):
        images = generator.integers(0, 256, (24, 32, 32), dtype=np.uint8)
        np.savez(folder / f"{name}.npz", images=images, labels=generator.integers(0, 10, 24))
    run = CommandLine(folder, fork_server)
    assert run(*COMMANDS[request.param][0].split(), "--quiet", "--out", "whole").returncode == 0
    return request.param, folder


@pytest.fixture
def job(undisturbed, folder):
    """A command with its folder, the pattern of its pieces, what they are called, and what it ends with."""
    name, made = undisturbed
    for path in made.glob("*.*"):
        shutil.copy(path, folder)
    command, pieces, noun = COMMANDS[name]
    return [*command.split(), "--quiet", "--out", "out"], pieces, noun, results(made / "whole")


def results(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS}


def finished(folder, pieces):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "out" / pieces).glob("*.json")}


def test_killed_between_two_pieces_it_goes_on_and_a_damaged_piece_is_made_again(job, folder, haptera):
    command, pieces, _, whole = job
    process = haptera.start_until(f"*/{pieces}/*.json", *command, after=3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = finished(folder, pieces)
    assert len(before) == 3
    assert haptera(*command).returncode == 0
    assert before.items() <= finished(folder, pieces).items()
    assert results(folder / "out") == whole
    victim = sorted((folder / "out" / pieces).glob("*.json"))[1]
    content = victim.read_bytes()
    victim.write_bytes(content[:10] + bytes([content[10] ^ 1]) + content[11:])
    again = haptera(*[word for word in command if word != "--quiet"])
    assert f"{victim.name} is not what it was when it was finished" in again.stderr
    assert results(folder / "out") == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal_it_says_how_far_it_came(job, folder, haptera, number):
    command, pieces, noun, whole = job
    process = haptera.start_until(f"*/{pieces}/*.json", *command, after=2)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert said.startswith("error: stopped after 2 of ")
    assert said.endswith(f" {noun}s; the same command goes on from there\n")
    assert haptera(*command).returncode == 0
    assert results(folder / "out") == whole


def test_on_a_full_disk_it_says_what_is_intact_and_goes_on_when_there_is_room(job, folder, haptera):
    command, pieces, noun, whole = job
    process = haptera.start_until(f"*/{pieces}/*.json", *command, after=2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    most = (folder / "out" / "plan.json").stat().st_size // 4
    full = haptera.apart(*command, largest_file=most)
    assert full.returncode == 1, full.stderr
    assert f"2 finished {noun}s are intact, the same command goes on" in full.stderr
    assert haptera(*command).returncode == 0
    assert results(folder / "out") == whole


def test_killed_at_random_moments_it_ends_the_same(job, folder, haptera):
    command, _, _, whole = job
    moments, start = random.Random(0), time.monotonic()
    assert haptera.apart(*command[:-1], "timed").returncode == 0
    duration = time.monotonic() - start
    for _ in range(4):
        process = haptera.start(*command)
        time.sleep(moments.uniform(0.3, 1.0) * duration)
        process.kill()
        process.communicate()
    assert haptera(*command).returncode == 0
    assert results(folder / "out") == whole


def test_a_folder_of_another_analysis_is_refused(job, folder, haptera):
    command = job[0]
    (folder / "out").mkdir()
    (folder / "out" / "plan.json").write_text(
        json.dumps({"schema": 2, "kind": "study", "noun": "cell", "about": {}, "pieces": []})
    )
    refused = haptera(*command)
    assert refused.returncode == 2
    assert "out holds a study" in refused.stderr
