"""Why pseudo-labels add little to BatchNorm statistics: the method, its settings, or the labels?

    python experiments/pose_pseudo_labels.py [FOLDER] [--tiny]

`small` learns 8 drawn individuals. Twelve others, 12 frames each, as they are and under two corruptions, are
predicted as they are, with BatchNorm (N = 16), and with `KeypointLabels`, which begins from the same statistics. Its
learning rate and passes are varied, and so are its labels: those that it is sure of, as published; of these only such
as are right (within .3 of the distance from nose to eye), which nobody without labels can choose; and the true ones.
If true labels help with the same settings, the method learns; if only they do, labels that are wrong are what is
missing. Settings are chosen on four individuals, and the table is of the eight others. Writes `pose_pseudo_labels.md`
into FOLDER, by default docs/evidence/results. Some five CPU-minutes on one core.
"""

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import torch

from haptera.adapters import Adapter, BatchNorm, NoAdaptation
from haptera.measures import keypoint_distances, keypoint_scales, mean_over_individuals
from haptera.pose import KeypointLabels, PoseData, PoseModel
from haptera.shifts import Contrast, GaussianNoise, Shift
from pose_pieces import read, small_network, text, write

SHIFTS: dict[str, Shift | None] = {
    "as they are": None,
    "contrast 4": Contrast(4),
    "gaussian noise 2": GaussianNoise(2),
}
RIGHT, PRIOR, CHOSEN = 0.3, 16.0, 4
RATES, PASSES, THRESHOLDS = (1e-3, 1e-2), (3, 10), (0.6, 0.9)


class Labels(KeypointLabels):
    """Pseudo-labels beside the truth, which is given before a batch: its own, those of them that are right, or all."""

    def __init__(self, *arguments: object, source: str = "own", **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]
        self.source = source

    def know(self, truth: torch.Tensor, scales: torch.Tensor) -> None:
        self.truth, self.scales = truth, scales

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        own = super().labels(outputs)
        right = (own - self.truth).norm(dim=2) <= RIGHT * self.scales[:, None]
        known = torch.isfinite(own).all(2) & torch.isfinite(self.truth).all(2)
        self.record["precision"] = float(right[known].float().mean()) if bool(known.any()) else float("nan")
        if self.source == "right":
            return torch.where(right[..., None], own, torch.nan)
        return self.truth if self.source == "true" else own


def error(
    model: PoseModel, make: Callable[[PoseModel], Adapter], data: PoseData, shift: Shift | None
) -> dict[str, float]:
    """Normalised error of one individual; of pseudo-labels, how many there are and how many of them are right."""
    images = data.images(np.arange(len(data)))
    images = images if shift is None else shift(images, data.rows, 0)
    scales = keypoint_scales(data.keypoints, data.individuals, data.parts)
    adapter = make(model)
    if isinstance(adapter, Labels):
        adapter.know(torch.from_numpy(data.keypoints).float(), torch.from_numpy(scales).float())
    keypoints = model.decode(adapter(images))[0].numpy()
    apart = keypoint_distances(keypoints, data.keypoints) / scales[:, None]
    record = getattr(adapter, "record", {})
    told = {name: float(record[name]) for name in ("kept", "precision") if name in record}
    return {"error": float(np.nanmean(apart)), **told}


def makers() -> dict[str, Callable[[PoseModel], Adapter]]:
    """Every adapter by its name."""
    made: dict[str, Callable[[PoseModel], Adapter]] = {
        "none": NoAdaptation,
        "batchnorm": partial(BatchNorm, prior=PRIOR),
    }
    for source in ("own", "right", "true"):
        for threshold in THRESHOLDS if source == "own" else THRESHOLDS[:1]:
            for lr in RATES:
                for passes in PASSES if source == "own" else PASSES[1:]:
                    how = {"source": source, "threshold": threshold, "lr": lr, "steps": passes}
                    made[f"{source} {threshold:g} {lr:g} {passes}"] = partial(Labels, **how)
    return made


def measured(model: PoseModel, data: PoseData) -> pd.DataFrame:
    """A row for each adapter, shift and individual."""
    rows = []
    names = np.unique(data.individuals)
    for adapter, make in makers().items():
        for shift, made in SHIFTS.items():
            for place, name in enumerate(names):
                own = data.select(np.flatnonzero(data.individuals == name))
                row = {"adapter": adapter, "shift": shift, "individual": name, "choosing": place < CHOSEN}
                rows.append(row | error(model, make, own, made))
        print(adapter, flush=True, file=sys.stderr)
    return pd.DataFrame(rows)


def report(table: pd.DataFrame) -> list[str]:
    """Rows for what was chosen, and all of them below."""
    wide = table.pivot_table(index="adapter", columns="shift", values="error", sort=False)[[*SHIFTS]]
    choosing = table[table["choosing"]].groupby("adapter", sort=False)["error"].mean()
    tested = table[~table["choosing"]]
    held = tested.pivot_table(index="adapter", columns="shift", values="error", sort=False)[[*SHIFTS]]
    usual = "own 0.6 0.001 3"
    best = {kind: choosing[[name for name in choosing.index if name.startswith(kind)]].idxmin()
            for kind in ("own", "right", "true")}  # fmt: skip
    shown = {"none": "none", "batchnorm": f"batchnorm:prior={PRIOR:g}", usual: "keypoint_labels, as it comes"}
    words = {"own": "its own labels", "right": "those that are right", "true": "true labels"}
    shown |= {f"{name}": f"{words[kind]}: {setting(name)}" for kind, name in best.items()}
    head = f"| adapter | {' | '.join(SHIFTS)} |"
    lines = [head, "|---" * (len(SHIFTS) + 1) + "|"]
    lines += [f"| {label} | {cells(held.loc[name])} |" for name, label in shown.items()]
    lines += ["", "Error minus that of BatchNorm on the same individuals; 95 % intervals over individuals:", ""]
    lines += [head, lines[1]]
    lines += [f"| {label} | {differences(tested, name)} |" for name, label in shown.items() if name != "batchnorm"]
    lines += [
        "",
        "Pseudo-labels of these: the share of keypoints that is one, and the share of them that is right.",
        "",
    ]
    lines += [head, lines[1]]
    for name in dict.fromkeys((usual, best["own"])):
        own = tested[tested["adapter"] == name].groupby("shift")[["kept", "precision"]].mean()
        lines.append(f"| {setting(name)} | {' | '.join('{:.0%}, {:.0%}'.format(*own.loc[each]) for each in SHIFTS)} |")
    lines += ["", "All settings, all twelve individuals:", "", head.replace("adapter", "labels and settings"), lines[1]]
    return [
        *lines,
        *(f"| {words.get(name.split()[0], '')} {setting(name)} | {cells(row)} |" for name, row in wide.iterrows()),
    ]


def differences(table: pd.DataFrame, name: str) -> str:
    """Cells of an adapter's error minus that of BatchNorm, with intervals over individuals."""
    wide = table.pivot_table(index=["shift", "individual"], columns="adapter", values="error")
    each = [(wide[name] - wide["batchnorm"]).loc[shift] for shift in SHIFTS]
    return " | ".join(text(mean_over_individuals(one.to_numpy(), one.index.to_numpy())) for one in each)


def setting(name: str) -> str:
    """The settings of a name, in words."""
    if " " not in name:
        return name
    _, threshold, lr, passes = name.split()
    return f"threshold {threshold}, lr {lr}, {passes} passes"


def cells(row: pd.Series) -> str:
    return " | ".join(f"{value:.3f}" for value in row)


def main() -> None:
    given = read()
    model, data, split = small_network(7, 2, 4) if given.tiny else small_network(20, 8, 700)
    lines = ["Normalised error of eight new individuals; settings chosen on four others:", ""]
    lines += report(measured(model, data.select(split.out)))
    write(given.folder, "pose_pseudo_labels.md", lines)


if __name__ == "__main__":
    main()
