"""Stopped by a signal, whichever it is and wherever it comes, a command says one line and how to go on."""

import os
import signal

import pytest
from tests.conftest import wait_until

BLOCKED = """
import time
from pathlib import Path

from net import Net


class Blocked(Net):
    def forward(self, images):
        if len(images) == BATCH:
            Path("begun").touch()
            while True:
                time.sleep(0.01)
        return super().forward(images)


def build():
    return Blocked()
"""
NOISE = ("Traceback", "leaked", "resource_tracker", "Warning")


def stop(haptera, number, batch, *arguments, whole_group=False):
    """Start a command whose model never answers a batch of that size, and stop it then; its exit code and stderr."""
    (haptera.folder / "blocked.py").write_text(BLOCKED.replace("BATCH", str(batch)))
    process = haptera.start(*arguments, group=True)
    wait_until((haptera.folder / "begun").exists, process)
    os.killpg(process.pid, number) if whole_group else process.send_signal(number)
    return process.returncode if process.returncode is not None else process.wait(), process.communicate()[1]


RUN = (
    "run",
    "--no-check",
    "--model",
    "blocked.py:build",
    "--data",
    "data.npz",
    "--stream",
    "clean",
    "--batch-size",
    13,
    "--out",
    "out",
)


@pytest.mark.long
def test_a_scheduler_that_ends_a_run_is_told_how_to_go_on(haptera):
    code, said = stop(haptera, signal.SIGTERM, 13, *RUN)
    assert (code, said) == (130, "error: stopped after 0 of 1 cell; the same command goes on from there\n")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_terminal_that_closes_on_several_processes_leaves_no_noise(haptera, number):
    more = ("--stream", "corruptions:shifts=contrast,severities=1", "--jobs", 2)
    code, said = stop(haptera, number, 13, *RUN, *more, whole_group=True)
    assert code == 130, said
    assert not [word for word in NOISE if word in said], said
    assert said.endswith("of 2 cells; the same command goes on from there\n")


@pytest.mark.long
def test_ctrl_c_in_a_diagnosis_shows_no_traceback(haptera):
    diagnose = ("diagnose", "--model", "blocked.py:build", "--data", "data.npz", "--batch-size", 13)
    assert stop(haptera, signal.SIGINT, 13, *diagnose, "--quiet") == (130, "error: stopped\n")
