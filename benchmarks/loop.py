"""A study's loop against the bare PyTorch loop, on the same model and data: time, and memory as samples grow.

    python benchmarks/loop.py [time] [jobs] [memory]

The bare loop slices a tensor, calls the model under no_grad and keeps the logits. Ours reads a stream, wraps the model
in an adapter, checks, keeps logits with ids, targets, context and a record per step, and writes one file per cell.
Both run alternately in one process; the ratio is that of the medians of CPU time, which other work on the machine
changes less than it changes the clock. A second process of the same study (`--jobs 2`) is measured by the clock, by
turns: processes take some seconds to start, so the gain is that of a whole study and that of its further cells.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from haptera.adapters import NoAdaptation
from haptera.data import ArrayData
from haptera.models import LeNet, ResNet
from haptera.run.loop import evaluate
from haptera.run.study import Study
from haptera.streams import Clean

REPEATS = 3
BATCH = 64
CELLS = (12, 48)


def images(samples: int, side: int = 32) -> ArrayData:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (samples, side, side), dtype=np.uint8)
    return ArrayData(pixels, generator.integers(0, 10, samples))


def bare(model: torch.nn.Module, inputs: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return torch.cat([model(inputs[start : start + BATCH]) for start in range(0, len(inputs), BATCH)]).numpy()


def ours(model: torch.nn.Module, data: ArrayData, folder: Path) -> None:
    evaluate(NoAdaptation(model), Clean(data, batch_size=BATCH)).save(folder / "cell.npz")


def times(model: torch.nn.Module, samples: int, side: int) -> tuple[float, float]:
    data = images(samples, side)
    inputs = data.images(np.arange(samples))
    one, two = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            start = time.process_time()
            bare(model, inputs)
            one.append(time.process_time() - start)
            start = time.process_time()
            ours(model, data, Path(folder))
            two.append(time.process_time() - start)
    return statistics.median(one), statistics.median(two)


def clock_of(cells: int, jobs: int) -> float:
    """Seconds that a study takes on so many processes of a core each, the start of the processes included."""
    torch.set_num_threads(1)
    data = images(2048)
    streams = [Clean(data, batch_size=BATCH, seed=seed, name=f"clean {seed}") for seed in range(cells)]
    with tempfile.TemporaryDirectory() as folder:
        study = Study({"net": ResNet(width=16, blocks=3).eval()}, streams, out=folder)
        start = time.perf_counter()
        study.run(jobs=jobs, progress=False)
        return time.perf_counter() - start


def peak(samples: int) -> float:
    """Peak memory in MB of a process that evaluates so many samples, its images generated as they are read."""
    code = f"import loop; loop.stream_of({samples})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return float(done.stdout)


class Generated(ArrayData):
    """A data set that holds no pixels: every batch is made when it is read."""

    def __init__(self, samples: int) -> None:
        super().__init__(np.zeros((1, 32, 32), np.uint8), np.zeros(1, np.int64))
        self.rows, self.targets = np.arange(samples), np.zeros(samples, np.int64)

    def images(self, positions: np.ndarray) -> torch.Tensor:
        return torch.full((len(positions), 1, 32, 32), 0.5)


def stream_of(samples: int) -> None:
    model = torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(1, 10))
    evaluate(NoAdaptation(model), Clean(Generated(samples), batch_size=256))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def print_times() -> None:
    print(f"threads {torch.get_num_threads()}, batch {BATCH}, grey images, median CPU seconds of {REPEATS}")
    print(f"{'model':<28}{'pixels':>7}{'samples':>8}{'bare s':>9}{'ours s':>9}{'ratio':>8}", flush=True)
    cases = {
        "LeNet, width 8": (LeNet(width=8), 4096, 32),
        "ResNet, width 8": (ResNet(width=8), 1024, 32),
        "ResNet, width 16, 9 blocks": (ResNet(width=16, blocks=3), 256, 32),
        "ResNet, width 16": (ResNet(width=16), 64, 224),
    }
    for name, (model, samples, side) in cases.items():
        one, two = times(model.eval(), samples, side)
        print(f"{name:<28}{side:>7}{samples:>8}{one:>9.3f}{two:>9.3f}{two / one:>8.3f}", flush=True)


def print_jobs() -> None:
    one, two = zip(*([clock_of(cells, jobs) for jobs in (1, 2)] for cells in CELLS), strict=True)
    for cells, alone, both in zip(CELLS, one, two, strict=True):
        print(f"{cells} cells: {alone:.1f} s with one process, {both:.1f} s with two, {alone / both:.2f} times as fast")
    print(f"each further cell: {(one[1] - one[0]) / (two[1] - two[0]):.2f} times as fast")


def print_memory() -> None:
    small, large = 1_000_000, 3_000_000
    first, last = peak(small), peak(large)
    per_sample = (last - first) * 1024**2 / (large - small)
    outputs = 10 * 4 + 8 + 8 + 4 + 5 * 4 + 8  # logits, id, target, step, shift ("clean"), severity
    data = 8 + 8 + 8  # the data set's own row numbers and targets, and the order
    print(f"peak memory: {first:.0f} MB at {small:,} samples, {last:.0f} MB at {large:,}")
    print(f"growth {per_sample:.0f} bytes per sample: outputs {outputs}, the data set's rows, targets and order {data}")


def main() -> None:
    parts = {"time": print_times, "jobs": print_jobs, "memory": print_memory}
    for part in sys.argv[1:] or parts:
        parts[part]()


if __name__ == "__main__":
    main()
