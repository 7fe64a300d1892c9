"""Horse-C in small: 15 corruptions x 5 severities on drawn animals, as tables D.5 to D.8 of the thesis.

    python experiments/pose_corruptions.py [FOLDER] [--tiny]

Two of the networks that `pose_backbones.py` trains, the first 11 blocks of EfficientNet-Lite0 from ImageNet weights and
from scratch, on four known and four new individuals of eight frames each, under every corruption at every severity, as
they are and with BatchNorm statistics of each individual and corruption. Every cell is kept in
$HAPTERA_DATA/pose-corruptions (default ~/.cache/haptera), so a stopped run goes on. Writes `pose_corruptions.md` into
FOLDER, by default docs/evidence/results. Some five CPU-minutes on one core. The same from the command line is
`haptera pose score DATA --model M --split split.csv --shift all --out FOLDER`.
"""

from functools import partial

import numpy as np
import pandas as pd

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.measures import mean_over_individuals
from haptera.pose import PoseData, drawn_animals, score, split_individuals
from haptera.pose.corruptions import MEAN, by_severity, read_shifts
from pose_backbones import FIRST, STARTS, Bench, Run, Size
from pose_pieces import kept_in, read, text, write

HOME = kept_in("pose-corruptions")
ADAPTERS = {"base": NoAdaptation, "adapt": partial(BatchNorm, prior=0)}
INDIVIDUALS, FRAMES = 4, 8


def choose_frames(data: PoseData, rows: np.ndarray, individuals: int) -> PoseData:
    """A few frames of a few individuals, evenly spread."""
    chosen = []
    for name in np.unique(data.individuals[rows])[:individuals]:
        own = rows[data.individuals[rows] == name]
        chosen.append(own[np.unique(np.linspace(0, len(own) - 1, FRAMES).round().astype(int))])
    return data.select(np.concatenate(chosen))


def rows_of(table: pd.DataFrame, networks: list[str], streams: list[str]) -> list[str]:
    """A line for each corruption and severity, columns for networks x adapters."""
    names = {"within": "known individuals", "out": "new individuals"}
    lines = []
    for stream in streams:
        own = table[table["stream"] == stream]
        head = " | ".join(f"{network}, {adapter}" for network in networks for adapter in ADAPTERS)
        lines += ["", f"{names[stream].capitalize()}:", "", f"| corruption | severity | {head} |"]
        lines.append("|---" * (2 + len(networks) * len(ADAPTERS)) + "|")
        for (shift, severity), each in own.groupby(["shift", "severity"], sort=False):
            values = each.set_index("model")
            cells = [f"{values.loc[network, adapter]:.2f}" for network in networks for adapter in ADAPTERS]
            lines.append(f"| {shift.replace('_', ' ')} | {severity} | {' | '.join(cells)} |")
    return lines


def summary(rows: pd.DataFrame) -> list[str]:
    """Lines for clean frames and the mean over corruptions, what adaptation changes, and in how many cells it helps."""
    lines = ["| network | individuals | clean, base | clean, adapt | corrupted, base | corrupted, adapt "
             "| base minus adapt, corrupted | helps in |"]  # fmt: skip
    lines.append("|---" * 8 + "|")
    for (network, stream), own in rows[rows["part"] == ""].groupby(["model", "stream"], sort=False):
        cells = own[own["individual"] == ""].pivot_table(index=["shift", "severity"], columns="adapter", values="value")
        cells = cells.drop(index="clean", level="shift")
        each = own[own["individual"] != ""].assign(corrupted=own["shift"] != "clean")
        wide = each.pivot_table(index=["corrupted", "individual"], columns="adapter", values="value")
        means = [over_individuals(wide.loc[corrupted, adapter], "log") for corrupted in (False, True)
                 for adapter in ADAPTERS]  # fmt: skip
        means.append(over_individuals(wide.loc[True, "base"] - wide.loc[True, "adapt"]))
        helps = int((cells["adapt"] < cells["base"]).sum())
        lines.append(f"| {network} | {stream} | {' | '.join(means)} | {helps} of {len(cells)} |")
    return lines


def over_individuals(values: pd.Series, scale: str = "plain") -> str:
    """Text of a mean with its interval; `values` has one for each individual."""
    return text(mean_over_individuals(values.to_numpy(), values.index.to_numpy(), scale))


def main() -> None:
    given = read()
    size = Size(4, 2, 40, steps=2, home=given.folder / "weights") if given.tiny else Size()
    data = drawn_animals(size.individuals, size.frames, seed=0)
    split = split_individuals(data, size.train, fraction=0.5, shuffle=0)
    bench = Bench(size)
    networks = {}
    for start, pretrained in STARTS.items():
        run = Run(f"first {start} 0.5", {**FIRST, "pretrained": pretrained})
        networks[start] = bench.trained(run, data, split, 0)[0]
    individuals = 1 if given.tiny else INDIVIDUALS
    sets = {
        "within": choose_frames(data, split.within, individuals),
        "out": choose_frames(data, split.out, individuals),
    }
    shifts = read_shifts(["all"])[:: 35 if given.tiny else 1]
    scores = score(
        networks, sets, shifts=(None, *shifts), adapters=ADAPTERS, out=given.folder / "cells" if given.tiny else HOME
    )  # fmt: skip
    table = by_severity(scores.rows)
    errors = scores.rows[scores.rows["measure"] == "normalised_error"]
    seen = " and ".join(f"{len(frames)} frames of {len(set(frames.individuals))}" for frames in sets.values())
    about = f"{len(shifts)} corruptions; {seen} individuals, within and out of domain; networks of {size.steps} steps."
    lines = [f"{about} Normalised error, 95 % intervals over individuals:", ""]
    lines += [*summary(errors), "", "Means over the five severities (table D.5):"]
    means, every = table[table["severity"] == MEAN], table[table["severity"] != MEAN]
    lines += rows_of(means, [*networks], [*sets])
    lines += ["", "Every severity (tables D.6 to D.8):", *rows_of(every, [*networks], [*sets])]
    write(given.folder, "pose_corruptions.md", lines)


if __name__ == "__main__":
    main()
