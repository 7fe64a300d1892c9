"""Stopped in any way and resumed: nothing finished is run again, and the result is the same."""

import random
import signal
import time

import pandas as pd
import pytest

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]

STUDY = """
data = "data.npz"
batch_size = 8
models = [{name = "a", build = "net.py:build"}, {name = "b", build = "resnet", arguments = {width = 4}}]
streams = ["clean", {use = "corruptions", shifts = ["gaussian_noise"]}]
adapters = ["none", "batchnorm"]
"""


def values(path):
    table = pd.read_parquet(path)
    return table[~table["measure"].isin(COSTS)].reset_index(drop=True)


def stamps(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.glob("*.npz")}


def interrupted_by(stops, folder, haptera, jobs):
    """Run a study undisturbed, and again with each of these stops before it may end; both must say the same."""
    (folder / "study.toml").write_text(STUDY)
    run = ["run", "study.toml", "--quiet", "--jobs", jobs]
    start = time.monotonic()
    assert haptera("run", "study.toml", "--quiet", "--out", "undisturbed").returncode == 0
    duration = time.monotonic() - start
    cells, finished = folder / "disturbed" / "cells", {}
    for stop in stops:
        stop([*run, "--out", "disturbed"], duration)
        now = stamps(cells)
        assert finished.items() <= now.items(), "a finished cell was run again"
        finished = now
    assert haptera(*run, "--out", "disturbed").returncode == 0
    assert finished.items() <= stamps(cells).items()
    pd.testing.assert_frame_equal(
        values(folder / "disturbed/table.parquet"), values(folder / "undisturbed/table.parquet")
    )
    assert not list(cells.glob(".*")), "a half-written file was left"
    return finished


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_between_two_cells_it_goes_on(folder, haptera, jobs):
    def stop(run, _):
        process = haptera.start_until("*/cells/*.npz", *run, after=5)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    assert len(interrupted_by([stop], folder, haptera, jobs)) >= 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_a_random_moment_five_times_it_goes_on(folder, haptera, jobs):
    moments = random.Random(jobs)

    def stop(run, duration):
        process = haptera.start(*run)
        time.sleep(moments.uniform(0.3, 0.9) * duration)
        process.kill()
        process.communicate()

    interrupted_by([stop] * 5, folder, haptera, jobs)


TUNE = ["tune", "--model", "net.py:build", "--data", "data.npz", "--adapter", "tent", "--grid", "lr=1e-3,1e-1"]
COMMANDS = {
    "run": (["run", "study.toml", "--quiet"], "table.parquet"),
    "tune": ([*TUNE, "--shift", "saturate", "--shift", "speckle_noise", "--quiet"], "tried.csv"),
}
"""Command -> its words, and the file that must end the same."""


def outcome(path):
    return values(path) if path.suffix == ".parquet" else pd.read_csv(path)


def by_signal(number, moments):
    def stop(haptera, run, cells):
        process = haptera.start_until("*/cells/*.npz", *run, after=moments.randrange(1, 8))
        process.send_signal(number)
        _, said = process.communicate()
        assert process.returncode == (-number if number == signal.SIGKILL else 130), said
        assert number == signal.SIGKILL or "the same command goes on from there" in said
        assert "Traceback" not in said

    return stop


def by_a_full_disk(moments):
    def stop(haptera, run, cells):
        most = moments.randrange(3_000, 12_000)  # bytes of any file
        done = haptera.apart(*run, largest_file=most)
        assert done.returncode == 1, done.stderr
        assert "the same command goes on" in done.stderr
        assert "Traceback" not in done.stderr

    return stop


def by_damage(how, moments):
    def stop(haptera, run, cells):
        assert haptera(*run).returncode == 0
        path = moments.choice(sorted(cells.glob("*.npz")))
        content = bytearray(path.read_bytes())
        if how == "truncated":
            content = content[: moments.randrange(len(content))]
        else:
            content[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
        path.write_bytes(bytes(content))
        assert path.name in haptera("verify", cells.parent).stdout

    return stop


WAYS = {
    "SIGKILL": lambda moments: by_signal(signal.SIGKILL, moments),
    "Ctrl-C": lambda moments: by_signal(signal.SIGINT, moments),
    "SIGTERM": lambda moments: by_signal(signal.SIGTERM, moments),
    "a full disk": by_a_full_disk,
    "a truncated piece": lambda moments: by_damage("truncated", moments),
    "a flipped bit": lambda moments: by_damage("flipped", moments),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_stopped_in_any_way_the_same_command_ends_the_same(folder, haptera, command, way):
    (folder / "study.toml").write_text(STUDY)
    words, file = COMMANDS[command]
    assert haptera(*words, "--out", "undisturbed").returncode == 0
    cells = folder / "disturbed" / "cells"
    WAYS[way](random.Random(f"{command} {way}"))(haptera, [*words, "--out", "disturbed"], cells)
    done = haptera(*words, "--out", "disturbed")
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(outcome(folder / "disturbed" / file), outcome(folder / "undisturbed" / file))
    assert haptera("verify", "disturbed").returncode == 0
