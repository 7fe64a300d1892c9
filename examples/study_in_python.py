"""A study from Python: one small network, clean and shifted digits, with and without adaptation.

Run it as `python examples/study_in_python.py [FOLDER]`; a second run into the same folder finds every cell finished.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import torch

from haptera import Study
from haptera.adapters import BatchNorm, NoAdaptation
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast, Fog, GaussianNoise
from haptera.streams import Clean, Corruptions


def main(folder: Path) -> None:
    """Train, run, print the table, write the report."""
    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    fit(net, digits("train", size=16), epochs=8)

    data = digits("test", size=16)
    study = Study(
        models={"net": net},
        streams=[Clean(data), Corruptions(data, (GaussianNoise, Fog, Contrast), (1, 3, 5))],
        adapters={"none": NoAdaptation, "batchnorm": partial(BatchNorm, prior=16)},
        out=folder,
    )
    table = study.run()

    accuracy = table[table["measure"] == "accuracy"]
    print(accuracy.pivot_table("value", ["shift", "severity"], "adapter").round(3).to_string())
    print(f"{study.last.ran} cells run, {study.last.kept} found finished")
    print(f"report: {study.report()}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
