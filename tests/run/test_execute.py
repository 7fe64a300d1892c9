"""Where cells run: a dying process costs only the cell that kills it."""

import os
import signal
import time

import pytest

from haptera.errors import HapteraError
from haptera.run.execute import in_processes, in_this_process, on_cluster


def note(folder, index):
    (folder / f"{index}.{os.getpid()}.{time.time_ns()}").touch()
    return "" if index != 3 else "three is no good"


def kill_at_two(folder, index):
    if index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return note(folder, index)


def ended(pairs):
    return dict(sorted(pairs))


def runs(folder, index):
    return len(list(folder.glob(f"{index}.*")))


@pytest.fixture
def work(tmp_path):
    from functools import partial

    return partial(note, tmp_path)


def test_one_after_the_other(work):
    assert list(in_this_process(work, range(5))) == [(0, ""), (1, ""), (2, ""), (3, "three is no good"), (4, "")]


@pytest.mark.long
def test_in_processes_every_cell_runs_once(work, tmp_path):
    assert ended(in_processes(work, range(6), 2)) == {0: "", 1: "", 2: "", 3: "three is no good", 4: "", 5: ""}
    assert [runs(tmp_path, index) for index in range(6)] == [1] * 6


@pytest.mark.long
def test_a_cell_that_kills_its_process_fails_alone(tmp_path):
    from functools import partial

    result = ended(in_processes(partial(kill_at_two, tmp_path), range(7), 2))
    assert result.pop(2) == "its process died (killed, or out of memory)"
    assert result.pop(3) == "three is no good"
    assert set(result.values()) == {""}
    assert set(result) == {0, 1, 4, 5, 6}


def test_what_cannot_be_sent_to_a_process_is_said():
    lock = __import__("threading").Lock()
    with pytest.raises(HapteraError, match="cannot be sent to other processes"):
        list(in_processes(lambda index: str(lock), range(2), 2))


@pytest.mark.long
def test_a_cluster_out_of_reach_is_said(work):
    pytest.importorskip("distributed")
    with pytest.raises(HapteraError, match=r"cannot reach a Dask scheduler at tcp://127\.0\.0\.1:9"):
        list(on_cluster(work, range(2), "tcp://127.0.0.1:9"))
