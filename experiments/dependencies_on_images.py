"""Table 1, new classes and the regulariser on networks trained on real images: 400 classes, five seeds, intervals.

    python experiments/dependencies_on_images.py [FOLDER]

An image is two pictures side by side, each a digit of MNIST or a garment of Fashion-MNIST at 14 x 14 pixels, so there
are 20 x 20 classes. 80 of them, the same for every seed, are never shown in training: they are the new classes of
section 3.2 and the unseen ones of section 3.3. `mnist.npz` and `fashion-mnist.npz` (train_images, train_labels,
test_images, test_labels) are read from $HAPTERA_DATA, by default ~/.cache/haptera, where weights are kept too. The
first run takes about twenty minutes on one core. It writes `dependencies_on_images.csv`, one row for each seed and
value, and `.txt`, the tables with means and 95 % intervals over seeds (Student's t), into `docs/evidence/results`.

Coefficients are found on the outputs for training images; everything is measured on test images.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from scipy.stats import t as student
from torch import nn
from torch.nn import functional as F

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.cutting import cut_state, pairs_worth_cutting
from haptera.analyses.dependencies.new_classes import NewClasses, accuracy_by_group
from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.replacement import removable, replacement, without
from haptera.losses import DependencyPenalty

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
FILES = ("mnist.npz", "fashion-mnist.npz")
SEEDS = range(5)
KINDS, NEW = 20, 80
TRAIN, TEST = 150, 40  # images of each class
SOME = 24  # one training image in so many decides which classes go
EPOCHS, LAST = 9, 3  # the last third is trained with and without the penalty
WIDTH, BATCH = 384, 128
CLASSES = np.random.default_rng(0).permutation(KINDS * KINDS)  # the last `NEW` are new
OLD = len(CLASSES) - NEW
Table = list[dict[str, object]]


class Pairs:
    """Images of pairs, and their classes in the order of `CLASSES`."""

    def __init__(self, part: str, per_class: int, seed: int) -> None:
        pictures: list[np.ndarray] = []
        for name in FILES:
            with np.load(DATA / name) as file:
                images, labels = file[f"{part}_images"], file[f"{part}_labels"]
            small = images.reshape(-1, 14, 2, 14, 2).mean((2, 4)).astype(np.float32) / 255
            pictures += [small[labels == kind] for kind in range(10)]
        generator = np.random.default_rng([seed, part == "train"])
        rows = []
        for pair in CLASSES:
            sides = [
                pictures[kind][generator.integers(0, len(pictures[kind]), per_class)] for kind in divmod(pair, KINDS)
            ]
            rows.append(np.concatenate(sides, axis=2))
        self.images = torch.from_numpy(np.concatenate(rows))[:, None] * 2 - 0.5
        self.targets = torch.arange(len(CLASSES)).repeat_interleave(per_class)

    def only(self, new: bool) -> "Pairs":
        """The samples of new classes, or of the others."""
        part = object.__new__(Pairs)
        chosen = (self.targets >= OLD) == new
        part.images, part.targets = self.images[chosen], self.targets[chosen]
        return part


class Net(nn.Module):
    """Features of one width and a linear head, from convolutions or from hidden layers."""

    def __init__(self, convolutional: bool) -> None:
        super().__init__()
        if convolutional:
            layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            layers += [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(672, WIDTH)]
        else:
            layers = [nn.Flatten(), nn.Linear(392, 512), nn.ReLU(), nn.Linear(512, WIDTH)]
        self.features = nn.Sequential(*layers, nn.ReLU())
        self.head = nn.Linear(WIDTH, OLD)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def train(net: Net, data: Pairs, epochs: range, seed: int, penalty: DependencyPenalty | None = None) -> None:
    """Adam with a rate that falls along a cosine over all epochs, of which these are trained."""
    optimiser = torch.optim.Adam(net.parameters())
    net.train()
    for epoch in epochs:
        optimiser.param_groups[0]["lr"] = 1e-3 * (1 + np.cos(np.pi * epoch / EPOCHS)) / 2 + 1e-5
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        for rows in torch.randperm(len(data.images), generator=generator).split(BATCH):
            logits = net(data.images[rows])
            loss = F.cross_entropy(logits, data.targets[rows])
            if penalty is not None:
                loss = loss + penalty(logits)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    net.eval()


@torch.no_grad()
def outputs(net: Net, data: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Logits and features."""
    features = torch.cat([net.features(images) for images in data.images.split(1024)])
    return net.head(features).numpy(), features.numpy()


def trained(name: str, seed: int, data: Pairs, penalised: bool = False) -> tuple[Net, tuple[int, int]]:
    """A network, and the dependency that two thirds of its training had made worth cutting."""
    torch.manual_seed(seed)
    net = Net(name == "convolutional")
    _kept(net, f"{name}-{seed}-first", lambda: train(net, data, range(EPOCHS - LAST), seed))
    best = pairs_worth_cutting(CovarianceLasso().fit(outputs(net, data)[0])).iloc[0]
    pair = int(best["class"]), int(best["on"])
    penalty = DependencyPenalty([pair]) if penalised else None
    last = f"{name}-{seed}-{'cut' if penalised else 'last'}"
    _kept(net, last, lambda: train(net, data, range(EPOCHS - LAST, EPOCHS), seed, penalty))
    return net.eval(), pair


def _kept(net: Net, name: str, make: object) -> None:
    """Weights from the folder of the data, made if they are not there."""
    path = DATA / f"pairs-{name}.safetensors"
    if path.is_file():
        net.load_state_dict(load_file(path))
    else:
        make()  # type: ignore[operator]
        save_file(net.state_dict(), path)


def table_one(seed: int, nets: dict[str, Net], train_data: Pairs, test: Pairs) -> Iterator[dict[str, object]]:
    """Errors and accuracy with a derived logit, in the mean over classes, within and between networks."""
    found = {name: (outputs(net, train_data)[0], outputs(net, test)[0]) for name, net in nets.items()}
    targets = test.targets.numpy()
    for source, (fitted, tested) in found.items():
        for goal, (goal_fitted, goal_tested) in found.items():
            onto = None if source == goal else goal_fitted
            for label, lasso in {
                "α 2.5": CovarianceLasso(2.5),
                "α 0.25": CovarianceLasso(0.25),
                "3 for each class": CovarianceLasso(per_class=3),
            }.items():
                lasso.fit(fitted, onto)
                rows = replacement(tested, lasso.dependencies_, targets, None if onto is None else goal_tested)
                case = {"network": source if onto is None else f"{source} → {goal}", "kept": label, "seed": seed}
                values = {
                    "dependencies of a class": lasso.dependencies_.counts.mean(),
                    "mean |error|": rows["mean_error"].mean(),
                    "mean |error| / mean |logit|, %": 100 * rows["relative_mean_error"].mean(),
                    "accuracy before, %": 100 * rows["own_accuracy"].iloc[0],
                    "accuracy, one class replaced, %": 100 * rows["accuracy"].mean(),
                    "on its own images before, %": 100 * rows["own_positive_accuracy"].mean(),
                    "on its own images, replaced, %": 100 * rows["positive_accuracy"].mean(),
                }
                if onto is None and label == "α 0.25":
                    redundancy = Redundancy.of(lasso.moment_)
                    values["rank of the moment"] = redundancy.rank
                    values |= removal(fitted[::SOME], train_data.targets.numpy()[::SOME], tested, targets, lasso)
                yield from ({"table": "1", **case, "value": name, "result": float(one)} for name, one in values.items())


def removal(
    fitted: np.ndarray, fitted_targets: np.ndarray, tested: np.ndarray, targets: np.ndarray, lasso: CovarianceLasso
) -> dict[str, float]:
    """Classes that go together for one point of accuracy on some training images, and what that does to test images."""
    gone = removable(fitted, fitted_targets, lasso, drop=0.01)
    own = (fitted.argmax(1) == fitted_targets).mean()
    return {
        "classes removed together at no cost": float((gone["accuracy"] >= own).cumprod().sum()),
        "and for one point of training accuracy": len(gone),
        "accuracy on test images after that, %": 100 * (without(tested, gone).argmax(1) == targets).mean(),
    }


def new_classes(seed: int, net: Net, train_data: Pairs, test: Pairs) -> Iterator[dict[str, object]]:
    """Old logits against saved features, learnt on images of new classes alone or of all classes."""
    logits, features = outputs(net, train_data)
    test_logits, test_features = outputs(net, test)
    ones = np.ones((len(features), 1), np.float32)
    inputs = {
        "old logits, dense": ({}, None, None),
        "old logits, sparse": ({"lasso": 1e-3}, None, None),
        "new linear head": ({}, np.hstack([features, ones]), np.hstack([test_features, ones[: len(test_features)]])),
    }
    targets = train_data.targets.numpy()
    every = np.arange(len(targets)) % 3 == 0  # a third of the images is enough
    for shown, rows in {"new classes": every & (targets >= OLD), "all classes": every}.items():
        for name, (settings, fitted, tested) in inputs.items():
            learnt = NewClasses(NEW, most=120, **settings)
            learnt.fit(logits[rows], targets[rows], None if fitted is None else fitted[rows])
            case = {"table": "2", "network": name, "kept": f"learnt on {shown}", "seed": seed}
            used = float((learnt.coef_ != 0).sum(0).mean())
            yield {**case, "value": "coefficients of a new class", "result": used}
            for row in accuracy_by_group(learnt.logits(test_logits, tested), test.targets.numpy(), OLD):
                yield {**case, "value": f"accuracy, {row.group}, %", "result": 100 * row.value}


def regulariser(seed: int, nets: dict[str, Net], pair: tuple[int, int], test: Pairs) -> Iterator[dict[str, object]]:
    """Accuracy, coefficient and AUPR of the same network trained to its end with and without the penalty."""
    for name, net in nets.items():
        known, unseen = test.only(new=False), test.only(new=True)
        state = cut_state(outputs(net, known)[0], known.targets.numpy(), pair, unseen=outputs(net, unseen)[0])
        values = {
            "accuracy, %": 100 * state.accuracy,
            "coefficient of the pair": state.coefficient,
            "moment of the pair": state.moment,
            "AUPR of unseen classes, %": 100 * float(state.aupr or 0),
        }
        for value, result in values.items():
            yield {"table": "3", "network": name, "kept": "α 0.25", "seed": seed, "value": value, "result": result}


def of_seed(seed: int) -> Table:
    """All rows of one seed."""
    train_data, test = Pairs("train", TRAIN, seed), Pairs("test", TEST, seed)
    known, known_test = train_data.only(new=False), test.only(new=False)
    net, pair = trained("convolutional", seed, known)
    cut, _ = trained("convolutional", seed, known, penalised=True)
    dense, _ = trained("dense", seed, known)
    rows = [*table_one(seed, {"convolutional": net, "dense": dense}, known, known_test)]
    rows += new_classes(seed, net, train_data, test)
    rows += regulariser(seed, {"trained as before": net, "dependency cut": cut}, pair, test)
    return rows


def summary(frame: pd.DataFrame) -> str:
    """The tables as text: mean and half the width of the 95 % interval over seeds."""
    half = student.ppf(0.975, max(frame["seed"].nunique() - 1, 1)) / np.sqrt(frame["seed"].nunique())
    titles = {"1": "Table 1: a logit derived from others", "2": "New classes from old logits", "3": "The regulariser"}
    lines = []
    for number, title in titles.items():
        lines += [title, ""]
        part = frame[frame["table"] == number]
        for (network, kept), rows in part.groupby(["network", "kept"], sort=False):
            lines.append(f"  {network}, {kept}" if number != "3" else f"  {network}")
            for value, own in rows.groupby("value", sort=False)["result"]:
                lines.append(f"    {value:<40}{own.mean():>9.3f} ± {half * own.std():.3f}")
        lines.append("")
    pivot = frame[frame["table"] == "3"].pivot(index=["value", "seed"], columns="network", values="result")
    change = (pivot["dependency cut"] - pivot["trained as before"]).groupby("value", sort=False)
    lines += ["  change from before to cut, seed by seed"]
    lines += [f"    {value:<40}{own.mean():>+9.3f} ± {half * own.std():.3f}" for value, own in change]
    seeds = frame["seed"].nunique()
    return "\n".join([f"{OLD} classes and {NEW} new ones; mean over {seeds} seeds ± 95 %", "", *lines]) + "\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame([row for seed in SEEDS for row in of_seed(seed)])
    frame.to_csv(folder / "dependencies_on_images.csv", index=False, float_format="%.5g")
    text = summary(frame)
    (folder / "dependencies_on_images.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    if missing := [name for name in FILES if not (DATA / name).is_file()]:
        sys.exit(f"there is no {DATA / missing[0]}; put it there, or say in HAPTERA_DATA where it is")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "evidence" / "results")
