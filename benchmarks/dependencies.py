"""The whole graph of 1,000 classes from 50,000 x 1,000 logits: time, memory, and the printed recipe beside it.

    python benchmarks/dependencies.py
    python benchmarks/dependencies.py stability

The second measures the edges with their stability, 50 halves, and the verdict of every class, and nothing else.
Every measurement is a process of its own. "From a file" reads the .npz in batches, "in memory" fits an array that was
read before. Times begin when the libraries are imported.
The printed recipe is scikit-learn's Lasso (alpha 0.25, max_iter 50,000, all else default) for each class on the logits;
ten classes are fitted, and their time is multiplied by a hundred. Without its intercept it solves our problem, so the
coefficients of these classes are compared with ours.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SAMPLES, CLASSES, ALPHA, SOME = 50_000, 1_000, 0.25, 10
REPEATS = 3
ALLOWED = 6.0
HALVES, ALLOWED_STABILITY, ALLOWED_MEMORY = 50, 60.0, 1.2


def logits(seed: int = 0, width: int = 2048, decay: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Logits with the size and spectrum of an ImageNet classifier's.

    Eigenvalues fall by a power law, from a quarter of the trace down to a millionth of it, and the rank is full.
    Classes come in a hundred families of ten, and the logit of the own class stands out, so accuracy is about .8.
    """
    generator = np.random.default_rng(seed)
    families = ((10, 0.3), (100, 0.5), (CLASSES, 0.8))
    directions = sum(
        size * generator.standard_normal((count, width), dtype=np.float32)[np.arange(CLASSES) * count // CLASSES]
        for count, size in families
    )
    weights = directions * (1 + np.arange(width, dtype=np.float32)) ** -decay
    weights *= 2 / np.linalg.norm(weights, axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    bumps = 8 * directions @ directions.T
    targets = generator.integers(0, CLASSES, SAMPLES)
    rows = np.empty((SAMPLES, CLASSES), np.float32)
    for first in range(0, SAMPLES, 5000):
        part = slice(first, first + 5000)
        features = generator.standard_normal((len(targets[part]), width), dtype=np.float32)
        rows[part] = features @ weights.T + bumps[targets[part]]
    return rows, targets


def peak() -> float:
    """Peak memory in MB; not from getrusage, where a child begins with what its parent had."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def child(mode: str, path: Path) -> dict[str, float]:
    from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
    from haptera.analyses.dependencies.files import LogitsFile

    lasso = CovarianceLasso(ALPHA)
    start = time.perf_counter()
    if mode == "file":
        lasso.fit_stream(LogitsFile(path))
    else:
        with np.load(path) as file:
            rows = file["logits"]
        lasso.fit(rows)
    seconds = time.perf_counter() - start
    found = lasso.dependencies_
    return {
        "seconds": seconds,
        "peak": peak(),
        "dependencies": int(found.coefficients.nnz),
        "violation": float(found.violation.max()),
    }


def stability(path: Path) -> dict[str, float]:
    """Edges with their stability, then the verdict, from a file."""
    from haptera.analyses.dependencies import DependencySettings
    from haptera.analyses.dependencies.analysis import analyse

    start = time.perf_counter()
    analysis = analyse(path, None, DependencySettings(resamples=HALVES))
    edges = time.perf_counter() - start
    assert analysis.stability is not None
    highest, start = peak(), time.perf_counter()
    found = analysis.judgement.classes
    return {
        "seconds": edges,
        "verdict": time.perf_counter() - start,
        "peak": highest,
        "peak_verdict": peak(),
        "stable": analysis.stability.stable.nnz,
        "classes": len(found),
    }


def recipe(path: Path) -> dict[str, float]:
    from sklearn.linear_model import Lasso

    from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso

    with np.load(path) as file:
        rows = file["logits"]
    places = range(0, CLASSES, CLASSES // SOME)
    seconds = 0.0
    for place in places:
        start = time.perf_counter()
        Lasso(alpha=ALPHA, max_iter=50_000).fit(np.delete(rows, place, 1), rows[:, place])
        seconds += time.perf_counter() - start
    ours = CovarianceLasso(ALPHA).fit(rows).coef_[0]
    theirs = Lasso(alpha=ALPHA, max_iter=50_000, fit_intercept=False, precompute=True, tol=1e-10)
    theirs.fit(rows[:, 1:].astype(np.float64), rows[:, 0].astype(np.float64))
    return {"seconds": seconds * CLASSES / SOME, "off": float(np.abs(ours[1:] - theirs.coef_).max())}


def run(*arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def stability_lines(path: Path, size: float) -> None:
    """Print time and memory of the edges with their stability."""
    run("memory", path)  # puts the file into the cache of the system
    found = run("stability", path)
    print(
        f"edges with stability, {HALVES} halves: {found['seconds']:.1f} s ({ALLOWED_STABILITY:.0f} allowed), ", end=""
    )
    print(f"peak {found['peak']:.0f} MB ({ALLOWED_MEMORY * size:.0f} allowed); {found['stable']:,} stable edges")
    print(f"verdict of {found['classes']:,} classes: {found['verdict']:.1f} s, peak {found['peak_verdict']:.0f} MB")


def main(only: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "logits.npz"
        rows, targets = logits()
        np.savez(path, logits=rows, targets=targets)
        size = rows.nbytes / 2**20
        print(f"{SAMPLES:,} x {CLASSES:,} logits, {size:.0f} MB; α {ALPHA}; {os.cpu_count()} cores")
        if only == "stability":
            print(f"load {os.getloadavg()[0]:.1f} before the start; once")
            return stability_lines(path, size)
        print(f"load {os.getloadavg()[0]:.1f} before the start; best and median of {REPEATS}")
        run("memory", path)  # puts the file into the cache of the system
        print(f"{'':<22}{'best s':>8}{'median s':>10}{'allowed':>9}{'peak MB':>9}{'allowed':>9}")
        best = {}
        for mode, name in (("file", "from a file"), ("memory", "in memory")):
            found = [run(mode, path) for _ in range(REPEATS)]
            seconds = [one["seconds"] for one in found]
            best[mode] = min(seconds)
            allowed = 200 if mode == "file" else 2 * size
            print(
                f"{name:<22}{min(seconds):>8.2f}{statistics.median(seconds):>10.2f}{ALLOWED:>9.1f}"
                f"{max(one['peak'] for one in found):>9.0f}{allowed:>9.0f}"
            )
        print(f"{found[0]['dependencies']:,} dependencies, KKT violation {found[0]['violation']:.1g} of λ")
        peer = run("recipe", path)
        print(
            f"printed recipe: {peer['seconds']:,.0f} s, from {SOME} classes; coefficients differ by {peer['off']:.1g}"
        )
        print(f"ratio to ours from a file: {peer['seconds'] / best['file']:,.0f} (500 wanted)")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        mode, file = sys.argv[1], Path(sys.argv[2])
        others = {"recipe": recipe, "stability": stability}
        print(json.dumps(others[mode](file) if mode in others else child(mode, file)))
    else:
        main(*sys.argv[1:2])
