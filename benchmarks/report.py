"""A million rows of results: time and memory of `haptera report`, as a process of its own.

    python benchmarks/report.py

The folder holds a table as a study of 100 models x 100 streams with 100 windows each would leave it.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from haptera import table as tables
from haptera.report.study import complete
from haptera.run.cells import list_cells, study_ledger
from haptera.run.results import TABLE, digest_of

MODELS, STREAMS, WINDOWS = 100, 100, 100


def rows(streams: int = STREAMS) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    model, stream, window = np.indices((MODELS, streams, WINDOWS)).reshape(3, -1)
    value = np.clip(0.5 + 0.4 * generator.random(len(model)) - 0.003 * window, 0, 1)
    frame = pd.DataFrame(
        {
            "model": np.char.add("model ", model.astype(str)),
            "stream": np.char.add("stream ", stream.astype(str)),
            "adapter": np.where(model % 2, "none", "batchnorm"),
            "shift": np.char.add("shift ", (stream % 15).astype(str)),
            "severity": stream % 5 + 1.0,
            "step": window,
            "measure": "accuracy_over_steps",
            "value": value,
            "low": value - 0.02,
            "high": value + 0.02,
            "n": 640,
            "seed": 0,
        }
    )
    whole = frame[frame["step"] == 0].assign(measure="accuracy", step=None)
    clean = whole[whole["stream"] == "stream 0"].assign(stream="clean", shift="clean", severity=0.0)
    return pd.concat([frame, whole, clean])


def write_table(folder: Path, size: int) -> int:
    """Write the folder of a study whose table has so many rows, or about as many; return how many."""
    table = complete(tables.tidy(rows(STREAMS * size // (MODELS * STREAMS * WINDOWS))))
    with study_ledger(folder) as ledger:
        list_cells(ledger, [], name=f"{size:,} rows")
        tables.write(table, folder / TABLE, digest_of(ledger))
    return len(table)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # made by a process of its own: a child's peak memory begins with what its parent holds
        made = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
        size = int(made.stdout)
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "haptera", "report", str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
        assert status == 0, status
        page = (folder / "report.html").stat().st_size
        memory = f"peak {usage.ru_maxrss / 2**10:.0f} MB (600 allowed)"
        print(f"{size:,} rows: {seconds:.1f} s, {cpu:.1f} s of CPU (4 allowed), {memory}")
        print(f"report.html is {page / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(write_table(Path(sys.argv[1]), 1_000_000))
    else:
        main()
