"""Other species: whether better ImageNet networks are better on a species that was left out; figure 5.4 in small.

    python experiments/pose_species.py [FOLDER] [--tiny]

Each of EfficientNet-Lite 0, 1 and 2, from ImageNet weights, learns three of four drawn species and is tested on the
fourth, in turn: 24 individuals of 20 frames, half of the frames of 18 to learn from, 200 steps of 8 frames. Below the
errors stand the lines of errors against ImageNet accuracy, and differences on the same frames. It is a small test:
three networks whose accuracies span 2.5 points, and 200 steps are few. Networks stay in $HAPTERA_DATA/pose-species
(default ~/.cache/haptera), so a stopped run goes on. Writes `pose_species.md` into FOLDER, by default
docs/evidence/results. It needs `pip install 'haptera[pretrained]'`. Some 7 CPU-minutes. Intervals are 95 %, over
individuals.
"""

from pathlib import Path

import numpy as np
import torch

from haptera.pose import PoseData, PoseModel, Split, Training, drawn_animals, evaluate
from haptera.pose.backbone import error_trend
from haptera.pose.splits import leave_species_out
from pose_backbones import LITE, RATE, SPECIES
from pose_pieces import Errors, arguments, kept_in, read, scales_of, text, trained, write

HOME = kept_in("pose-species")
INDIVIDUALS, FRAMES, STEPS = 24, 20, 200
DOMAINS = ("within", "out")


def measured(data: PoseData, steps: int, home: Path) -> Errors:
    """Errors of each network without each species, on other frames of the others and on that species."""
    errors, scales = Errors(), scales_of(data)
    for species in SPECIES:
        split = leave_species_out(data, species, fraction=0.5)
        for backbone in LITE:
            model = network(backbone, species, data, split, steps, home)
            for domain, rows in zip(DOMAINS, (split.within[::2], split.out), strict=True):
                outputs = evaluate(model, data.select(rows))
                errors.add((backbone, species, domain), outputs, scales[rows])
                errors.add((backbone, domain), outputs, scales[rows])
    return errors


def network(backbone: str, species: str, data: PoseData, split: Split, steps: int, home: Path) -> PoseModel:
    """Return a network that learnt all species but one."""
    torch.manual_seed(0)
    model = PoseModel(data.parts, backbone, settings={"pretrained": True}, skeleton=data.skeleton)
    training = Training(steps=steps, lr=RATE)
    path = home / f"{backbone}-without-{species}-{steps}.safetensors"
    return trained(path, model, data, split, training, split.out[::16], 1)[0]


def report(errors: Errors) -> list[str]:
    """A line for each species and each network, the lines through them, and differences."""
    names, accuracies = [*LITE], [kind.accuracy for kind in LITE.values()]
    head = " | ".join(f"{name}, {kind.accuracy:g} %" for name, kind in LITE.items())
    lines = [f"| error on | {head} | slope | R² |", "|---" * (len(names) + 3) + "|"]
    places: dict[str, list[tuple[str, ...]]] = {
        f"{species}, left out": [(name, species, "out") for name in names] for species in SPECIES
    }
    places |= {f"{label}, all": [(name, domain) for name in names]
               for label, domain in {"left out": "out", "within": "within"}.items()}  # fmt: skip
    for label, keys in places.items():
        found = [errors.error(*key) for key in keys]
        line = error_trend(accuracies, [100 * mean.value for mean in found])
        lines.append(f"| {label} | {' | '.join(map(text, found))} | {line.slope:+.2f} | {line.r2:.2f} |")
    lines += ["", "Slopes are points of error for each point of ImageNet accuracy, of three networks."]
    lines += ["", "Error minus that of efficientnet_lite0 on the same frames:", ""]
    lines += [f"| species | {' | '.join(names[1:])} |", "|---" * len(names) + "|"]
    for label, keys in places.items():
        lines.append(f"| {label} | {' | '.join(text(errors.difference(key, keys[0])) for key in keys[1:])} |")
    values = np.array([[errors.error(name, species, "out").value for name in names] for species in SPECIES])
    better = sum(int((row[k] < row[:k]).sum()) for row in values for k in range(len(names)))
    pairs = len(SPECIES) * len(names) * (len(names) - 1) // 2
    lines += ["", f"Of two networks the one with the better accuracy has the lower error in {better} of {pairs} cases."]
    return lines


def main() -> None:
    given = read(arguments())
    tiny = given.tiny
    data = drawn_animals(8 if tiny else INDIVIDUALS, 4 if tiny else FRAMES, species=SPECIES, seed=1)
    steps = 2 if tiny else STEPS
    errors = measured(data, steps, given.folder / "weights" if tiny else HOME)
    individuals = len(np.unique(data.individuals))
    about = f"{individuals} drawn individuals of four species, {len(data) // individuals} frames each; each species is "
    about += f"left out in turn; {steps} steps of 8 frames from ImageNet weights; 95 % intervals over individuals."
    write(given.folder, "pose_species.md", [about, "", *report(errors)])


if __name__ == "__main__":
    main()
