"""Every reader of the package, given damaged files: it reads them, or says in one sentence which file is wrong and why.

No traceback, no crash, no more than 20 seconds of the processor, no more than 1.5 GB.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FINE = {"read", "refused", "skipped"}
NAMES = [
    *("outputs", "outputs-top", "measure", "report", "import", "calibration", "nwb", "recording-npz", "recording-npy"),
    *("recording-hdf5", "recording-matlab", "recording-csv", "tracks-csv", "deeplabcut-hdf5", "deeplabcut-project"),
    *("coco", "split", "study-file", "data-npz", "data-folder", "data-flat-folder", "cifar-c", "imagenet-c", "mapping"),
    *("data-parquet", "data-saved", "data-tar", "data-csv", "data-cifar"),
    *("trends", "dependencies", "weights", "embedding", "attribute", "pose-model", "materialised", "table", "profile"),
]
CASES, MANY = 7, 80
COSTLY = {"report": 2, "import": 4, "measure": 4, "outputs": 4, "study-file": 3}
"""Readers that take longer than all others, and how many cases of them are in the default suite."""


class Server:
    """Asks the process of `tests.fuzz.server`."""

    def __init__(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.server"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, reader: str, seed: int | None) -> dict[str, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"reader": reader, "seed": seed}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the server ended while it read {reader} with seed {seed}"
        return json.loads(answer)

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


def check(server, reader, seeds):
    wrong = [found for seed in seeds if (found := server.ask(reader, seed))["outcome"] not in FINE]
    shown = "\n\n".join(
        f"{each['outcome']}, seed {each['seed']}: {each.get('change')}\n{each['said']}" for each in wrong
    )
    assert not wrong, f"{len(wrong)} of {len(seeds)} damaged files of {reader}:\n{shown}"


@pytest.mark.long
@pytest.mark.parametrize("reader", NAMES)
def test_damaged_files_are_read_or_refused_by_name(server, reader):
    whole = server.ask(reader, None)
    assert whole["outcome"] == "read", whole["said"]
    check(server, reader, range(COSTLY.get(reader, CASES)))


@pytest.mark.slow
@pytest.mark.parametrize("reader", NAMES)
def test_many_damaged_files_are_read_or_refused_by_name(server, reader):
    check(server, reader, range(CASES, CASES + MANY))


def test_every_reader_is_listed():
    from tests.fuzz.samples import READERS

    assert set(NAMES) == set(READERS)
