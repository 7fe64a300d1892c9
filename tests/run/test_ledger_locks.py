"""Who may write into a folder of finished pieces: locks, with flock and without, and who waits."""

import errno
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from tests.run.test_ledger import ONE, keys, ledger_of, reopened

from haptera.errors import Busy, HapteraError
from haptera.run.ledger import Ledger


def test_a_second_writer_is_kept_out_and_one_that_waits_gets_its_turn(tmp_path):
    turns = []

    def second():
        with Ledger(tmp_path, "study", wait=None) as ledger:
            turns.append(keys(ledger.finished))

    with Ledger(tmp_path, "study", noun="cell") as ledger:
        ledger.plan([ONE], {})
        waiting = threading.Thread(target=second)
        waiting.start()
        refused = []

        def third():
            try:
                with Ledger(tmp_path, "study", wait=0.01):
                    pass
            except HapteraError as error:
                refused.append(str(error))

        other = threading.Thread(target=third)
        other.start()
        other.join()
        assert "another run is writing" in refused[0]
        assert not turns
        with ledger.writing(ONE) as file:
            file.write(b"x")
    waiting.join()
    assert turns == [["k1"]]


@pytest.fixture
def without_flock(monkeypatch):
    """A drive without locks of its own, as some network drives are: what a process holds is a file with its name."""

    def missing(*_):
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr("fcntl.flock", missing)


HOLD = """
import sys, time
from filelock import SoftFileLock
lock = SoftFileLock(sys.argv[1])
with lock:
    print()
    time.sleep(600)
"""


@contextmanager
def holder(folder):
    """A process that holds the lock of a folder until it is killed, in the end."""
    with subprocess.Popen([sys.executable, "-uc", HOLD, folder / ".lock"], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        yield process
        process.kill()


def test_without_flock_a_run_that_goes_on_is_named_and_the_lock_of_a_killed_one_taken_over(tmp_path, without_flock):
    with holder(tmp_path) as other:
        message = rf"another run \(process {other.pid} on .+\) is writing into .*; if it is gone, delete .*\.lock"
        with pytest.raises(Busy, match=message), Ledger(tmp_path, "study", wait=0.1):
            pass
    assert (tmp_path / ".lock").read_text().startswith(f"{other.pid}\n")
    ledger_of(tmp_path)
    assert keys(reopened(tmp_path).finished) == ["k1", "k2"]


def test_without_flock_an_empty_lock_that_was_copied_is_nobodys(tmp_path, without_flock):
    (tmp_path / ".lock").touch()
    with Ledger(tmp_path, "study", wait=0.1) as ledger:
        ledger.plan([ONE], {})
    assert not (tmp_path / ".lock").exists()


def test_a_run_that_waits_outlives_the_folder_of_one_that_came_to_nothing(tmp_path):
    folder, turns = tmp_path / "out", []

    def second():
        with Ledger(folder, "study", wait=None) as ledger:
            ledger.plan([ONE], {})
            turns.append(keys(ledger.missing()))

    waiting = threading.Thread(target=second)

    def first():
        with Ledger(folder, "study"):
            waiting.start()
            time.sleep(0.5)
            raise HapteraError("nothing came of it")

    with pytest.raises(HapteraError, match="nothing"):
        first()
    waiting.join()
    assert turns == [["k1"]]
    assert reopened(folder).pieces == {"k1": ONE}
