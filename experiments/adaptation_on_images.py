"""Which adapters help, and when they collapse: small residual networks on Fashion-MNIST, three seeds, with intervals.

Run it as `python experiments/adaptation_on_images.py [FOLDER] [--jobs 2]`, with `fashion-mnist.npz` (train_images,
train_labels, test_images, test_labels) in $HAPTERA_DATA, by default ~/.cache/haptera. It trains six networks once
(BatchNorm and GroupNorm, three seeds each) and keeps their weights there; a second run into FOLDER finds every cell. It
writes `adaptation.md` and `adaptation_long.md` into `docs/evidence/results`.
"""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from scipy.stats import t

from haptera import Study
from haptera.adapters import (
    CPL,
    EATA,
    ETA,
    RPL,
    SAR,
    SLR,
    BatchNorm,
    CoTTA,
    NoAdaptation,
    PeriodicReset,
    PseudoLabels,
    RDumb,
    Tent,
)
from haptera.data import ArrayData
from haptera.models import ModelSource, ResNet
from haptera.models.training import fit
from haptera.streams import Clean, Continual, Corruptions, Repeated

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "fashion-mnist.npz"
SEEDS = (0, 1, 2)
EPOCHS = {"batch": 3, "group": 5}  # GroupNorm learns more slowly; both end at about the same clean error
IMAGES = 1000
PASSES = 12
TEN = {"redundancy": 0.4}  # for ten classes
ADAPTERS = {
    "none": NoAdaptation,
    "batchnorm, N = 0": partial(BatchNorm, prior=0),
    "batchnorm, N = 16": BatchNorm,
    "tent": partial(Tent, lr=1e-3),
    "pseudo-labels, hard": partial(PseudoLabels, lr=1e-3),
    "rpl": partial(RPL, lr=1e-3),
    "slr": SLR,
    "cpl": CPL,
    "eta": partial(ETA, lr=1e-3, **TEN),
    "eata": partial(EATA, lr=1e-3, **TEN),
    "sar": partial(SAR, lr=1e-3),
    "cotta, 4 views": partial(CoTTA, augmentations=4),
    "rdumb": partial(RDumb, lr=1e-3, **TEN),
}
LONG = {
    "none": NoAdaptation,
    "batchnorm, N = 0": partial(BatchNorm, prior=0),
    "tent, lr 1e-2": partial(Tent, lr=1e-2),
    "tent, lr 1e-2, reset every 60": PeriodicReset(partial(Tent, lr=1e-2), every=60),
    "rdumb, lr 1e-2, reset every 60": partial(RDumb, every=60, lr=1e-2, **TEN),
}


def networks(train: ArrayData) -> dict[str, ModelSource]:
    """Trained once; the weights stay beside the data."""
    models = {}
    for norm, epochs in EPOCHS.items():
        for seed in SEEDS:
            settings = {"width": 12, "stem": 2, "norm": norm}
            weights = DATA.with_name(f"fashion-resnet12-{norm}-{seed}.safetensors")
            if not weights.exists():
                torch.manual_seed(seed)
                net = ResNet(**settings)
                fit(net, train, epochs=epochs, seed=seed)
                save_file(net.state_dict(), weights)
            models[f"{norm} {seed}"] = ModelSource("resnet", weights, settings)
    return models


def over_seeds(values: pd.Series) -> str:
    """Mean and half of its 95 % interval over the networks (Student's t)."""
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} ± {half:.3f}"


def each(models: dict[str, ModelSource], test: ArrayData, folder: Path, jobs: int) -> None:
    """Every corruption at severity 5, with a fresh adapter."""
    streams = [Clean(test), Corruptions(test, severities=(5,))]
    table = Study(models, streams, ADAPTERS, out=folder / "each").run(jobs=jobs)
    table[["norm", "net"]] = table["model"].str.split(" ", expand=True)
    rows = table[table["measure"].isin(["error", "expected_calibration_error"])]
    means = rows.groupby(["measure", "stream", "norm", "adapter", "net"])["value"].mean()
    lines = [f"Mean over 15 corruptions at severity 5, {IMAGES:,} images each, batches of 64, {len(SEEDS)} networks."]
    for norm in EPOCHS:
        lines += ["", f"**{norm.capitalize()}Norm**", "", "| adapter | clean error | error | of unadapted | ECE |"]
        lines += ["|---|---|---|---|---|"]
        for adapter in ADAPTERS:
            if ("error", "clean", norm, adapter) not in means.index.droplevel("net"):
                continue  # BatchNorm statistics of a network without them
            clean, error = (means["error", stream, norm, adapter] for stream in ("clean", "corruptions"))
            ece = means["expected_calibration_error", "corruptions", norm, adapter]
            share = over_seeds(error / means["error", "corruptions", norm, "none"])
            lines.append(f"| {adapter} | {over_seeds(clean)} | {over_seeds(error)} | {share} | {over_seeds(ece)} |")
    (RESULTS / "adaptation.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def long(models: dict[str, ModelSource], test: ArrayData, folder: Path, jobs: int) -> None:
    """The same corruptions in a row, again and again: error and the largest share of one class, first and last pass."""
    few = {name: source for name, source in models.items() if name.startswith("batch")}
    world = Repeated(Continual(test, severity=5.0), times=PASSES)
    table = Study(few, [world], LONG, out=folder / "long").run(jobs=jobs)
    steps = table[table["measure"] == "accuracy_over_steps"]
    largest = table[table["measure"] == "largest_class_share"]
    length = len(world)
    lines = [
        f"The same 15 corruptions in a row, {world.times} times over, {world.samples:,} images, no reset from outside: "
        "error and largest share of one class, in the first and in the last pass.",
        "",
        "| adapter | error, first | last | largest class, first | last |",
        "|---|---|---|---|---|",
    ]
    rows = {"error": steps.assign(value=1 - steps["value"]), "largest": largest}
    for adapter in LONG:
        first, last = (
            {name: passed(frame[frame["adapter"] == adapter], length, place) for name, frame in rows.items()}
            for place in (0, PASSES - 1)
        )
        found = (first["error"], last["error"], first["largest"], last["largest"])
        lines.append(f"| {adapter} | {' | '.join(over_seeds(values) for values in found)} |")
    (RESULTS / "adaptation_long.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def passed(rows: pd.DataFrame, length: int, place: int) -> pd.Series:
    """The mean over the images of one pass, for each network."""
    own = rows[(rows["step"] * PASSES // length) == place]
    return (own["value"] * own["n"]).groupby(own["model"]).sum() / own.groupby("model")["n"].sum()


def main(folder: Path, jobs: int, only: str | None) -> None:
    """Both studies, or one."""
    with np.load(DATA) as file:
        train = ArrayData(file["train_images"], file["train_labels"], "Fashion-MNIST")
        test = ArrayData(file["test_images"][:IMAGES], file["test_labels"][:IMAGES], "Fashion-MNIST")
    models = networks(train)
    for study in (each, long):
        if only in (None, study.__name__):
            study(models, test, folder, jobs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=["each", "long"])
    given = parser.parse_args()
    if not DATA.is_file():
        sys.exit(f"there is no {DATA}; put Fashion-MNIST there, or say in HAPTERA_DATA where it is")
    main(given.folder or Path(tempfile.mkdtemp(prefix="haptera-")), given.jobs, given.only)
