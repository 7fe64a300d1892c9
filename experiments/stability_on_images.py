"""Does relative stability go with the error? Ten architectures on Fashion-MNIST, three seeds, with intervals.

    python experiments/stability_on_images.py [FOLDER]

`fashion-mnist.npz` (train_images, train_labels, test_images, test_labels) is read from $HAPTERA_DATA, by default
~/.cache/haptera, where the weights of every network are kept, so a stopped run goes on. The first run takes about 35
minutes on one core. Into FOLDER, by default `docs/evidence/results`, it writes `stability_on_images.csv`, one row for
each network, `.txt`, the tables, and `.svg`, error against R, and R against the size of the training set.

Every network is trained with SGD and a cosine schedule until its training loss is flat (the table says how much of it
the last tenth of training took away); the loss is cross-entropy, images are translated and mirrored. R, D and G are
medians over 501 test images at δ = 1 and c = 3, the error is over all 10,000. Over seeds they are log-averaged. Before
training BatchNorm has mean 0 and variance 1. The second part trains one residual network on subsets of the data.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from charts import RESULTS, Series, charts
from haptera.analyses.stability.analysis import stability
from haptera.data import ArrayData
from haptera.models import MLP, LeNet, ResNet
from haptera.models.networks import Normalise, norm_layer
from haptera.statistics.power_law import log_average, over_seeds, power_law, power_laws

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "fashion-mnist.npz"
SEEDS = (0, 1, 2)
TRAIN, STEPS, BATCH, PROBES = 6000, 1800, 128, 501
SIZES, SIZE_STEPS = (500, 1500, 4500, 13500), 900
SIDE = {"size": 28}


class Plain(nn.Sequential):
    """Three stages of convolution and pooling, with or without normalisation, and a linear head."""

    def __init__(self, width: int = 8, norm: str = "none") -> None:
        layers: list[nn.Module] = [Normalise()]
        inputs = 1
        for outputs in (width, 2 * width, 4 * width):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), norm_layer(norm, outputs), nn.ReLU(), nn.MaxPool2d(2)]
            inputs = outputs
        super().__init__(*layers, nn.Flatten(), nn.Linear(inputs * 9, 10))


NETWORKS: dict[str, tuple[str, Callable[[], nn.Module], float]] = {
    "fc, 1 x 128": ("fully connected", partial(MLP, **SIDE, width=128, depth=1), 0.05),
    "fc, 2 x 256": ("fully connected", partial(MLP, **SIDE, width=256, depth=2), 0.05),
    "fc, 4 x 64": ("fully connected", partial(MLP, **SIDE, width=64, depth=4), 0.05),
    "lenet, 8": ("convolutional", partial(LeNet, **SIDE, width=8), 0.03),
    "lenet, 12": ("convolutional", partial(LeNet, **SIDE, width=12), 0.03),
    "plain, 8": ("convolutional", partial(Plain, 8), 0.03),
    "plain with BatchNorm, 8": ("with BatchNorm", partial(Plain, 8, "batch"), 0.1),
    "resnet, BatchNorm, 8": ("residual", partial(ResNet, width=8, stem=2), 0.1),
    "resnet, BatchNorm, 16": ("residual", partial(ResNet, width=16, stem=2), 0.1),
    "resnet, GroupNorm, 12": ("residual", partial(ResNet, width=12, stem=2, norm="group"), 0.1),
}
KINDS = ("fully connected", "convolutional", "with BatchNorm", "residual")
Images = tuple[torch.Tensor, torch.Tensor]


def built(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return make().eval()


def train(net: nn.Module, data: Images, lr: float, steps: int, seed: int, augment: bool) -> float:
    """SGD with momentum; what share of the training loss the last tenth of the steps took away."""
    images, targets = data
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(net.parameters(), lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=steps, pct_start=0.1)
    net.train()
    losses, order = [], torch.empty(0, dtype=torch.int64)
    for _ in range(steps):
        if len(order) < min(BATCH, len(images)):
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        rows, order = order[:BATCH], order[BATCH:]
        batch = augmented(images[rows], generator) if augment else images[rows]
        loss = F.cross_entropy(net(batch), targets[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(float(loss.detach()))
    net.eval()
    tenth = steps // 10
    return 1 - float(np.mean(losses[-tenth:]) / max(np.mean(losses[-2 * tenth : -tenth]), 1e-12))


def augmented(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Moved by up to two pixels, the same way for a batch, and half of the batches mirrored."""
    down, right, mirror = (int(torch.randint(0, most, (), generator=generator)) for most in (5, 5, 2))
    moved = F.pad(images, (2, 2, 2, 2), mode="replicate")[..., down : down + 28, right : right + 28]
    return moved.flip(-1) if mirror else moved


def trained(name: str, make: Callable[[], nn.Module], data: Images, lr: float, steps: int, seed: int, augment: bool):
    """The network and how flat its loss was, from the folder of the data if it is there."""
    net = built(make, seed)
    path = DATA.with_name(f"stability-{name.replace(', ', '-').replace(' ', '_')}-{steps}-{seed}.safetensors")
    if path.is_file():
        state = load_file(path)
        flat = float(state.pop("flat"))
        net.load_state_dict(state)
        return net.eval(), flat
    flat = train(net, data, lr, steps, seed, augment)
    save_file({**net.state_dict(), "flat": torch.tensor(flat)}, path)
    return net, flat


@torch.no_grad()
def error(net: nn.Module, data: Images) -> float:
    wrong = [
        (net(part).argmax(1) != labels).float() for part, labels in zip(*(x.split(500) for x in data), strict=True)
    ]
    return float(torch.cat(wrong).mean())


def measured(net: nn.Module, test: ArrayData, seed: int) -> dict[str, float]:
    found = stability(net, test, samples=PROBES, draws=0, seed=seed, progress=False)
    return {index: found.value(index) for index in "RDG"}


def architectures(train_set: Images, test_set: Images, test: ArrayData) -> pd.DataFrame:
    rows = []
    some = tuple(part[:TRAIN] for part in train_set)
    for name, (kind, make, lr) in NETWORKS.items():
        for seed in SEEDS:
            start = measured(built(make, seed), test, seed)
            net, flat = trained(name, make, some, lr, STEPS, seed, augment=True)
            row = {"part": "architectures", "network": name, "kind": kind, "seed": seed, "points": TRAIN, "flat": flat}
            rows.append(row | {"init": start["R"], "error": error(net, test_set)} | measured(net, test, seed))
            print(f"{name:<26}{seed}  error {rows[-1]['error']:.3f}  R {rows[-1]['R']:.3f}", file=sys.stderr)
    return pd.DataFrame(rows)


def sizes(train_set: Images, test_set: Images, test: ArrayData) -> pd.DataFrame:
    rows = []
    _, make, lr = NETWORKS["resnet, BatchNorm, 8"]
    for augment in (True, False):
        for points in SIZES:
            for seed in SEEDS:
                order = torch.randperm(len(train_set[0]), generator=torch.Generator().manual_seed(seed))[:points]
                some = tuple(part[order] for part in train_set)
                name = f"size, {points}, {'augmented' if augment else 'bare'}"
                net, flat = trained(name, make, some, lr, SIZE_STEPS, seed, augment)
                kind = "augmented" if augment else "not augmented"
                row = {"part": "sizes", "network": "resnet, BatchNorm, 8", "kind": kind, "seed": seed, "points": points}
                rows.append(row | {"flat": flat, "error": error(net, test_set)} | measured(net, test, seed))
                print(f"{name:<26}{seed}  error {rows[-1]['error']:.3f}  R {rows[-1]['R']:.3f}", file=sys.stderr)
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> str:
    own, grown = frame[frame["part"] == "architectures"], frame[frame["part"] == "sizes"]
    means = over_seeds(own, ["kind", "network"])
    means["init"] = own.groupby(["kind", "network"], sort=False)["init"].agg(log_average).to_numpy()
    means["flat"] = own.groupby(["kind", "network"], sort=False)["flat"].mean().to_numpy()
    lines = [
        f"{len(means)} architectures, {own['seed'].nunique()} seeds each, {TRAIN:,} training images of Fashion-MNIST",
        "",
    ]
    lines.append(f"{'network':<26}{'R, init':>8}{'R':>8}{'D':>9}{'G':>9}{'error':>8}{'last tenth':>12}")
    for row in means.itertuples():
        numbers = f"{row.init:>8.2f}{row.R:>8.3f}{row.D:>9.4f}{row.G:>9.4f}{row.error:>8.3f}{row.flat:>11.1%}"
        lines.append(f"{row.network:<26}{numbers}")
    lines += [
        "",
        "log-averages of R by kind: " + ", ".join(f"{kind} {value:.3f}" for kind, value in _by_kind(means).items()),
    ]
    lines.append(f"R at initialisation from {own['init'].min():.2f} to {own['init'].max():.2f}")
    lines += ["", "error against each index, over architectures (correlation of logs with 95 % interval)"]
    for index, law in power_laws(means).items():
        sure = f"{law.correlation:.2f} ({law.correlation_low:.2f} to {law.correlation_high:.2f})"
        lines.append(f"  {index}  correlation {sure:<24}error = {law.prefactor:.2f} {index}^{law.exponent:.2f}")
    lines += ["", f"a residual network on subsets of the training set, {grown['seed'].nunique()} seeds"]
    for kind, rows in grown.groupby("kind", sort=False):
        law = power_law(rows["points"].to_numpy(float), rows["R"].to_numpy())
        slope = f"{law.exponent:.2f} ({law.exponent_low:.2f} to {law.exponent_high:.2f})"
        lines.append(f"  {kind}: slope of log R against log P {slope}")
        lines.append(f"{'P':>10}{'R':>8}{'D':>9}{'G':>9}{'error':>8}")
        for row in over_seeds(rows, ["points"]).itertuples():
            lines.append(f"{row.points:>10,}{row.R:>8.3f}{row.D:>9.4f}{row.G:>9.4f}{row.error:>8.3f}")
    return "\n".join(lines) + "\n"


def _by_kind(means: pd.DataFrame) -> dict[str, float]:
    return {kind: log_average(means.loc[means["kind"] == kind, "R"]) for kind in KINDS}


def picture(frame: pd.DataFrame, path: Path) -> None:
    own, grown = frame[frame["part"] == "architectures"], frame[frame["part"] == "sizes"]
    means = over_seeds(own, ["kind", "network"])
    first = [Series(kind, list(rows["R"]), list(rows["error"])) for kind, rows in means.groupby("kind", sort=False)]
    if (law := power_laws(means).get("R")) is not None:
        ends = np.array([means["R"].min(), means["R"].max()])
        first.append(Series(f"R^{law.exponent:.2f}", list(ends), list(law(ends)), "dashed"))
    second, third = [], []
    for kind, rows in grown.groupby("kind", sort=False):
        some = over_seeds(rows, ["points"])
        second += [Series(f"{index}, {kind}", list(some["points"]), list(some[index]), "line") for index in "RDG"]
        third.append(Series(str(kind), list(some["R"]), list(some["error"]), "line"))
    panels = [
        ("Architectures", "R", "error", first),
        ("A residual network on P images", "P", "index", second),
        ("The same, as P grows", "R", "error", third),
    ]
    charts(path, panels)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with np.load(DATA) as file:
        test = ArrayData(file["test_images"], file["test_labels"], "Fashion-MNIST")
        pairs = [(file[f"{part}_images"], file[f"{part}_labels"]) for part in ("train", "test")]
    train_set, test_set = (
        (torch.from_numpy(images)[:, None].float() / 255, torch.from_numpy(labels).long()) for images, labels in pairs
    )
    frame = pd.concat([part(train_set, test_set, test) for part in (architectures, sizes)], ignore_index=True)
    frame.to_csv(folder / "stability_on_images.csv", index=False, float_format="%.5g")
    text = summary(frame)
    (folder / "stability_on_images.txt").write_text(text, encoding="utf-8")
    picture(frame, folder / "stability_on_images.svg")
    print(text, end="")


if __name__ == "__main__":
    if not DATA.is_file():
        sys.exit(f"there is no {DATA}; put Fashion-MNIST there, or say in HAPTERA_DATA where it is")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
