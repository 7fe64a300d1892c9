"""A service that is killed at any moment goes on to the numbers of one that never was."""

import json
import os
import random
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.live.guarded_models import images, small_net

from haptera.adapters import RDumb
from haptera.live.guard import Guard
from haptera.live.log import read_log

STEPS, SNAPSHOT = 300, 15
SETTINGS = {"warmup": 200, "look": 64, "rotate": 90, "snapshot_every": SNAPSHOT}


def answer_stream(out: Path, tell) -> None:
    """Go through the stream from where the guard is, keep the answers, and tell each step."""
    make = partial(RDumb, lr=0.05, margin=2.0, redundancy=2.0, every=33)
    with Guard(small_net(), make, log=out / "log", **SETTINGS) as guard, open(out / "answers", "ab") as file:
        for step in range(guard.steps, STEPS):
            ids = range(8 * step, 8 * step + 8)
            logits = guard(images(8, seed=step % 50), ids=ids)
            if step % 3 == 0:
                guard.label(list(ids)[:4], [0, 1, 2, 3])
            file.write(np.concatenate([[step], logits.numpy().ravel()]).astype(np.float32).tobytes())
            file.flush()
            tell(f"{step}\n")
        status = guard.status()
        tell(f"ends with {status['accuracy']} {status['resets']} {status['compared']} {status['changed']}\n")
        np.save(out / "weights.npy", guard.adapter.release()[0][1].weight.detach().numpy())


def serve(folder: Path, until: int | None = None) -> tuple[str, int]:
    """Run the service in a process of its own, kill it after a step, and return its last words and how it ended."""
    folder.mkdir(exist_ok=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # never returns into pytest
        try:
            os.close(reading)
            torch.set_num_threads(1)
            answer_stream(folder, lambda text: os.write(writing, text.encode()))
        except BaseException as error:
            os.write(writing, f"failed: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    last = ""
    with open(reading) as told:
        for line in told:
            last = line.strip()
            if until is not None and last == str(until):
                os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return last, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


ROW = 4 * (1 + 8 * 4)


def answers_of(folder: Path) -> dict[int, np.ndarray]:
    """Step -> logits; those of steps that were made again must be the same bit by bit."""
    content = (folder / "answers").read_bytes()
    rows = np.frombuffer(content[: len(content) // ROW * ROW], np.float32).reshape(-1, 33)
    found: dict[int, np.ndarray] = {}
    for row in rows:
        assert np.array_equal(found.setdefault(int(row[0]), row), row)
    return found


@pytest.mark.slow
def test_ten_kills_change_no_number_and_tear_no_line(tmp_path):
    whole, code = serve(tmp_path / "whole")
    assert code == 0, whole
    moments, draw, step = [], random.Random(0), 0
    for _ in range(10):
        step += draw.randint(3, 35)
        told, code = serve(tmp_path / "killed", until=step)
        moments.append((step, told, code))
        for path in (tmp_path / "killed" / "log").glob("*.jsonl"):  # none, right after a rotation
            lines = path.read_bytes()
            for line in lines[: lines.rfind(b"\n") + 1].splitlines():
                json.loads(line)
    assert all(code == -signal.SIGKILL for *_, code in moments), moments
    last, code = serve(tmp_path / "killed")
    assert code == 0, last
    assert last == whole
    assert last.startswith("ends with")
    first, second = answers_of(tmp_path / "whole"), answers_of(tmp_path / "killed")
    assert first.keys() == second.keys() == set(range(STEPS))
    assert all(np.array_equal(first[step], second[step]) for step in first)
    assert np.array_equal(np.load(tmp_path / "whole" / "weights.npy"), np.load(tmp_path / "killed" / "weights.npy"))
    for name in ("whole", "killed"):
        for path in (tmp_path / name / "log").glob("*.jsonl"):
            content = path.read_bytes()
            assert content.endswith(b"\n")
            assert all(json.loads(line) for line in content.splitlines())
    steps, other = read_log(tmp_path / "whole" / "log")[0], read_log(tmp_path / "killed" / "log")[0]
    aside = ["time", "monotonic", "latency", "memory", "events"]
    assert steps.drop(columns=aside).equals(other.drop(columns=aside))
