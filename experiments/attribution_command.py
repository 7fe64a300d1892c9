"""Figure 8.2 in small, by the command line: does the Jacobian term make maps right, whatever the number of latents?

    python experiments/attribution_command.py [FOLDER] [--tiny]

Recordings whose map is known (`haptera.analyses.identify.processes.piecewise`): z1 reaches all inputs, z2, with two
latents, is observed and reaches half of them. Every recording is written to a file and goes through

    haptera embed data.npz --signal x --label z2 --part z2:0-1 --part time:0-N --jacobian-weight W --out fit
    haptera attribute fit --jacobian-weight W --fits 0 --truth known.npy

with W = 0.1 and without the term. Steps and rate are those of `attribution_maps.py`. So is the number of samples that
encoders learn from, 16,000: `embed` holds out 30 % to score on and a fifth of the rest to choose decoders by, so that
recordings have 28,600. The temperature is that at which −‖x − y‖² of the latents is the logarithm of how the walk
steps, 2 · .3². All of this was looked at on data sets 30 and 31 with six latents, which are left out here. Data
set 40 had been seen once before, with fewer samples and a weaker term (.808 and .872).
The map is that of the model that `embed` made; `--fits 0` leaves out the test against decoys.
It prints the areas under the ROC curve of the line `truth`, of entries of the map and of channels, for every number of
latents, five data sets each, and writes `attribution_command.csv` and `attribution_command.txt` into FOLDER, by default
`docs/evidence/results`, after every data set. Rows that are there are not made again. It takes about ten minutes of one
core for each number of latents.
"""

import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.identify.processes import piecewise

TINY = "--tiny" in sys.argv
SAMPLES, SETS, STEPS, HIDDEN = (600, 2, 10, 16) if TINY else (28_600, 5, 1200, 128)
LATENTS = (4,) if TINY else (6, 4, 8, 5, 7, 9)
OBSERVED, FIRST, TEMPERATURE = 2, 40, 0.18
WEIGHTS = {"none": 0.0, "regularised": 0.1}
MEASURES = {"auroc": "entries", "channels": "channels"}


def haptera(*words: object) -> dict:
    command = [sys.executable, "-m", "haptera", *map(str, words), "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def scores(latents: int, seed: int, weight: float) -> tuple[float, float]:
    """One recording, both commands: auROC of entries and of channels."""
    data = piecewise(SAMPLES, latents - OBSERVED, OBSERVED, seed=seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "data.npz", x=data.signal, z2=data.latents[:, data.second])
        np.save(folder / "known.npy", data.map[data.second[0]].astype(int))
        parts = ("--part", f"z2:0-{OBSERVED - 1}", "--part", f"time:0-{latents - 1}", "--time-offset", 1)
        encoder = ("--architecture", "offset1-model-mse", "--temperature", TEMPERATURE)
        encoder += ("--hidden", HIDDEN, "--steps", STEPS)
        more = ("--jacobian-weight", weight, "--no-controls", "--out", folder / "fit")
        haptera("embed", folder / "data.npz", "--signal", "x", *parts, *encoder, *more)
        small = ("--fits", 0, "--truth", folder / "known.npy")
        found = haptera("attribute", folder / "fit", "--jacobian-weight", weight, *small)["truth"]
        return found["auroc"], found["channels_auroc"]


def table(rows: pd.DataFrame) -> str:
    """Means over data sets that have both rows, with the least and the largest."""
    text = f"auROC for z2 by `haptera embed` and `haptera attribute`, recordings of {SAMPLES:,} samples;\n"
    text += "mean over data sets (least to largest)\n\n"
    text += f"{'latents':>7}{'sets':>6}{'of':>10}" + "".join(f"{term:>24}" for term in WEIGHTS) + "\n"
    both = rows.pivot(index=["latents", "seed"], columns="term", values=list(MEASURES)).dropna()
    for latents, part in both.groupby("latents"):
        for measure, name in MEASURES.items():
            values = [part[measure, term].astype(float) for term in WEIGHTS]
            shown = [f"{one.mean():.3f} ({one.min():.3f} to {one.max():.3f})" for one in values]
            text += f"{latents:>7}{len(part):>6}{name:>10}" + "".join(f"{one:>24}" for one in shown) + "\n"
    return text


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kept, columns = folder / "attribution_command.csv", ["latents", "seed", "term", *MEASURES]
    rows = pd.read_csv(kept).to_numpy(object).tolist() if kept.is_file() else []
    done = {tuple(row[:3]) for row in rows}
    for latents, seed in product(LATENTS, range(FIRST, FIRST + SETS)):
        for term in WEIGHTS:
            if (latents, seed, term) not in done:
                rows.append([latents, seed, term, *scores(latents, seed, WEIGHTS[term])])
                print(*rows[-1], file=sys.stderr, flush=True)
                pd.DataFrame(rows, columns=columns).to_csv(kept, index=False, float_format="%.4f")
        text = table(pd.DataFrame(rows, columns=columns))
        (folder / "attribution_command.txt").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    places = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    main(Path(places[0]) if places else Path(__file__).parents[1] / "docs" / "evidence" / "results")
