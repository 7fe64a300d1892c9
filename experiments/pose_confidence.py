"""Is the likelihood of keypoints right on individuals that neither the network nor the calibration has seen?

    python experiments/pose_confidence.py

A small network learns from 10 drawn individuals. Its likelihood is calibrated, two numbers, on other frames of these
(`within`) or on 10 individuals that it never saw (`out`), and tried on 10 further ones, as they are and with less
contrast. Right is within .3 of the distance from nose to eye (PCK@0.3). Three shuffles of the individuals.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from haptera.measures.keypoints import keypoint_distances, keypoint_scales
from haptera.pose import PoseModel, Training, drawn_animals, evaluate, fit
from haptera.pose.confidence import calibration_error, error_exponent, fit_calibration
from haptera.shifts import Contrast

RESULT = Path(__file__).parents[1] / "docs" / "evidence" / "results" / "pose_confidence.md"
INDIVIDUALS, FRAMES, LEARNT, THRESHOLD, SHUFFLES = 30, 12, 8, 0.3, 3


def keypoints(model, data, shift=None):
    """Likelihood and error of every labelled keypoint."""
    found = evaluate(model, data, shift=shift)
    scales = keypoint_scales(found.targets, data.individuals, data.parts)
    errors = keypoint_distances(found.arrays["keypoints"], found.targets) / scales[:, None]
    known = np.isfinite(errors)
    return found.arrays["confidence"][known].astype(float), errors[known]


def one_shuffle(data, shuffle):
    order = np.random.default_rng(shuffle).permutation(np.unique(data.individuals))
    groups = [np.flatnonzero(np.isin(data.individuals, order[start : start + 10])) for start in (0, 10, 20)]
    early = np.tile(np.arange(FRAMES) < LEARNT, INDIVIDUALS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(shuffle)
        model = PoseModel(data.parts, "small", settings={"width": 8})
    fit(model, data.select(groups[0][early[groups[0]]]), Training(steps=600, lr=5e-3, seed=shuffle))
    sets = {
        "within": keypoints(model, data.select(groups[0][~early[groups[0]]])),
        "out": keypoints(model, data.select(groups[1])),
        "further": keypoints(model, data.select(groups[2])),
        "contrast": keypoints(model, data.select(groups[2]), Contrast(3)),
    }
    fits = {name: fit_calibration(sets[name][0], sets[name][1] <= THRESHOLD) for name in ("within", "out")}
    rows = []
    for name, label in (("further", "new individuals"), ("contrast", "new individuals, contrast 3")):
        likelihood, errors = sets[name]
        right = errors <= THRESHOLD
        row = {"frames": label, "PCK": right.mean(), "as given": calibration_error(likelihood, right)}
        row |= {f"by {each}": calibration_error(made.apply(likelihood), right) for each, made in fits.items()}
        rows.append(row | {"exponent": error_exponent(likelihood, errors)[1]})
    return rows


def main():
    data = drawn_animals(INDIVIDUALS, FRAMES, seed=5, height=48, width=64)
    found = pd.DataFrame([row for shuffle in range(SHUFFLES) for row in one_shuffle(data, shuffle)])
    named = found.groupby("frames", sort=False)
    heads = ["test", "PCK@0.3", "as given", "calibrated on known", "on new individuals", "exponent of errors"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, own in named:
        ends = own.iloc[:, 1:].agg(["mean", "min", "max"]).T
        cells = [f"{mean:.3f} ({low:.3f} to {high:.3f})" for mean, low, high in ends.itertuples(index=False)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    RESULT.write_text("\n".join(lines) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main()
