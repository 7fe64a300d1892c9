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
from haptera.run.cells import list_cells, study_ledger
from haptera.run.results import TABLE, digest_of

MODELS, STREAMS, WINDOWS = 100, 100, 100


def rows() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    model, stream, window = np.indices((MODELS, STREAMS, WINDOWS)).reshape(3, -1)
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


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = tables.tidy(rows())
        with study_ledger(folder) as ledger:
            list_cells(ledger, [], name="a million rows")
            tables.write(table, folder / TABLE, digest_of(ledger))
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "haptera", "report", str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        assert status == 0, status
        size = (folder / "report.html").stat().st_size
        print(f"{len(table):,} rows: {seconds:.1f} s (20 allowed), peak {usage.ru_maxrss / 2**20:.2f} GB (2 allowed)")
        print(f"report.html is {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
