"""Commands as processes of their own, without the seconds that their libraries take to import.

One process has everything imported. For each command it forks a child, which becomes `python -m haptera` in a folder
and an environment of its own: it can be killed and limited, and its exit code is what it would be.
"""

import contextlib
import gc
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
LIBRARIES = ("torch", "pandas", "pyarrow.parquet", "scipy.stats", "sklearn.linear_model", "safetensors.torch", "loky")


class Command:
    """A command that was started, with what `subprocess.Popen` has of the same names."""

    def __init__(self, server: socket.socket, job: dict[str, Any]) -> None:
        (out, to_out), (error, to_error) = os.pipe(), os.pipe()
        self._news, to_news = socket.socketpair()
        theirs = [to_out, to_error, to_news.detach()]
        socket.send_fds(server, [json.dumps(job).encode()], theirs)
        _close(theirs)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(error)
        self.returncode: int | None = None
        self.pid = self._number()

    def _number(self) -> int:
        return int.from_bytes(self._news.recv(4), signed=True)

    def poll(self) -> int | None:
        return self.wait() if self.returncode is not None or select.select([self._news], [], [], 0)[0] else None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = self._number()
            self._news.close()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        said: list[str] = []
        with self.stdout, self.stderr:
            reader = Thread(target=lambda: said.append(self.stderr.read()))
            reader.start()
            out = self.stdout.read()
            reader.join()
        self.wait()
        return out, said[0]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks. It is started for the first command, and ends when its socket is closed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None

    def start(self, **job: Any) -> Command:
        if self._process is None:
            self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with theirs:
                command, environment = [sys.executable, __file__], job["environment"] | {"PYTHONPATH": str(SOURCE)}
                self._process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, env=environment)
        return Command(self._socket, job)

    def close(self) -> None:
        if self._process is not None:
            self._socket.close()
            self._process.wait()


def _close(descriptors: Iterable[int]) -> None:
    for each in descriptors:
        os.close(each)


def serve(server: socket.socket) -> dict[str, Any] | None:
    """Fork a child for every job. Returns in the child, with its job; in the server when there are no more."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(server, 1 << 17, 3)
        if not message:
            return None
        if not os.fork():
            return _watch(server, json.loads(message), descriptors)
        _close(descriptors)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _watch(server: socket.socket, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Fork the command, wait for it and tell how it ended; returns in the command."""
    child = os.fork()
    if not child:
        server.close()
        for place, each in enumerate([os.open(os.devnull, os.O_RDONLY), *descriptors[:2]]):
            os.dup2(each, place)
            os.close(each)
        os.close(descriptors[2])
        return job
    _close(descriptors[:2])
    with socket.socket(fileno=descriptors[2]) as news:
        news.sendall(child.to_bytes(4))
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):  # nobody waits for it
            news.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
    os._exit(0)


def become(
    arguments: list[str], folder: str, environment: dict[str, str], group: bool, largest_file: int | None
) -> None:
    """Be the command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    if group:
        os.setsid()
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if "PAUSE_HOOK" in environment:
        runpy.run_path(environment["PAUSE_HOOK"])
    sys.argv[1:] = arguments
    runpy.run_module("haptera", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests
    for each in (*LIBRARIES, *(f"haptera.cli.{path.stem}" for path in (SOURCE / "haptera/cli").glob("[a-z]*.py"))):
        __import__(each)
    gc.freeze()  # or every child copies all of it as it ends
    job = serve(socket.socket(fileno=os.dup(0)))
    if job is not None:
        become(**job)
    with contextlib.suppress(ChildProcessError):
        while job is None:
            os.wait()
