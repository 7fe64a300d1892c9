"""What several tests share: a small model in a file, small data on disk, and the command line as a user runs it."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from tests.commands import call

torch.set_num_threads(1)  # the networks here are too small to share among cores
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # by nohup, or a shell that runs the tests behind it
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=3, channels=1):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, classes)

    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)))


def build(classes=3, channels=1):
    return Net(classes, channels)


def pair():
    class Pair(Net):
        def forward(self, images):
            logits = super().forward(images)
            return logits, logits
    return Pair()


def broken():
    raise RuntimeError("no such checkpoint")


def number():
    return 3
"""


PAUSE = """
import fnmatch, os, sys, threading

finished = 0

def pause(event, arguments):  # files are written beside and renamed, so a rename is a finished file
    global finished
    if event != "os.rename" or not fnmatch.fnmatch(str(arguments[1]), os.environ["PAUSE_PATTERN"]):
        return
    finished += 1
    if finished > int(os.environ["PAUSE_AFTER"]):
        open(os.environ["PAUSE_FILE"], "w").close()
        threading.Event().wait()

sys.addaudithook(pause)
"""


def wait_until(condition: Callable[[], object], process: subprocess.Popen | None = None) -> None:
    """Wait until something holds; fail if the process it depends on has ended. The time limit is the test's own."""
    while not condition():
        if process is not None and process.poll() is not None:
            assert condition(), f"it ended with {process.returncode}: {process.communicate()[1]}"
            return
        time.sleep(0.01)


@pytest.fixture(autouse=True, scope="session")
def nothing_is_left_in_the_root():
    """No test, and no command that a test runs, leaves a file in the folder from which the tests are run."""
    before = set(Path.cwd().iterdir())
    yield
    left = [
        path.name for path in set(Path.cwd().iterdir()) - before if not path.name.endswith(("_cache", ".hypothesis"))
    ]
    assert not left, f"left in {Path.cwd()}: {left}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `net.py` and `data.npz` (40 grey 12 x 12 images of 3 classes)."""
    (tmp_path / "net.py").write_text(NET)
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 12, 12), dtype=np.uint8)
    np.savez(tmp_path / "data.npz", images=images, labels=generator.integers(0, 3, 40))
    return tmp_path


class CommandLine:
    """Runs `haptera` in a folder: in this process, or where that matters in one of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = [sys.executable, "-m", "haptera"]
        self.environment = os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a command here, which spares the seconds that its libraries take to import."""
        out, error = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, COLUMNS="200"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
        ):
            code = call(*arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())

    def apart(self, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
        """Run a command as a process of its own."""
        return subprocess.run(
            [*self.command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )

    def start(self, *arguments: object, **options) -> subprocess.Popen:
        return subprocess.Popen(
            [*self.command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def start_until(self, pattern: str, *arguments: object, after: int = 1) -> subprocess.Popen:
        """Start a command and return once it has finished so many files of this pattern and waits before the next."""
        hook, paused = self.folder / "pause", self.folder / "pause" / "paused"
        hook.mkdir(exist_ok=True)
        paused.unlink(missing_ok=True)
        (hook / "sitecustomize.py").write_text(PAUSE)
        usual = self.environment
        path = os.pathsep.join(filter(None, [str(hook), usual.get("PYTHONPATH")]))
        settings = {"PAUSE_PATTERN": pattern, "PAUSE_AFTER": str(after), "PAUSE_FILE": str(paused)}
        self.environment = usual | settings | {"PYTHONPATH": path}
        try:
            process = self.start(*arguments)
        finally:
            self.environment = usual
        wait_until(paused.exists, process)
        return process


@pytest.fixture
def haptera(folder: Path) -> CommandLine:
    return CommandLine(folder)
