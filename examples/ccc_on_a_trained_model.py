"""CCC with a yardstick of one's own: is the walk as hard as it was meant to be, all the way?

Run it as `python examples/ccc_on_a_trained_model.py [FOLDER]`, with `cifar10.npz` (train_images, train_labels,
test_images, test_labels) in $HAPTERA_DATA, by default ~/.cache/haptera. It trains once, in about five minutes on one
core, and keeps the weights there. It calibrates into FOLDER, in about ten minutes, and writes `ccc_walk.csv`.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from haptera.adapters import NoAdaptation
from haptera.data import ArrayData
from haptera.models import ModelSource, ResNet
from haptera.models.training import fit
from haptera.run.calibrate import Scale, calibrate
from haptera.run.loop import evaluate
from haptera.shifts import Contrast, Fog, Frost, GaussianNoise, ImpulseNoise
from haptera.streams import CCC

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "cifar10.npz"
WEIGHTS = DATA.with_name("cifar10-resnet24.safetensors")
NET, SPEED = {"channels": 3, "width": 24, "stem": 2}, 1000
SHIFTS = (GaussianNoise, ImpulseNoise, Frost, Fog, Contrast)  # each can be made hard enough for this network


def main(folder: Path) -> None:
    """Calibrate, walk through 50,000 images, and compare every 2,000 of them, and every path, with the target."""
    with np.load(DATA) as file:
        if not WEIGHTS.exists():
            torch.manual_seed(0)
            net = ResNet(**NET)
            fit(net, ArrayData(file["train_images"], file["train_labels"], "CIFAR-10"), epochs=8)
            save_file(net.state_dict(), WEIGHTS)
        data = ArrayData(file["test_images"], file["test_labels"], "CIFAR-10")
    net = ModelSource("resnet", WEIGHTS, NET)()
    calibration = calibrate(net, data, folder / "calibration", SHIFTS, Scale(samples=1000, step=0.5))
    stream = CCC(data, calibration, "medium", speed=SPEED, length=50_000)
    target, walk = calibration.target("medium"), stream.walk()
    walk["accuracy"] = evaluate(NoAdaptation(net), stream).correct().reshape(-1, SPEED).mean(1)
    walk.assign(target=target).to_csv(folder / "ccc_walk.csv", index=False, float_format="%.4f")
    print(f"accuracy {calibration.clean / calibration.samples:.3f} on clean images, target {target:.3f}")
    path = (walk["second"] != walk["second"].shift()).cumsum()
    whole = path.where(walk["severity_1"].eq(0).groupby(path).transform("any"))  # the last one may be cut
    for name, by, near in (("windows of 2,000 images", walk["start"] // 2000, 0.05), ("whole paths", whole, 0.02)):
        off = (walk.groupby(by)[["expected", "accuracy"]].mean() - target).abs()
        can, kept = off["expected"] <= near, (off <= near).all(axis=1)
        print(f"{len(off)} {name}: {can.sum()} can be within {near} of the target, {kept.sum()} of these are; others:")
        print(walk[by.isin(off.index[~kept])].to_string(index=False) if not kept.all() else "none")


if __name__ == "__main__":
    if not DATA.is_file():
        sys.exit(f"there is no {DATA}; put CIFAR-10 there, or say in HAPTERA_DATA where it is")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
