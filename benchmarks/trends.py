"""All triplets of models: time against a NumPy loop, growth with models and examples, memory; and a page from two CSVs.

    OMP_NUM_THREADS=1 python benchmarks/trends.py [FOLDER]
    python benchmarks/trends.py whole

The second measures the whole command on 66 models x 50,000 examples, with its page, and nothing else.
Models are simulated. FOLDER may hold `results-imagenet.csv` and `results-imagenetv2-matched-frequency.csv` as timm
publishes them; without, as many accuracies are made up. The last row of the table, 500 models, takes half a minute.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.frontier import frontier
from haptera.analyses.trends.triplets import count_triplets
from haptera.analyses.trends.wedge import Wedge
from haptera.theory.known_models import ProbitModels

REPEAT = 5
GROWTH = ((66, 10_000), (66, 50_000), (66, 200_000), (125, 50_000), (250, 50_000), (500, 50_000))
SECONDS, MEMORY, PAGE, WHOLE = 60, 4, 10, 15


def models(number: int, examples: int, seed: int = 0) -> np.ndarray:
    skills = np.random.default_rng(seed).uniform(-0.3, 1.6, number)
    return ProbitModels(skills).correct(examples, 1, seed)[0]


def over_triplets(correct: np.ndarray) -> np.ndarray:
    """A loop over triplets, all examples at once."""
    return np.array([(correct[i] & correct[j] & correct[k]).sum() for i, j, k in combinations(range(len(correct)), 3)])


def over_pairs(correct: np.ndarray) -> np.ndarray:
    """A loop over pairs, all examples and all third models at once."""
    pairs = combinations(range(len(correct)), 2)
    return np.concatenate([(correct[j + 1 :] & (correct[i] & correct[j])).sum(1) for i, j in pairs])


def best(function: Callable[[], object], repeat: int = REPEAT) -> float:
    """The shortest of several runs, in seconds of this process, which other processes cannot lengthen."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def against_a_loop() -> None:
    correct = models(66, 50_000)
    counts = count_triplets(correct).triple
    ours = best(lambda: count_triplets(correct))
    print(f"66 models x 50,000 examples, 45,760 triplets: {ours:.3f} s (0.5 allowed)")
    for loop in (over_triplets, over_pairs):
        assert np.array_equal(counts, loop(correct))
        theirs = best(lambda loop=loop: loop(correct), 2)
        name = loop.__name__.replace("_", " ")
        print(f"a NumPy loop {name}: {theirs:.2f} s, {theirs / ours:.0f} times ours (10 asked for)")


def growth() -> None:
    print(f"\n{'models':>8}{'examples':>10}{'triplets':>14}{'counted':>10}{'a wedge':>10}{'frontier':>10}{'peak':>9}")
    for number, examples in GROWTH:
        report = subprocess.run(
            [sys.executable, __file__, "--one", str(number), str(examples)], capture_output=True, text=True, check=True
        )
        print(report.stdout, end="")
    print(f"500 models: {SECONDS} s and {MEMORY} GB allowed for the counts")


def one(number: int, examples: int) -> None:
    """A row of the table, in a process of its own, so that the peak of memory is its own too."""
    correct = models(number, examples)
    repeat = 3 if number < 200 else 1
    counted = best(lambda: count_triplets(correct), repeat)
    reference, shifted = count_triplets(correct), count_triplets(models(number, 10_000, seed=1))
    wedge = best(lambda: closeness(reference, shifted, Wedge(0.3, 0.4, 0.005, 0.01)), 1)
    edge = best(lambda: frontier(reference, shifted), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times = "".join(f"{seconds:>8.2f} s" for seconds in (counted, wedge, edge))
    print(f"{number:>8}{examples:>10,}{len(reference.triple):>14,}{times}{peak:>6.2f} GB")


def page(folder: Path | None) -> None:
    """The command as a user runs it, from two files of accuracies to a page."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        files = [work / "a.csv", work / "b.csv"]
        if folder is not None:
            files = [folder / "results-imagenet.csv", folder / "results-imagenetv2-matched-frequency.csv"]
        else:
            sides = ProbitModels(np.random.default_rng(0).uniform(0.2, 1.8, 1270)).accuracies
            for path, accuracies in zip(files, sides, strict=True):
                rows = [f"model {i},{accuracy}" for i, accuracy in enumerate(accuracies.tolist())]
                path.write_text("\n".join(["model,accuracy", *rows]))
        command = [sys.executable, "-m", "haptera", "trends", *map(str, files), "--out", str(work / "out")]
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        number = done.stdout[done.stdout.index('"models"') :].split(",")[0].split(":")[1].strip()
        size = (work / "out" / "report.html").stat().st_size / 1e6
        print(f"\n{number} models from two CSVs to a page of {size:.1f} MB ({PAGE} s allowed)")
        print(f"{seconds:.1f} s, of which this process had the processor for {used:.1f} s")


def whole_command() -> None:
    """The command on 66 models and 50,000 and 10,000 examples, with its page, from file to file."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        sides = ProbitModels(np.random.default_rng(0).uniform(-0.3, 1.6, 66)).correct(50_000, 10_000)
        for path, right in zip((work / "a.npz", work / "b.npz"), sides, strict=True):
            np.savez(
                path, models=[f"model {i}" for i in range(66)], correct=np.packbits(right, axis=1), n=right.shape[1]
            )
        command = [sys.executable, "-m", "haptera", "trends", str(work / "a.npz"), str(work / "b.npz")]
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--out", str(work / "out"), "--json"], capture_output=True, check=True)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"\n66 models x 50,000 and 10,000 examples, the whole command with its page ({WHOLE} s allowed)")
        print(f"{seconds:.1f} s, of which this process had the processor for {used:.1f} s")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]), int(sys.argv[3]))
        return
    if sys.argv[1:2] == ["whole"]:
        whole_command()
        return
    against_a_loop()
    growth()
    page(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    whole_command()


if __name__ == "__main__":
    main()
