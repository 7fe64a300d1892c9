"""Large studies, a step at a time: plan, resume, import, measure and report, at growing sizes.

    python benchmarks/studies.py [STEP ...] [--sizes SMALL,..,LARGE]

Each size is a process of its own, whose CPU time (of all its threads) and peak memory are printed, with the exponent of
a power law through the times: 1 is linear. Cells hold eight samples of ten classes, so what is measured is the cost of
a cell, not of its samples. Imports are timed one by one: the exponent there is that of the cost of one import against
how many went before, and 0 is as it should be.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

STEPS = {
    "plan": (1_000, 10_000, 100_000),
    "resume": (1_000, 10_000, 100_000),
    "import": (100, 300, 1_000, 3_000),
    "measure": (500, 2_500, 20_000),
    "report": (10_000, 100_000, 1_000_000),
}
"""Step -> sizes: cells, or rows of the table for a report."""
ALLOWED = {"plan": 20.0, "resume": 10.0, "measure": 20.0, "report": 4.0}
"""CPU seconds at the largest size."""
SAMPLES, CLASSES, ADAPTERS, SEEDS = 8, 10, 10, 10
"""Of a cell, of a model, of a study, of a study at most; what is left is done by more models."""
FILE, ROWS = 3_200, 25
"""Bytes of a cell's file, and rows of a cell in the table, as cells of so few samples have them."""
SHIFTS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "fog",
    "snow", "brightness", "contrast", "pixelate", "jpeg_compression",
)  # fmt: skip


def study(cells: int, folder: Path):
    """A study of so many cells: tiny models x corruptions x seeds x settings of one adapter."""
    import torch

    from haptera import catalog
    from haptera.adapters import Tent
    from haptera.data import ArrayData
    from haptera.run.study import Study
    from haptera.streams import Corruptions

    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    data = ArrayData(generator.integers(0, 256, (SAMPLES, 8, 8), dtype=np.uint8), np.arange(SAMPLES) % CLASSES)
    per_seed = ADAPTERS * len(SHIFTS) * 5
    seeds = min(cells // per_seed, SEEDS)
    models = {f"net {i}": _network(torch) for i in range(cells // (per_seed * seeds))}
    adapters = {f"tent {i}": partial(Tent, lr=1e-3 * (i + 1)) for i in range(ADAPTERS)}
    stream = Corruptions(data, shifts=[catalog.find("shifts", name) for name in SHIFTS], batch_size=SAMPLES)
    return Study(models, [stream], adapters, out=folder, seeds=range(seeds))


def _network(torch):
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, CLASSES)).eval()


def finish(folder: Path, entries: Sequence) -> None:  # of `CellEntry`
    """Write the file of every cell, and the journal, as a run would."""
    from dataclasses import asdict

    from haptera.outputs import Outputs
    from haptera.run.cells import list_cells, study_ledger
    from haptera.run.journal import JOURNAL, finished_line, line_of

    generator = np.random.default_rng(0)
    logits = generator.normal(size=(SAMPLES, CLASSES)).astype(np.float32)
    (folder / "cells").mkdir(parents=True)
    lines = []
    for entry in entries:
        shift, _, severity = entry.part.rpartition(" ")
        context = {"shift": np.full(SAMPLES, shift or "clean"), "severity": np.full(SAMPLES, float(severity or 0))}
        outputs = Outputs(
            {"logits": logits + generator.random((SAMPLES, 1), np.float32)},
            np.arange(SAMPLES),
            generator.integers(0, CLASSES, SAMPLES),
            np.zeros(SAMPLES, np.int32),
            context,
            {"seconds": np.array([0.01]), "peak_bytes": np.array([1e8])},
            provenance=asdict(entry),
        )
        path = folder / entry.piece.path
        with NoSync():
            outputs.save(path)
        lines.append(line_of(entry.key, finished_line(path)))
    with study_ledger(folder) as ledger:
        list_cells(ledger, entries)
        (folder / JOURNAL).write_text("".join(lines))


def finish_unread(folder: Path, entries: Sequence, settings: dict) -> None:
    """Write a finished study whose files are checked and not read: any bytes, and a table of as many rows as usual."""
    from haptera import table as tables
    from haptera.run.cells import list_cells, study_ledger
    from haptera.run.journal import JOURNAL, finished_line, line_of
    from haptera.run.results import TABLE, digest_of

    (folder / "cells").mkdir(parents=True)
    lines = []
    for entry in entries:
        path = folder / entry.piece.path
        path.write_bytes(entry.key.encode() * (FILE // len(entry.key)))
        lines.append(line_of(entry.key, finished_line(path)))
    with study_ledger(folder) as ledger:
        list_cells(ledger, entries, settings=settings)
        (folder / JOURNAL).write_text("".join(lines))
        ledger._files = {}
        ledger.read()
        columns = {name: np.repeat([getattr(each, name) for each in entries], ROWS) for name in ("model", "adapter")}
        columns |= {"seed": np.repeat([each.seed for each in entries], ROWS), "stream": "corruptions"}
        columns |= {"shift": np.repeat([each.part for each in entries], ROWS)}
        columns |= {"measure": np.tile([f"measure {i}" for i in range(ROWS)], len(entries))}
        table = tables.tidy(pd.DataFrame(columns | {"value": np.random.default_rng(0).random(len(entries) * ROWS)}))
        tables.write(table, folder / TABLE, digest_of(ledger))


class NoSync:
    """Leaves the disk its time while the benchmark prepares itself."""

    def __enter__(self) -> None:
        self.sync, os.fsync = os.fsync, lambda _: None

    def __exit__(self, *_: object) -> None:
        os.fsync = self.sync


def prepare(step: str, size: int, folder: Path) -> None:
    """Write what a step starts from, in a process of its own."""
    if step == "report":
        from report import write_table

        write_table(folder, size)
    elif step == "measure":
        finish(folder, [cell.entry for cell in study(size, folder).cells()])
    elif step == "resume":
        from haptera.run.machine import RUN_ON, describe_machine

        made = study(size, folder)
        cells = made.cells()
        finish_unread(folder, [cell.entry for cell in cells], {RUN_ON: describe_machine()} | made._describe(cells))


def plan(size: int, folder: Path) -> Callable[[], object]:
    from haptera.run.cells import list_cells, study_ledger

    made = study(size, folder)

    def act() -> None:
        with study_ledger(folder) as ledger:
            cells, _, _ = made._plan(ledger)
            list_cells(ledger, [cell.entry for cell in cells], settings=made._describe(cells))

    return act


def resume(size: int, folder: Path) -> Callable[[], object]:
    made = study(size, folder)
    return lambda: made.run(progress=False)


def measure(size: int, folder: Path) -> Callable[[], object]:
    from haptera.run import results

    return lambda: results.measure(folder)


def report(size: int, folder: Path) -> Callable[[], object]:
    from haptera.run import results

    return lambda: results.report(folder)


def import_(size: int, folder: Path) -> Callable[[], object]:
    """Import so many files; the time of the step is that of the last fifty, the best of which count."""
    from haptera.run.importing import import_predictions

    path = folder.parent / "predictions.npz"
    generator = np.random.default_rng(0)
    content = io.BytesIO()
    np.savez(content, logits=generator.random((SAMPLES, CLASSES)), targets=np.arange(SAMPLES))
    path.write_bytes(content.getvalue())
    with NoSync():
        for i in range(size - 50):
            import_predictions(path, folder, model=f"net {i}", stream="val")

    def act() -> None:
        for i in range(50):
            import_predictions(path, folder, model=f"last {i}", stream="val")

    return act


def one(step: str, size: int, folder: Path) -> None:
    """Print the CPU seconds and the peak memory in MB of a step."""
    act = {"plan": plan, "resume": resume, "measure": measure, "report": report, "import": import_}[step](size, folder)
    start = time.process_time()
    act()
    seconds = time.process_time() - start
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def run(command: str, step: str, size: int, folder: Path) -> str:
    code = f"import studies; from pathlib import Path; studies.{command}({step!r}, {size}, Path({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    assert not done.returncode, done.stderr
    return done.stdout


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of a line through logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) if len(sizes) > 1 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", default=list(STEPS))
    parser.add_argument("--sizes", help="instead of those of the step")
    options = parser.parse_args()
    print(f"{'step':<10}{'size':>10}{'CPU s':>9}{'ms each':>9}{'peak MB':>9}", flush=True)
    for step in options.steps:
        sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else STEPS[step]
        times, peaks = [], []
        for size in sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / "study"
                run("prepare", step, size, folder)
                seconds, peak = map(float, run("one", step, size, folder).split())
            times.append(seconds)
            peaks.append(peak)
            each = seconds / (50 if step == "import" else size) * 1000
            print(f"{step:<10}{size:>10,}{seconds:>9.2f}{each:>9.3f}{peak:>9.0f}", flush=True)
        allowed = f"; {ALLOWED[step]:g} s allowed at {sizes[-1]:,}" if step in ALLOWED else ""
        print(f"{step}: time grows as size ** {exponent(sizes, times):.2f}{allowed}", flush=True)


if __name__ == "__main__":
    main()
