"""Growth: time and memory of each part against the size of its work, with the exponent of a power law through them.

    python benchmarks/growth.py [PART ...] [--largest SHARE]

Every size runs in a process of its own, on one thread; time is its CPU time, without imports and without making the
data, and memory the most that the process took beyond what it had before. The largest size of a part is ten times the
largest published use: 50,000 images of a test set for passes over images, 7,500,000 of CCC for a jump to its end, 66
models for triplets, 50,000 x 1,000 logits for dependencies and measures, 100,000 samples of a recording.
`--largest .1` stops at a tenth of it. An exponent of 1 is linear; triplets of models are n³ by what they are. Large
studies (plan, resume, import, measure, report) are `studies.py`, which prints theirs.
The table goes to stdout, the picture beside the results of the documentation.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PARTS = {
    "bytes": ("images of 32 px under four corruptions, bytes", (5_000, 50_000, 500_000)),
    "ccc": ("images before the batch that is read", (75_000, 750_000, 7_500_000, 75_000_000)),
    "loop": ("images of 8 px through a study's loop", (5_000, 50_000, 500_000)),
    "tent": ("images of 8 px that Tent learns from", (500, 5_000, 50_000)),
    "diagnose": ("images of 8 px whose layers are observed", (500, 5_000, 50_000)),
    "stability": ("images of 16 px that are deformed", (500, 1_500, 5_000)),
    "dependencies": ("examples of 1,000 classes", (5_000, 50_000, 500_000)),
    "measures": ("examples of 1,000 classes that are measured", (5_000, 50_000, 500_000)),
    "triplets": ("models with 2,000 examples", (66, 200, 660)),
    "embed": ("samples of 100 units, 30 steps of a fit and all of them embedded", (10_000, 100_000, 1_000_000)),
}
"""Part -> what its size counts, and sizes."""
RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
Work = Callable[[], object]


def pixels(size: int, side: int) -> np.ndarray:
    """Bytes `(size, side, side, 3)`."""
    return np.random.default_rng(0).integers(0, 256, (size, side, side, 3), dtype=np.uint8)


def network():
    import torch

    from haptera.models import ResNet

    torch.manual_seed(0)
    return ResNet(channels=3, width=4).eval()


def images(size: int, side: int = 8):
    """A data set, and a stream of it."""
    from haptera.data import ArrayData
    from haptera.streams import Clean

    data = ArrayData(pixels(size, side), np.arange(size) % 10)
    return data, Clean(data, batch_size=64)


def bytes_(size: int) -> Work:
    from haptera.shifts import Contrast, Fog, GaussianNoise, JpegCompression

    block = pixels(1000, 32)
    shifts = [kind(3) for kind in (Contrast, Fog, GaussianNoise, JpegCompression)]
    for shift in shifts:
        shift(block[:4])
    return lambda: [shift(block) for _ in range(size // len(block)) for shift in shifts]


def ccc(size: int) -> Work:
    from haptera.streams import CCC
    from haptera.streams.calibration import Calibration

    left = 1 - np.add.outer(np.arange(21), np.arange(21)) / 40
    counts = np.round(7600 * left**2).astype(np.int64)
    pairs = {("contrast", "pixelate"): counts, ("pixelate", "contrast"): counts}
    data, _ = images(100)
    calibration = Calibration(pairs, 10000, 0.25, 7600, 1000, flip=True, crop=0.125)
    CCC(data, calibration, length=6400)[0]
    return lambda: CCC(data, calibration, length=size)[size // 64 - 1]


def loop(size: int) -> Work:
    from haptera.adapters import NoAdaptation
    from haptera.run.loop import evaluate

    model, (_, stream) = network(), images(size)
    return lambda: evaluate(NoAdaptation(model), stream)


def tent(size: int) -> Work:
    from haptera.adapters import Tent
    from haptera.run.loop import evaluate

    model, (_, stream) = network(), images(size)
    return lambda: evaluate(Tent(model), stream)


def diagnose(size: int) -> Work:
    from haptera.observe import observe_moments

    model, (_, stream) = network(), images(size)
    return lambda: observe_moments(model, stream)


def stability(size: int) -> Work:
    from haptera import stability as measure

    model, (data, _) = network(), images(size, 16)
    return lambda: measure(model, data, samples=size, progress=False)


def dependencies(size: int) -> Work:
    from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso

    logits = np.random.default_rng(0).standard_normal((size, 1000), np.float32)
    return lambda: CovarianceLasso(0.1).fit(logits)


def measures(size: int) -> Work:
    from haptera import catalog
    from haptera.measures.facts import fact, required_settings
    from haptera.outputs import Outputs
    from haptera.table import measure_outputs

    generator = np.random.default_rng(0)
    every = [catalog.find("measures", name) for name in catalog.entries("measures")]
    own = [each for each in every if fact(each, "of") == "outputs" and not required_settings(each)]
    logits, targets = generator.standard_normal((size, 1000), np.float32), generator.integers(0, 1000, size)
    context = {"shift": np.full(size, "fog"), "severity": np.full(size, 3.0)}
    outputs = Outputs({"logits": logits}, np.arange(size), targets, np.arange(size) // 64, context)
    return lambda: measure_outputs(outputs, own)


def embed(size: int) -> Work:
    from haptera.contrastive.estimator import ContrastiveEmbedding

    generator = np.random.default_rng(0)
    signal, label = generator.standard_normal((size, 100), np.float32), np.cumsum(generator.normal(0, 0.1, size))
    model = ContrastiveEmbedding(
        model_architecture="offset10-model", output_dimension=8, batch_size=512, time_offsets=10, max_iterations=30,
        random_state=0,
    )  # fmt: skip
    return lambda: model.fit(signal, label).transform(signal)


def triplets(size: int) -> Work:
    from haptera.analyses.trends.triplets import count_triplets

    correct = np.random.default_rng(0).random((size, 2000)) < 0.7
    return lambda: count_triplets(correct)


WORK = {"bytes": bytes_} | {
    each.__name__: each for each in (ccc, loop, tent, diagnose, stability, dependencies, measures, triplets, embed)
}


def child(part: str, size: int) -> None:
    """Print CPU seconds and megabytes of one size."""
    import torch

    from haptera.run.loop import forget_peak, peak

    torch.set_num_threads(1)
    device = torch.device("cpu")
    work = WORK[part](size)
    forget_peak(device)
    before, start = peak(device), time.process_time()
    work()
    print(time.process_time() - start, (peak(device) - before) / 2**20)


def run(part: str, size: int) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", part, str(size)], capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of a line through logarithms; NaN where a value is 0."""
    known = min(values) > 0 and len(sizes) > 1
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) if known else float("nan")


def draw(found: dict[str, tuple[list[int], list[float]]]) -> None:
    """Write the picture: CPU seconds against size, a line for each part."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
    from charts import COLOURS, figure, save

    drawing = figure(7, 4)
    axes = drawing.subplots()
    for number, (part, (sizes, times)) in enumerate(found.items()):
        colour, marker = COLOURS[number % len(COLOURS)], "os^D"[number // len(COLOURS)]
        axes.loglog(sizes, times, marker=marker, color=colour, label=part)
    axes.set_xlabel("size")
    axes.set_ylabel("CPU seconds")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(drawing, RESULTS / "growth.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--largest", type=float, default=1.0, help="share of the largest size")
    options = parser.parse_args()
    found: dict[str, tuple[list[int], list[float]]] = {}
    print(f"{'part':<14}{'size':>12}{'CPU s':>9}{'MB more':>9}", flush=True)
    for part in options.parts:
        what, every = PARTS[part]
        sizes = [size for size in every if size <= options.largest * every[-1]]
        times, memory = [], []
        for size in sizes:
            seconds, megabytes = run(part, size)
            times.append(seconds)
            memory.append(megabytes)
            print(f"{part:<14}{size:>12,}{seconds:>9.2f}{megabytes:>9.0f}", flush=True)
        grown = f"time grows as size ** {exponent(sizes, times):.2f}, memory as size ** {exponent(sizes, memory):.2f}"
        print(f"{part}: {grown}; size counts {what}", flush=True)
        found[part] = (sizes, times)
    draw(found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
