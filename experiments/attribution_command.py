"""Figure 8.2 in small, by the command line: does the Jacobian term make maps right, whatever the number of latents?

    python experiments/attribution_command.py [FOLDER] [--tiny]

Recordings whose map is known (`haptera.analyses.identify.processes.piecewise`): z1 reaches all inputs, z2, with two
latents, is observed and reaches half of them. Every recording is written to a file and goes through

    haptera embed data.npz --signal x --label z2 --part z2:0-1 --part time:0-N --jacobian-weight W --out fit
    haptera attribute fit --jacobian-weight W --truth known.npy

with W = 0.1 and without the term. Samples, steps and rate are those of `attribution_maps.py`; the temperature is that
at which −‖x − y‖² of the latents is the logarithm of how the walk steps, 2 · .3². The encoder has no tanh at its end:
with one of a fixed size the map of data set 30, which is left out here, was worse (.93 against .96, in a trial).
The map is that of the model that `embed` made; the fit beside decoys, which `attribute` makes as well, is for its test.
It prints the areas under the ROC curve of the line `truth`, of entries of the map and of channels, for every number of
latents, five data sets each, and writes `attribution_command.csv` and `attribution_command.txt` into FOLDER, by default
`docs/evidence/results`. Rows that are there are not made again. It takes about ten minutes of one core for each number
of latents.
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
SAMPLES, SETS, STEPS, HIDDEN = (600, 2, 10, 16) if TINY else (16_000, 5, 1200, 128)
LATENTS = (4,) if TINY else (6, 4, 9, 5, 7, 8)
OBSERVED, FIRST, TEMPERATURE = 2, 40, 0.18
WEIGHTS = {"none": 0.0, "regularised": 0.1}


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
        small = ("--fits", 1, "--copies", 2, "--truth", folder / "known.npy")
        found = haptera("attribute", folder / "fit", "--jacobian-weight", weight, *small)["truth"]
        return found["auroc"], found["channels_auroc"]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kept, columns = folder / "attribution_command.csv", ["latents", "seed", "term", "auroc", "channels"]
    rows = pd.read_csv(kept).to_numpy(object).tolist() if kept.is_file() else []
    done = {tuple(row[:3]) for row in rows}
    for latents, seed, term in product(LATENTS, range(FIRST, FIRST + SETS), WEIGHTS):
        if (latents, seed, term) in done:
            continue
        rows.append([latents, seed, term, *scores(latents, seed, WEIGHTS[term])])
        print(*rows[-1], file=sys.stderr, flush=True)
        pd.DataFrame(rows, columns=columns).to_csv(kept, index=False, float_format="%.4f")
    long = pd.DataFrame(rows, columns=columns).melt(columns[:3], var_name="of").astype({"value": float})
    shown = long.groupby(["of", "latents", "term"])["value"].agg(["mean", "min", "max"]).unstack("term").round(3)
    text = f"auROC for z2, {SETS} data sets of {SAMPLES:,} samples each, by `haptera embed` and `haptera attribute`\n\n"
    text += shown.to_string() + "\n"
    print(text)
    (folder / "attribution_command.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    places = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    main(Path(places[0]) if places else Path(__file__).parents[1] / "docs" / "evidence" / "results")
