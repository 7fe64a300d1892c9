"""How much the training statistics should count in one video, and what `prior=auto` chooses there.

    python experiments/pose_prior.py [FOLDER] [--tiny]
    python experiments/pose_prior.py --openfield PROJECT [FOLDER]

`small` learns 8 drawn individuals. 36 others are videos of 32 frames each, as they are and under two corruptions,
predicted with the statistics of their frames and of training, mixed with N from 0 to infinity, and with the N that
`prior=auto` takes after it has seen the frames, as `pose predict` does it. The rule looks for the N whose statistics
are nearest to those of the video; whether these are what the network needs, it cannot know. So beside the errors stands
what the rule goes by: how much the mean of a frame varies within a video, over how much it varies in all of them.
Writes `pose_prior.md` into FOLDER, by default docs/evidence/results. Some two CPU-minutes on one core.
With --openfield it is the test frames of DeepLabCut's example project, by the network that `pose_openfield.py` trained
and kept, in pixels: one recording of one mouse; writes `pose_prior_openfield.md`, some 15 CPU-seconds.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from haptera.adapters import Adapter, BatchNorm, NoAdaptation
from haptera.measures import keypoint_distances, keypoint_scales, mean_over_individuals
from haptera.pose import PoseData, PoseModel, drawn_animals
from haptera.pose.project import open_project
from haptera.pose.splits import split_time
from haptera.shifts import Contrast, GaussianNoise, Shift
from pose_openfield import HOME, SHARE, SIZE
from pose_pieces import arguments, read, small_network, text, write

SHIFTS: dict[str, Shift | None] = {
    "as they are": None,
    "contrast 4": Contrast(4),
    "gaussian noise 2": GaussianNoise(2),
}
OPENFIELD: dict[str, Shift | None] = {
    "as they are": None,
    "contrast 3": Contrast(3),
    "contrast 5": Contrast(5),
    "gaussian noise 1": GaussianNoise(1),
    "gaussian noise 3": GaussianNoise(3),
}
LONGEST, CHOSEN = "infinity, the network as it is", "as prior=auto takes it"
PRIORS = (0, 8, 16, 32, 64, 128, 512)
AUTO = "auto"
INDIVIDUALS, FRAMES, SEED = 36, 32, 5


def adapted(model: PoseModel, prior: object, images: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the maps of a video, and the N that was used; infinity is the network as it is."""
    if prior == np.inf:
        return NoAdaptation(model)(images), np.inf
    adapter: Adapter = BatchNorm(model, prior=prior)  # type: ignore[arg-type]
    maps = adapter(images)
    if prior != AUTO:
        return maps, float(str(prior))
    adapter.auto.sums.zero_()  # the same images are not seen twice
    adapter.auto.images.zero_()
    return adapter(images), float(adapter.layers[0].prior)


def spread(model: PoseModel, videos: list[torch.Tensor]) -> float:
    """Return the variance of a frame's mean within videos over that in all, the median of a layer's channels."""
    layer = next(module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d))
    seen: list[torch.Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].mean((2, 3))))
    with torch.inference_mode():
        for images in videos:
            model(images)
    hook.remove()
    within = torch.stack([each.var(0) for each in seen]).mean(0)
    return float((within / torch.cat(seen).var(0)).median())


def measured(model: PoseModel, data: PoseData) -> tuple[pd.DataFrame, dict[str, float]]:
    """A row for each shift, N and individual; and the spread under each shift."""
    rows, spreads = [], {}
    for name, shift in SHIFTS.items():
        videos = []
        for individual in np.unique(data.individuals):
            own = data.select(np.flatnonzero(data.individuals == individual))
            images = own.images(np.arange(len(own)))
            images = images if shift is None else shift(images, own.rows, 0)
            videos.append(images)
            scales = keypoint_scales(own.keypoints, own.individuals, own.parts)
            for prior in (np.inf, *PRIORS[::-1], AUTO):
                maps, used = adapted(model, prior, images)
                apart = keypoint_distances(model.decode(maps)[0].numpy(), own.keypoints) / scales[:, None]
                rows.append({"shift": name, "prior": str(prior), "individual": individual, "used": used,
                             "error": float(np.nanmean(apart))})  # fmt: skip
        spreads[name] = spread(model, videos)
        print(name, file=sys.stderr, flush=True)
    return pd.DataFrame(rows), spreads


def report(table: pd.DataFrame, spreads: dict[str, float]) -> list[str]:
    """A line for each N."""
    head = f"| N | {' | '.join(SHIFTS)} |"
    line = "|---" * (len(SHIFTS) + 1) + "|"
    wide = table.pivot_table(index="prior", columns="shift", values="error", sort=False)[[*SHIFTS]]
    names = {"inf": LONGEST, AUTO: CHOSEN}
    lines = [head, line]
    lines += [f"| {names.get(str(prior), prior)} | {' | '.join(f'{value:.3f}' for value in row)} |"
              for prior, row in wide.iterrows()]  # fmt: skip
    used = table[table["prior"] == AUTO].groupby("shift")["used"]
    cells = [f"{used.min()[name]:g} to {used.max()[name]:g}" for name in SHIFTS]
    lines += [f"| N that prior=auto takes | {' | '.join(cells)} |"]
    lines += [
        f"| variance of a frame's mean, within over all | {' | '.join(f'{spreads[name]:.2f}' for name in SHIFTS)} |"
    ]
    lines += ["", "Error minus that of N as prior=auto takes it; 95 % intervals over individuals:", "", head, line]
    each = table.pivot_table(index=["shift", "individual"], columns="prior", values="error")
    for prior in wide.index.drop([AUTO, "0"]):
        less = (each[prior] - each[AUTO]).groupby(level="shift")
        found = {name: mean_over_individuals(own.to_numpy(), own.index.get_level_values(1).to_numpy())
                 for name, own in less}  # fmt: skip
        lines.append(f"| {names.get(str(prior), prior)} | {' | '.join(text(found[name]) for name in SHIFTS)} |")
    return lines


def openfield(project: Path) -> list[str]:
    """The same of the later frames of one recording, whose background stays."""
    model = PoseModel.load(HOME / "model.safetensors")
    opened = open_project(project, size=SIZE)
    data = opened.data.select(split_time(opened.data, SHARE).within)
    labels = data.in_source(data.keypoints)
    lines = [f"Mean error in pixels on {len(data)} test frames of the open field, one recording of one mouse:", ""]
    lines += [f"| N | {' | '.join(OPENFIELD)} |", "|---" * (len(OPENFIELD) + 1) + "|"]
    cells: dict[str, list[str]] = {}
    for shift in OPENFIELD.values():
        images = data.images(np.arange(len(data)))
        images = images if shift is None else shift(images, data.rows, 0)
        for prior in (np.inf, *PRIORS[::-1], AUTO):
            maps, used = adapted(model, prior, images)
            apart = keypoint_distances(data.in_source(model.decode(maps)[0].numpy()), labels)
            name = {"inf": LONGEST, AUTO: CHOSEN}.get(str(prior), str(prior))
            chosen = f" (N = {used:g})" if prior == AUTO else ""
            cells.setdefault(name, []).append(f"{np.nanmean(apart):.1f}{chosen}")
    return lines + [f"| {name} | {' | '.join(row)} |" for name, row in cells.items()]


def main() -> None:
    parser = arguments()
    parser.add_argument("--openfield", type=Path)
    given = read(parser)
    if given.openfield:
        write(given.folder, "pose_prior_openfield.md", openfield(given.openfield))
        return
    model, _, _ = small_network(7, 2, 4) if given.tiny else small_network(20, 8, 700)
    data = drawn_animals(3 if given.tiny else INDIVIDUALS, 4 if given.tiny else FRAMES, seed=SEED)
    table, spreads = measured(model, data)
    individuals = len(np.unique(data.individuals))
    about = f"Normalised error of {individuals} new individuals, each a video of {len(data) // individuals} frames:"
    write(given.folder, "pose_prior.md", [about, "", *report(table, spreads)])


if __name__ == "__main__":
    main()
