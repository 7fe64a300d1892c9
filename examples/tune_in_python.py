"""Settings chosen on hold-out corruptions, then tested on others: Tent's learning rate and N of BatchNorm, on digits.

Run it as `python examples/tune_in_python.py [FOLDER]`; a second run into the same folder finds every cell finished.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import torch

from haptera import Study
from haptera.adapters import BatchNorm, NoAdaptation, Tent
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast, GaussianNoise, ShotNoise
from haptera.streams import Corruptions
from haptera.tune import Search, tune


def main(folder: Path) -> None:
    """Train, choose, test."""
    torch.manual_seed(0)
    net = ResNet(width=4, stem=2)
    fit(net, digits("train", size=16), epochs=6)
    nets, data = {"net": net}, digits("test", size=16)

    tent = tune(nets, data, Tent, Search({"lr": [1e-3, 1e-2, 1e-1]}, severities=[5]), out=folder / "tent")
    print(tent.summary(control=True), end="\n\n")
    search = Search({"prior": [0, 16, 64, 256]}, severities=[5])
    prior = tune(nets, data, BatchNorm, search, out=folder / "prior")
    print(prior.summary(), end="\n\n")

    test = Corruptions(data, (GaussianNoise, ShotNoise, Contrast), (5,))
    adapters = {
        "none": NoAdaptation,
        "tent": partial(Tent, **tent.best),
        "batchnorm": partial(BatchNorm, **prior.best),
    }
    table = Study(nets, [test], adapters, out=folder / "test").run()
    errors = table[table["measure"] == "error"].groupby("adapter")["value"].mean()
    print("mean error on test corruptions:", ", ".join(f"{name} {errors[name]:.3f}" for name in adapters))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
