"""CIFAR-10's test images under 19 corruptions at severity 5, made once and kept beside the data.

The constants are those of CIFAR-10-C (`table="cifar"`). Fifteen corruptions test, four choose settings.
"""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from haptera.catalog import find
from haptera.data import ArrayData, CorruptedImages, CorruptedPart
from haptera.families import FAMILIES
from haptera.streams import Corruptions

FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
SEVERITY = 5
HOLDOUT = FAMILIES["holdout"]
TEST = tuple(shift for family, shifts in FAMILIES.items() if family != "holdout" for shift in shifts)


@cache
def clean(images: int = 10_000) -> ArrayData:
    """Return the first test images."""
    with np.load(FOLDER / "cifar10.npz") as file:
        return ArrayData(file["test_images"][:images], file["test_labels"][:images].astype(np.int64), "CIFAR-10")


def corrupted(shifts: Sequence[str], images: int) -> CorruptedImages:
    """Return the first test images under each of some corruptions."""
    labels = clean().targets
    assert labels is not None
    name = f"CIFAR-10-C, severity {SEVERITY}"
    parts = [
        CorruptedPart(shift, float(SEVERITY), ArrayData(_images(shift)[:images], labels[:images], name))
        for shift in shifts
    ]
    return CorruptedImages(name, parts)


@cache
def _images(shift: str) -> np.ndarray:
    """Return `(10000, 32, 32, 3)`, bytes."""
    path = FOLDER / "cifar-corrupted" / f"{shift}-{SEVERITY}.npy"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        settings = {"table": "cifar", "shuffle": False, "batch_size": 500}
        stream = Corruptions(clean(), (find("shifts", shift),), (SEVERITY,), **settings)
        images = np.concatenate([(255 * batch.inputs).round().byte().permute(0, 2, 3, 1).numpy() for batch in stream])
        beside = path.with_suffix(".part.npy")
        np.save(beside, images)
        beside.replace(path)
    return np.load(path)
