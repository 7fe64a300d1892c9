"""Does self-learning help, and does it last? Colour CIFAR-10, beside the printed tables of the thesis.

Run it as `python experiments/adaptation_on_cifar.py [TABLE ...] [--images 10000] [--jobs 1]` after
`python experiments/cifar_networks.py`; both say where the data is looked for. Every table is a study in
`cifar-studies` beside the data, so a run that was stopped goes on with the cells that are missing, and writes
`cifar_TABLE.md` into `docs/evidence/results`. Settings are chosen by `tune` on the four hold-out corruptions alone.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import torch

import cifar_ablations
import cifar_resets
import cifar_streams
from cifar_data import TEST, clean
from cifar_networks import RECIPES, source_of
from cifar_study import (
    BATCHNORM,
    BN,
    FEWER,
    LEARNERS,
    NONE,
    STUDIES,
    Run,
    along,
    by_corruption,
    compare,
    markdown,
    rate_of,
    read_well,
    say,
    say_aim,
    tuned,
    unlearned,
    values,
    write,
)
from haptera import Study
from haptera.adapters import NoAdaptation
from haptera.streams import Clean

PRINTED = dict.fromkeys(BATCHNORM, "18.7 → 13.1 ENT, 15.1 RPL (B.13)")
PRINTED |= {"group": "18.6 → 18.0 ENT, 18.4 RPL (B.13, GroupNorm)", "vit": "nothing of a transformer on CIFAR-10"}
"""Network -> what the thesis prints for one of its kind."""


def networks_table(run: Run) -> None:
    """Clean accuracy of the networks that are trained."""
    nets = {name: source_of(name) for name, recipe in RECIPES.items() if recipe.weights.is_file()}
    table = Study(nets, [Clean(clean(), batch_size=500)], [NoAdaptation], out=STUDIES / "clean").run(progress=False)
    rows = table[table["measure"] == "accuracy"].set_index("model")[["value", "low", "high"]].astype(float)
    rows.columns = ["accuracy", "low", "high"]
    rows.index.name = "network"
    write(
        "networks",
        ["Accuracy on the 10,000 clean test images, with 95 % interval.", "", *markdown(rows, 4, bold=False)],
    )


def corruptions_table(net: str, run: Run) -> None:
    """Tables 3.2, 3.7, 3.11, B.8, B.9: methods by corruption; written anew after each method."""
    name = "main" if net == "batch" else f"main_{net}"
    done: dict[str, Any] = unlearned(net)
    for method in LEARNERS if net in BATCHNORM else FEWER:
        done[method] = tuned(method, net, run.jobs)
        table = by_corruption(name, net, done, run)
        errors = pd.DataFrame({each: values(table, each) for each in done}).T
        curve = along(table, list(done), 5)
        curve.index.name = "error along the stream"
        title = "Learning curves: the mean error over the corruptions in each fifth of their streams."
        write(name, [*corruption_lines(net, errors, done, run), "", title, "", *markdown(curve)])


def corruption_lines(net: str, errors: pd.DataFrame, adapters: Mapping[str, Any], run: Run) -> list[str]:
    rows = errors.reindex(columns=list(TEST))
    rows.insert(0, "mean", errors.mean(axis=1))
    rows.insert(0, "lr", [rate_of(adapters[name]) for name in rows.index])
    rows.index.name = "error"
    rows.columns = [read_well(name) for name in rows.columns]
    lines = [f"Error of the {net} network, {run}; a fresh adapter for each corruption.", "", *markdown(rows), ""]
    parent = BN if net in BATCHNORM else NONE
    if parent == BN:
        gain = compare(errors.loc[BN], errors.loc[NONE])
        lines.append(say("BatchNorm statistics below the network as it is", gain, "25.8 → 18.7 (B.13, WRN-26-1)"))
    best = list(errors.mean(axis=1).drop([NONE, BN], errors="ignore").sort_values().index[:3])
    printed = PRINTED[net]
    differences = {name: compare(errors.loc[name], errors.loc[parent]) for name in best}
    lines += [say(f"{name} below {parent}", own, printed) for name, own in differences.items()]
    if {"tent", "rpl"} <= set(errors.index):
        claim = compare(errors.loc["tent"], errors.loc["rpl"])
        lines.append(say("Entropy (tent) below robust pseudo-labels (rpl)", claim, "8.5 against 9.0 (3.7, WRN-40)"))
    methods = len(adapters) - len(unlearned(net))
    return [*lines, say_aim([-difference.mean for difference in differences.values()], methods)]


def calibration_table(run: Run) -> None:
    """Table 3.13: self-learning makes predictions too sure."""
    some = unlearned("batch") | {name: tuned(name, "batch", run.jobs) for name in ("tent", "rpl")}
    table = by_corruption("main", "batch", some, run)
    eces = {name: values(table, name, "expected_calibration_error") for name in some}
    rows = pd.DataFrame({"ECE": {k: v.mean() for k, v in eces.items()}, "sd": {k: v.std() for k, v in eces.items()}})
    rows.index.name = "adapter"
    lines = [
        f"Expected calibration error, {run}: mean and standard deviation over corruptions.",
        "",
        *markdown(rows),
        "",
    ]
    printed = "2.9 as it is, 18.7 with either, severity 5 (3.13, ImageNet-C)"
    for name in ("tent", "rpl"):
        lines.append(say(f"The network as it is below {name}", compare(eces[NONE], eces[name]), printed))
        lines.append(say(f"BatchNorm statistics below {name}", compare(eces[BN], eces[name]), "not printed"))
    write("calibration", lines)


TABLES: dict[str, Callable[[Run], None]] = {
    "networks": networks_table,
    "main": partial(corruptions_table, "batch"),
    "seeds": cifar_ablations.seeds_table,
    "continual": partial(cifar_streams.recurring_table, "batch"),
    "offline": cifar_ablations.offline_table,
    "calibration": calibration_table,
    "forgetting": cifar_ablations.forgetting_table,
    "threshold": cifar_ablations.threshold_table,
    "parameters": cifar_ablations.parameters_table,
    "prior": cifar_ablations.prior_table,
    "epochs": cifar_ablations.epochs_table,
    "teacher": cifar_ablations.teacher_table,
    "ccc": cifar_streams.ccc_table,
    "margin": cifar_resets.margin_table,
    "resets": cifar_resets.resets_table,
    "anchor": cifar_resets.anchor_table,
    "mixed": cifar_resets.mixed_table,
    "temperature": cifar_ablations.temperature_table,
    "main_smooth": partial(corruptions_table, "smooth"),
    "main_group": partial(corruptions_table, "group"),
    "main_vit": partial(corruptions_table, "vit"),
    "continual_vit": partial(cifar_streams.recurring_table, "vit"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", help=", ".join(TABLES))
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if wrong := set(given.tables) - set(TABLES):
        sys.exit(f"there is no table {min(wrong)}; {', '.join(TABLES)} was expected")
    torch.set_num_threads(1)
    for name in given.tables or TABLES:
        TABLES[name](Run(given.images, given.jobs))
