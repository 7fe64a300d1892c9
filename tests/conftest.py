"""What several tests share: a small model in a file, small data on disk, and the command line as a user runs it."""

import contextlib
import io
import logging
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
from hypothesis import HealthCheck, settings
from tests.commands import call
from tests.forking import Command, ForkServer

# Virtual machines may announce AMX and die of it in the first product of bfloat16; oneDNN reads this at its first use.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
torch.set_num_threads(1)  # the networks here are too small to share among cores
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")  # time says nothing about the code where others use the processor
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


def wait_until(condition: Callable[[], object], process: Command | subprocess.Popen | None = None) -> None:
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


@pytest.fixture(autouse=True)
def the_log_is_left_as_it_was():
    """No test leaves the library's log silent, or filtered, for those after it."""
    log = logging.getLogger("haptera")

    def state() -> tuple[object, ...]:
        return (
            log.level,
            log.disabled,
            log.propagate,
            list(log.filters),
            list(log.handlers),
            logging.root.manager.disable,
        )

    before = state()
    yield
    assert state() == before, "the log of haptera is not as it was before this test"


def write_small_model_and_data(folder: Path) -> Path:
    """Write `net.py` and `data.npz` (40 grey 12 x 12 images of 3 classes)."""
    (folder / "net.py").write_text(NET)
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 12, 12), dtype=np.uint8)
    np.savez(folder / "data.npz", images=images, labels=generator.integers(0, 3, 40))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `net.py` and `data.npz`."""
    return write_small_model_and_data(tmp_path)


class CommandLine:
    """Runs `haptera` in a folder: in this process, or where that matters in one of its own."""

    def __init__(self, folder: Path, server: ForkServer) -> None:
        self.folder = folder
        self.command = [sys.executable, "-m", "haptera"]
        self.environment = os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
        self._server = server

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

    def apart(self, *arguments: object, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command as a process of its own, which may be unable to write files of more than so many bytes."""
        process = self.start(*arguments, largest_file=largest_file)
        out, error = process.communicate()
        return subprocess.CompletedProcess(arguments, process.wait(), out, error)

    def start(self, *arguments: object, group: bool = False, largest_file: int | None = None, **more: str) -> Command:
        """Start a command, in a group of processes of its own if asked, with more variables in its environment."""
        return self._server.start(
            arguments=[str(each) for each in arguments],
            folder=str(self.folder),
            environment=self.environment | more,
            group=group,
            largest_file=largest_file,
        )

    def start_until(self, pattern: str, *arguments: object, after: int = 1) -> Command:
        """Start a command and return once it has finished so many files of this pattern and waits before the next."""
        hook, paused = self.folder / "pause" / "sitecustomize.py", self.folder / "pause" / "paused"
        hook.parent.mkdir(exist_ok=True)
        paused.unlink(missing_ok=True)
        hook.write_text(PAUSE)
        path = os.pathsep.join(filter(None, [str(hook.parent), self.environment.get("PYTHONPATH")]))
        settings = {"PAUSE_PATTERN": pattern, "PAUSE_AFTER": str(after), "PAUSE_FILE": str(paused)}
        process = self.start(*arguments, PYTHONPATH=path, PAUSE_HOOK=str(hook), **settings)
        wait_until(paused.exists, process)
        return process


@pytest.fixture(scope="session")
def fork_server():
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def haptera(folder: Path, fork_server: ForkServer) -> CommandLine:
    return CommandLine(folder, fork_server)
