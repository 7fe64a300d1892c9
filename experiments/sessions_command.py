"""Several sessions by the command line, of which the truth is known: one space, one network, and a new session.

    python experiments/sessions_command.py [FOLDER] [--tiny]

Five data sets. Each has three sessions with neurons of their own and one law of the latent
(`haptera.recordings.synthetic.sessions`), and a fourth that comes later. Each goes through

    haptera embed rat0.npz rat1.npz rat2.npz --signal spikes --label position --out rats
    haptera embed rat0.npz rat1.npz rat2.npz ... --architecture offset10-model-unified --out unified
    haptera embed rat3.npz --signal spikes --label position --adapt rats/model.safetensors --out new

It prints, for an encoder for each session and for one network over the units of all: R² of a linear map from held-out
points to the true latent, which nobody had told; consistency of sessions, beside fits of each session alone and fits of
shuffled labels; R² of the label by decoders of the same session and of the others. Then of the fourth session, adapted
in a fifth of the steps: its median error over that of a fit of its own with all steps, and over that of one with as
few. Every number is the mean over data sets, with the least and the largest. Below stands what is compared within each
data set, with 95 % intervals: how much more alike sessions are together than alone, and the ratios of errors. Rows are
kept in `sessions_command.csv`, and data sets that are there are not made again; the table is `sessions_command.txt`,
written after every data set. Both are in FOLDER, by default `docs/evidence/results`. A data set takes about two minutes
of one core.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.embedding.consistency import linear_r2
from haptera.recordings.synthetic import Synthetic, sessions
from haptera.statistics.intervals import UnitMean, mean_of_units

TINY = "--tiny" in sys.argv
SAMPLES, SETS, STEPS = (600, 1, 20) if TINY else (3000, 5, 500)
NEURONS = (40, 60, 50, 45)
NETWORKS = {"an encoder each": "offset10-model", "one network": "offset10-model-unified"}
SHORT = ("--steps", STEPS, "--seeds", 1, "--shuffles", 1)
ROWS = {
    "latent": "R² of the true latent",
    "consistency": "consistency of sessions",
    "consistency_alone": "consistency, each fitted alone",
    "consistency_shuffled": "consistency, shuffled labels",
    "embedding": "R² of the label, own decoder",
    "alone": "R² of the label, fits of one session",
    "other_sessions": "R² of the label, decoders of the others",
    "other_sessions_shuffled": "the same, shuffled labels",
    "error_ratio": "new session: error over that of its own fit",
    "error_ratio_short": "new session: error over that of as few steps",
}

COMPARED: dict[str, Callable[[pd.DataFrame], UnitMean]] = {
    "consistency, together less alone": lambda of: mean_of_units(
        (of["consistency"] - of["consistency_alone"]).to_numpy()
    ),
    ROWS["error_ratio"]: lambda of: mean_of_units(of["error_ratio"].to_numpy(), "log"),
    ROWS["error_ratio_short"]: lambda of: mean_of_units(of["error_ratio_short"].to_numpy(), "log"),
}


def haptera(folder: Path, *words: object) -> dict:
    command = [sys.executable, "-m", "haptera", "embed", *map(str, words), "--json", "--quiet"]
    return json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout)


def score_joint(folder: Path, made: list[Synthetic], network: str) -> dict[str, float]:
    """One joint fit of the first three sessions, with its controls."""
    files = [f"rat{place}.npz" for place in range(3)]
    read = ("--signal", "spikes", "--label", "position", "--architecture", NETWORKS[network])
    found = haptera(folder, *files, *read, *SHORT, "--out", network)
    label, alike = found["labels"]["position"], found["consistency"]
    arrays = np.load(folder / network / "embedding.npz")
    latent = []
    for place in range(3):
        held = arrays[f"rat{place}/part"] == "held out"
        latent.append(linear_r2(arrays[f"rat{place}/embedding"][held], made[place].latent[held]))
    names = ("embedding", "alone", "other_sessions", "other_sessions_shuffled")
    scores = {"latent": float(np.mean(latent)), "consistency": alike["mean"]}
    scores |= {f"consistency_{name}": alike[name] for name in ("alone", "shuffled")}
    return scores | {name: label[name] for name in names}


def score_new(folder: Path, network: str) -> dict[str, float]:
    """The fourth session, adapted from the first."""
    model = ("--adapt", Path(network) / "model.safetensors", "--seeds", 1, "--shuffles", 0)
    found = haptera(folder, "rat3.npz", "--signal", "spikes", "--label", "position", *model, "--out", f"new {network}")
    label = found["labels"]["position"]
    errors = label["errors"]
    return {"error_ratio": label["error_ratio"], "error_ratio_short": errors["adapted"] / errors["own_short"]}


def rows_of(seed: int) -> list[tuple[int, str, str, float]]:
    """All numbers of one data set."""
    made, rows = sessions(NEURONS, SAMPLES, seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, one in enumerate(made):
            np.savez(folder / f"rat{place}.npz", spikes=one.signal, position=one.label)
        for network in NETWORKS:
            scores = score_joint(folder, made, network) | score_new(folder, network)
            rows += [(seed, network, measure, value) for measure, value in scores.items()]
    return rows


def table(frame: pd.DataFrame) -> str:
    """Means over the data sets that are there, with the least and the largest."""
    values = frame.groupby(["measure", "network"])["value"].agg(["mean", "min", "max"])
    sets, neurons = frame["seed"].nunique(), ", ".join(map(str, NEURONS[:3]))
    text = f"{sets} data set{'s' * (sets > 1)} of three sessions with {neurons} neurons, {SAMPLES:,} samples\n"
    text += f"each, {STEPS} steps; a fourth session with {NEURONS[3]} in a fifth of them. Mean (least to largest)\n\n"
    text += f"{'':<46}" + "".join(f"{network:>27}" for network in NETWORKS) + "\n"
    for measure, name in ROWS.items():
        cells = [values.loc[measure, network] for network in NETWORKS]
        shown = [f"{one['mean']:.3f} ({one['min']:.3f} to {one['max']:.3f})" for one in cells]
        text += f"{name:<46}" + "".join(f"{one:>27}" for one in shown) + "\n"
    return text


def by_set(frame: pd.DataFrame) -> str:
    """What is compared within each data set, with intervals over the data sets."""
    text = f"\n{'over data sets, with 95 % intervals':<46}\n"
    sets = frame.pivot(index=["network", "seed"], columns="measure", values="value")
    for name, pick in COMPARED.items():
        cells = [pick(sets.loc[network]) for network in NETWORKS]
        text += f"{name:<46}" + "".join(f"{f'{c.value:.3f} ({c.low:.3f} to {c.high:.3f})':>27}" for c in cells) + "\n"
    return text


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kept, columns = folder / "sessions_command.csv", ["seed", "network", "measure", "value"]
    frame = pd.read_csv(kept) if kept.is_file() else pd.DataFrame(columns=columns)
    for seed in range(SETS):
        if not (frame["seed"] == seed).any():
            rows = pd.DataFrame(rows_of(seed), columns=columns)
            frame = rows if frame.empty else pd.concat([frame, rows], ignore_index=True)
            frame.to_csv(kept, index=False, float_format="%.5g")
            print(rows.to_string(), file=sys.stderr, flush=True)
        (folder / "sessions_command.txt").write_text(table(frame) + by_set(frame), encoding="utf-8")
    print(table(frame) + by_set(frame))


if __name__ == "__main__":
    places = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    main(Path(places[0]) if places else Path(__file__).parents[1] / "docs" / "evidence" / "results")
