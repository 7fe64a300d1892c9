"""Accuracy against severity: a small network on CIFAR-10 under all 19 corruptions, and where accuracy rises instead.

Run it as `python examples/accuracy_by_severity.py [FOLDER]`, with `cifar10.npz` (train_images, train_labels,
test_images, test_labels) in $HAPTERA_DATA, by default ~/.cache/haptera. It trains once, in about five minutes on one
core, and keeps the weights there. It writes `accuracy_by_severity.csv`; a second run into FOLDER finds every cell.
"""

import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from haptera import Study
from haptera.catalog import entries, find
from haptera.data import ArrayData
from haptera.models import ModelSource, ResNet
from haptera.models.training import fit
from haptera.streams import Clean, Corruptions

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "cifar10.npz"
WEIGHTS = DATA.with_name("cifar10-resnet24.safetensors")
NET, TABLES = {"channels": 3, "width": 24, "stem": 2}, ("imagenet", "cifar")


def main(folder: Path) -> None:
    """Every corruption at every severity, with the constants of both tables, on 2,000 test images."""
    with np.load(DATA) as file:
        if not WEIGHTS.exists():
            torch.manual_seed(0)
            net = ResNet(**NET)
            fit(net, ArrayData(file["train_images"], file["train_labels"], "CIFAR-10"), epochs=8)
            save_file(net.state_dict(), WEIGHTS)
        data = ArrayData(file["test_images"][:2000], file["test_labels"][:2000], "CIFAR-10")
    names = [name for name in entries("shifts") if find("shifts", name).tables]
    shifts = {table: [find("shifts", name)(0, table=table).at for name in names] for table in TABLES}
    streams = [Clean(data), *(Corruptions(data, shifts[table], name=table) for table in TABLES)]
    frame = Study({"resnet": ModelSource("resnet", WEIGHTS, NET)}, streams, out=folder / "study").run()
    frame = frame.query("measure == 'accuracy'")[["stream", "shift", "severity", "value", "low", "high", "n"]]
    frame.to_csv(folder / "accuracy_by_severity.csv", index=False, float_format="%.4f")
    for table in TABLES:
        print(f"constants of {table}: accuracy never rises with severity, but for these")
        for name in names:
            rows = frame.query("stream == 'clean' or (stream == @table and shift == @name)").sort_values("severity")
            for one, two in pairwise(rows.itertuples()):
                if two.value > one.value:
                    found = " to ".join(f"{row.value:.3f} ({row.low:.3f}-{row.high:.3f})" for row in (one, two))
                    within = "" if two.low > one.high else ", within the intervals"
                    print(f"  {name} {one.severity:g} to {two.severity:g}: {found}{within}")


if __name__ == "__main__":
    if not DATA.is_file():
        sys.exit(f"there is no {DATA}; put CIFAR-10 there, or say in HAPTERA_DATA where it is")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
