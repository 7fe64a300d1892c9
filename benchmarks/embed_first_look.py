"""How long `haptera embed` with its default controls takes until there is a page, and until the last one is written.

    python benchmarks/embed_first_look.py [SAMPLES]

Ten units that fire around a direction each while a head turns, 24,000 samples by default, through the command line in
a process of its own. It prints the seconds after which each page was there, with the CPU time of all processes until
then, and at the end the number of cores and the load of the machine before. The aim, on two cores that do nothing
else: a first page after 20 s, all of it within 120 s.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SAMPLES, UNITS, SMALLEST = 24_000, 10, 0.1
AIMS = (20, 120)


def write_recording(path: Path, samples: int) -> None:
    random = np.random.default_rng(0)
    angle = np.cumsum(random.normal(0, 0.15, samples))
    preferred = np.arange(UNITS) * 2 * np.pi / UNITS
    rates = 0.2 + 3 * np.exp(3 * (np.cos(angle[:, None] - preferred) - 1))
    np.savez(path, spikes=random.poisson(rates).astype(float), heading=np.mod(angle, 2 * np.pi))


def cpu_seconds(process: int) -> float:
    """CPU time of a process and of its children, as far as /proc knows them; of those that ended, what they left."""
    ticks, tree = 0, [process]
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    while tree:
        own = tree.pop()
        ticks += parents.get(own, (0, 0))[1]
        tree += [child for child, (parent, _) in parents.items() if parent == own]
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    load, samples = os.getloadavg()[0], int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES
    with tempfile.TemporaryDirectory() as folder:
        write_recording(Path(folder) / "mouse.npz", samples)
        page = Path(folder) / "hd" / "report.html"
        command = [sys.executable, "-m", "haptera", "embed", "mouse.npz", "--signal", "spikes", "--label"]
        began, seen, used = time.monotonic(), 0.0, 0.0
        process = subprocess.Popen(
            [*command, "heading:angle", "--out", "hd", "--json", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL
        )
        print(f"{samples:,} samples of {UNITS} units\n{'':<16}{'seconds':>10}{'CPU':>10}{'aim':>8}", flush=True)
        pages = 0
        while process.poll() is None:
            time.sleep(SMALLEST)
            used = max(used, cpu_seconds(process.pid))
            if page.is_file() and page.stat().st_mtime != seen:
                seen, pages = page.stat().st_mtime, pages + 1
                aim = f"{AIMS[0]:>8}" if pages == 1 else ""
                print(f"page {pages:<11}{time.monotonic() - began:>10.1f}{used:>10.1f}{aim}", flush=True)
        print(f"{'end':<16}{time.monotonic() - began:>10.1f}{used:>10.1f}{AIMS[1]:>8}")
        print(f"{os.cpu_count()} cores, load {load:.1f} before")
        sys.exit(process.returncode)


if __name__ == "__main__":
    main()
