"""How the tests themselves run: a dead or stuck worker ends the run with a failure that names the test."""

import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = Path(__file__).parent.parent / "pyproject.toml"
CRASH = "import os, signal\ndef test_that_dies():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
STUCK = "import threading\ndef test_that_waits():\n    threading.Event().wait()\n"
DEAF = """
import signal, threading
def test_that_hears_nothing():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()
"""
FINE = "def test_that_passes():\n    pass\n"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        pytest.param(CRASH, "test_that_dies", id="it dies"),
        pytest.param(STUCK, "test_that_waits", id="it waits", marks=pytest.mark.long),
        pytest.param(DEAF, "test_that_hears_nothing", id="it hears nothing", marks=pytest.mark.long),
    ],
)
def test_one_bad_test_ends_the_run_and_is_named(tmp_path, code, name):
    for file, content in (("test_a.py", code), ("test_b.py", FINE), ("test_c.py", FINE)):
        (tmp_path / file).write_text(content)
    settings = ["-q", "-c", SETTINGS, "--rootdir", tmp_path, "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    limits = ["--timeout=2", "-o", "faulthandler_timeout=8"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *limits, tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert name in done.stdout
