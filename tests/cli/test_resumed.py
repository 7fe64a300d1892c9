"""`embed`, `attribute` and `identify`, stopped in the middle or with a damaged piece, end the same when run again."""

import json
import random
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.attribution.carriers import DecoyFit
from haptera.analyses.embedding.fits import FitTask
from haptera.analyses.identify.analysis import RowTask

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

ROWS = """
dimensions = 2
steps = 150
batch_size = 64
rows = [
    {title = "sphere", process = "sphere/uniform/vmf=10", model = "sphere/vmf", seeds = [0, 1]},
    {title = "box", process = "box/uniform/laplace=0.1", model = "box/laplace"},
]
"""
SHORT = ("--steps", 30, "--batch-size", 64, "--seeds", 2, "--shuffles", 1, "--baseline", "pca", "--no-topology")
COMMANDS = {
    "embed": (("embed", "mouse.npz", "--label", "heading", *SHORT), FitTask, "fits/*", 4, "fit"),  # and a baseline
    "attribute": (("attribute", "hd", "--fits", 3, "--copies", 2), DecoyFit, "fits/*.safetensors", 3, "fit"),
    "identify": (("identify", "rows.toml"), RowTask, "rows/*.json", 3, "row"),
}


@pytest.fixture(params=list(COMMANDS))
def command(request, haptera):
    """A command with what it reads, the class of its pieces, where they are, how many, and what they are called."""
    generator = np.random.default_rng(0)
    angle = np.mod(np.cumsum(generator.normal(0, 0.15, 400)), 2 * np.pi)
    rates = 0.1 + 4 * np.exp(3 * (np.cos(angle[:, None] - np.arange(5) * 1.257) - 1))
    np.savez(haptera.folder / "mouse.npz", spikes=generator.poisson(rates), heading=angle)
    (haptera.folder / "rows.toml").write_text(ROWS)
    if request.param == "attribute":
        few = ("--no-controls", "--steps", 30, "--batch-size", 64, "--quiet")
        assert haptera("embed", "mouse.npz", "--label", "heading", *few, "--out", "hd").returncode == 0
    return COMMANDS[request.param]


def results(folder: Path) -> tuple:
    """Everything that a command leaves but for times, which differ."""
    content = json.loads((folder / "result.json").read_text())
    table = pd.read_parquet(folder / "table.parquet").drop(columns="seconds", errors="ignore")
    names = ("embedding.npz", "model.safetensors")
    return content, table.to_csv(), [(folder / name).read_bytes() for name in names if (folder / name).is_file()]


def stamps(folder: Path, pattern: str) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in folder.glob(pattern)}


def undisturbed(haptera, arguments) -> tuple:
    assert haptera(*arguments, "--out", "undisturbed", "--quiet").returncode == 0
    return results(haptera.folder / "undisturbed")


def test_an_interruption_says_how_to_go_on_and_then_ends_the_same(command, haptera, monkeypatch):
    arguments, kind, pattern, count, noun = command
    make, made = kind.make, []

    def interrupted(self):
        if len(made) == 1:
            raise KeyboardInterrupt
        made.append(self)
        return make(self)

    monkeypatch.setattr(kind, "make", interrupted)
    done = haptera(*arguments, "--out", "out", "--quiet")
    told = f"error: stopped after 1 of {count} {noun}s; the same command goes on from there\n"
    assert (done.returncode, done.stderr) == (130, told)
    kept = stamps(haptera.folder / "out", pattern)
    assert len(kept) == 1
    monkeypatch.setattr(kind, "make", make)
    assert haptera(*arguments, "--out", "out", "--quiet").returncode == 0
    assert kept.items() <= stamps(haptera.folder / "out", pattern).items()
    assert results(haptera.folder / "out") == undisturbed(haptera, arguments)


def test_a_damaged_piece_is_named_and_made_again(command, haptera, monkeypatch):
    arguments, kind, pattern, count, noun = command
    expected = undisturbed(haptera, arguments)
    pieces = sorted((haptera.folder / "undisturbed").glob(pattern))
    files = [path if path.is_file() else path / "model.safetensors" for path in pieces]
    flipped = bytearray(files[0].read_bytes())
    flipped[len(flipped) // 2] ^= 1
    files[0].write_bytes(flipped)
    files[1].write_bytes(files[1].read_bytes()[:-1])
    make, made = kind.make, []
    monkeypatch.setattr(kind, "make", lambda self: (made.append(self.piece.path), make(self))[1])
    done = haptera(*arguments, "--out", "undisturbed")
    assert done.returncode == 0
    damaged = [str(path.relative_to(haptera.folder / "undisturbed")) for path in pieces[:2]]
    assert sorted(made) == damaged
    assert all(name in done.stderr for name in damaged)
    first_apart = kind is FitTask  # the first fit is a stage of its own, and then one of those that are found finished
    told = f"1 {noun} run, {count - 1} found" if first_apart else f"2 {noun}s run, {count - 2} found"
    assert f"{told} finished, 0 failed" in done.stderr
    assert results(haptera.folder / "undisturbed") == expected


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_stopped_between_two_pieces_it_goes_on(command, haptera, number):
    arguments, _, pattern, _, _ = command
    process = haptera.start_until(f"*/{pattern}", *arguments, "--out", "out", "--quiet", after=1)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130), said
    kept = stamps(haptera.folder / "out", pattern)
    assert haptera.apart(*arguments, "--out", "out", "--quiet").returncode == 0
    assert kept.items() <= stamps(haptera.folder / "out", pattern).items()
    assert results(haptera.folder / "out") == undisturbed(haptera, arguments)


def test_killed_at_random_moments_it_goes_on(command, haptera):
    arguments = command[0]
    start = time.monotonic()
    assert haptera.apart(*arguments, "--out", "undisturbed", "--quiet").returncode == 0
    duration, moments = time.monotonic() - start, random.Random(0)
    for _ in range(4):
        process = haptera.start(*arguments, "--out", "out", "--quiet")
        time.sleep(moments.uniform(0.3, 1.0) * duration)
        process.kill()
        process.communicate()
    assert haptera.apart(*arguments, "--out", "out", "--quiet").returncode == 0
    assert results(haptera.folder / "out") == results(haptera.folder / "undisturbed")
    assert not list((haptera.folder / "out").rglob("*.part"))


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(command, haptera):
    arguments = command[0]
    done = haptera.apart(*arguments, "--out", "out", "--quiet", largest_file=2500)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: cannot write ")
    assert "the same command goes on" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert haptera.apart(*arguments, "--out", "out", "--quiet").returncode == 0
    assert results(haptera.folder / "out") == undisturbed(haptera, arguments)
