"""The demo on this machine: how long it takes, how long the second time, and whether the table is the same.

python benchmarks/demo.py
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd


def run(folder: str) -> tuple[dict, float, pd.DataFrame]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "haptera", "demo", "--json", "--quiet", "--out", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), time.perf_counter() - start, pd.read_parquet(Path(folder) / "table.parquet")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, seconds, table = run(folder)
        again, seconds_again, same = run(folder)
        size = (Path(folder) / "report.html").stat().st_size
    print(f"{os.cpu_count()} cores")
    print(f"first: {first['ran']} cells in {seconds:.0f} s, report.html {size / 1e6:.1f} MB")
    print(f"again: {again['ran']} cells run in {seconds_again:.1f} s, the same table: {table.equals(same)}")
    print(first["summary"])


if __name__ == "__main__":
    main()
