"""Keypoints of animals: learn from a few individuals, test on others, under low contrast, and adapt without labels.

Run it as `python examples/pose_of_new_individuals.py [FOLDER]`. It draws animals, trains a small network for half a
minute and writes a page with skeletons, and a table as DeepLabCut reads it, into FOLDER.
"""

import sys
from functools import partial
from pathlib import Path

import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.pose import PoseModel, Training, drawn_animals, fit, predict, score, split_individuals
from haptera.shifts import Contrast


def main(folder: Path) -> None:
    """Three individuals to learn from, three that the network never sees."""
    animals = drawn_animals(6, 16, seed=0, height=64, width=80)
    split = split_individuals(animals, 3, fraction=0.7)
    torch.manual_seed(0)
    model = PoseModel(animals.parts, "small", settings={"width": 12}, skeleton=animals.skeleton)
    fit(model, animals.select(split.train), Training(steps=300, lr=4e-3))

    scores = score(
        {"small": model},
        {"within": animals.select(split.within), "out": animals.select(split.out)},
        shifts=[None, Contrast(5)],
        adapters={"none": NoAdaptation, "batchnorm": partial(BatchNorm, prior=0)},
    )
    table = scores.table()
    shown = table[(table["part"] == "") & (table["individual"] == "") & (table["measure"] == "pck")]
    shown = shown.sort_values(["stream", "shift", "adapter"], ascending=[False, True, False])
    for _, row in shown.iterrows():
        print(f"{row['stream']:<7} {row['shift']:<9} {row['adapter']:<10} PCK@0.3 {row['value']:.2f}")

    scores.save(folder / "scores")
    others = animals.select(split.out)
    predict(model, others).table(animals.parts, others.files).write(folder / "predictions.csv")
    print("wrote scores/report.html and predictions.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
