"""A script written for the package `cebra`, as it is and with its import changed: what both decode, and its files.

    python benchmarks/compat_cebra.py [script] [files] [--seeds N] [--steps N]

`script`: the first block of docs/guides/from-cebra.md is run by the package itself and, with `haptera.compat.cebra` in
its import, by haptera; both at once, in a process of its own each, on one thread. The data: a synthetic session of 40
neurons and 3,000 samples, and the first 4,000 bins of 100 ms of a mouse's head direction (`head-direction.nwb` in
$HAPTERA_DATA), if it is there; the label is then the cosine of the direction. R² is of positions decoded on the last
fifth. Both packages fit with every seed, five by default; below the fits are the means, how far the fits of one package
lie apart, and the difference of the means with Welch's 95 % interval. With `--steps` both sides take so many instead of
the script's 1,000.
`files`: a model of every architecture is fitted for three steps and saved by the package, and read here; the largest
difference between the two embeddings of the same signal, and the number of parameters on both sides.
The package (0.6.1) is in an environment of its own: see embed.py.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from embed import peer_python

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guides" / "from-cebra.md"
DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
AIM = 0.02
SIDES = ("cebra", "haptera")
STEPS = "max_iterations=1000"
THEIRS, OURS = "import cebra\n", "import haptera.compat.cebra as cebra\n"
NAMES = (
    *("offset1-model", "offset1-model-v2", "offset1-model-v3", "offset1-model-v4", "offset1-model-v5"),
    *("offset1-model-mse", "offset1-model-mse-tanh", "offset1-model-mse-v2-1layers", "offset1-model-mse-v2-3layers"),
    *("offset1-model-mse-resnet-1layers", "offset1-model-mse-resnet-4layers-tanh"),
    *("offset5-model", "offset10-model", "offset10-model-mse", "offset10-model-mse-tanh", "offset15-model"),
    *("offset20-model", "offset36-model", "offset36-model-dropout", "offset36-model-more-dropout"),
    *("offset40-model", "offset50-model"),
)
WRITE = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, cebra
folder, names = sys.argv[1], sys.argv[2:]
signal = np.load(folder + "/signal.npy")
for name in names:
    model = cebra.CEBRA(name, max_iterations=3, batch_size=64, num_hidden_units=6, output_dimension=4, device="cpu",
                        distance="euclidean" if "-mse" in name else "cosine").fit(signal)
    model.save(f"{folder}/{name}.pt")
    count = sum(one.numel() for one in model.model_.parameters())
    np.savez(f"{folder}/{name}.npz", points=model.transform(signal), count=count)
"""


def block() -> str:
    """The first block of Python of the guide."""
    return re.search(r"```python\n(import.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]


def run(python: str, code: str, *arguments: object) -> str:
    single = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [python, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=single, check=True, stdout=subprocess.PIPE, text=True).stdout


def write_data(folder: Path) -> dict[str, Path]:
    from haptera.recordings.reading import read_recording
    from haptera.recordings.synthetic import sessions

    made = sessions((40,), 3_000)[0]
    np.savez(folder / "synthetic.npz", neural=made.signal.astype(np.float32), position=made.label.ravel())
    found = {"synthetic": folder / "synthetic.npz"}
    if (DATA / "head-direction.nwb").is_file():
        recording = read_recording(DATA / "head-direction.nwb", "spikes", ["head_direction"], bin=0.1)
        neural = recording.signal("spikes")[:4_000].astype(np.float32)
        direction = np.cos(recording.label("head_direction").values[:4_000])
        np.savez(folder / "head.npz", neural=neural[:, neural.std(0) > 0], position=direction)
        found["head direction"] = folder / "head.npz"
    return found


def script(folder: Path, seeds: int, steps: int | None) -> None:
    code = block()
    assert code.count(THEIRS) == 1, "the block of the guide does not import cebra"
    assert code.count(STEPS) == 1, "the block of the guide does not say how many steps it takes"
    told = "" if steps is None else f", with {steps} steps instead of its own"
    code = code if steps is None else code.replace(STEPS, f"max_iterations={steps}")
    print(f"A script of {len(code.splitlines())} lines{told}: R² of decoded positions\n", flush=True)
    print(f"{'':<18}{'seed':>5}  {'pairs by':<10}{'cebra':>8}{'haptera':>9}{'apart':>8}")
    fits = []
    for (name, path), seed in product(write_data(folder).items(), range(seeds)):
        sides = [(peer_python(), code, "a.pt"), (sys.executable, code.replace(THEIRS, OURS), "b.pt")]
        with ThreadPoolExecutor() as pool:
            out = pool.map(lambda side: run(side[0], side[1], path, seed, folder / side[2]), sides)  # noqa: B023
            theirs, mine = (json.loads(text.splitlines()[-1]) for text in out)
        for kind, score in theirs.items():
            apart = mine[kind] - score
            print(f"{name:<18}{seed:>5}  {kind:<10}{score:>8.3f}{mine[kind]:>9.3f}{apart:>+8.3f}", flush=True)
            fits.append((name, kind, score, mine[kind]))
    summarise(pd.DataFrame(fits, columns=["data", "pairs by", "cebra", "haptera"]), seeds)


def summarise(fits: pd.DataFrame, seeds: int) -> None:
    print(
        f"\nmean of {seeds} fits on each side (least to largest); the difference and its 95 % interval; aim {AIM:.2f}\n"
    )
    print(f"{'':<18}{'pairs by':<10}{'cebra':>24}{'haptera':>24}{'apart':>8}{'interval':>20}")
    for (name, kind), rows in fits.groupby(["data", "pairs by"], sort=False):
        sides = [f"{rows[side].mean():.3f} ({rows[side].min():.3f} to {rows[side].max():.3f})" for side in SIDES]
        apart = rows["haptera"].mean() - rows["cebra"].mean()
        low, high = (
            ttest_ind(rows["haptera"], rows["cebra"], equal_var=False).confidence_interval()
            if seeds > 1
            else [np.nan] * 2
        )
        flag = "" if apart >= -AIM else "   short of it"
        print(f"{name:<18}{kind:<10}{sides[0]:>24}{sides[1]:>24}{apart:>+8.3f}{f'{low:+.3f} to {high:+.3f}':>20}{flag}")


def files(folder: Path) -> None:
    from haptera.compat.cebra import CEBRA

    signal = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    np.save(folder / "signal.npy", signal)
    run(peer_python(), WRITE, folder, *NAMES)
    print(f"{'file of cebra 0.6.1':<40}{'difference':>11}{'parameters':>12}{'there':>7}")
    for name in NAMES:
        model, theirs = CEBRA.load(folder / f"{name}.pt"), np.load(folder / f"{name}.npz")
        count = sum(one.numel() for one in model.model_.parameters())
        difference = np.abs(model.transform(signal) - theirs["points"]).max()
        tied = "   (ties layers there)" if count != int(theirs["count"]) else ""
        print(f"{name:<40}{difference:>11.1e}{count:>12}{int(theirs['count']):>7}{tied}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["script", "files"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="of every fit, on both sides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if "script" in given.what:
            script(Path(folder), given.seeds, given.steps)
        if "files" in given.what:
            files(Path(folder))


if __name__ == "__main__":
    main()
