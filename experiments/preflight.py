"""What the preflight catches and when it stays silent: twenty small networks on CIFAR-10 and on Fashion-MNIST.

Run it as `python experiments/preflight.py [--jobs 2]`, with `cifar10.npz` and `fashion-mnist.npz` (train_images,
train_labels, test_images, test_labels) in $HAPTERA_DATA, by default ~/.cache/haptera. It trains twenty networks once,
ten on each, and keeps their weights there. It writes `preflight.md` into `docs/evidence/results`.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from haptera import check_model
from haptera.data import ArrayData, Data, FolderData
from haptera.models import ResNet, ViT
from haptera.models.training import fit

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
TRAIN = 20_000
IMAGES = 1_000
CLASSES = 10
SIZES = {"cifar10": 28, "fashion-mnist": 24}
"""Data set -> the side of the centre that networks see, an eighth less than that of the images."""
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SCALES: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]] | None] = {
    "as it is": ((0.0,) * 3, (1.0,) * 3),
    "half": ((0.5,) * 3, (0.5,) * 3),
    "imagenet": IMAGENET,
    "bytes": ((0.0,) * 3, (1 / 255,) * 3),
    "own": None,
}
PLAN = [("batch", scale) for scale in SCALES] + [("batch", "imagenet"), ("batch", "half")]
PLAN += [("group", "imagenet"), ("group", "half"), ("vit", "own")]


class Scaled(nn.Module):
    """A network behind the mean and the standard deviation that it was trained with, or others."""

    def __init__(self, network: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network((images - self.mean) / self.std)


@dataclass(frozen=True)
class Recipe:
    """A network: what it was trained on, its normalisation layers, and the scale of its inputs."""

    data: str
    norm: str
    scale: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.data} {self.norm} {self.scale} {self.seed}"

    def body(self) -> nn.Module:
        torch.manual_seed(self.seed)
        if self.norm == "vit":
            net: nn.Module = ViT(3, SIZES[self.data], CLASSES, width=64, depth=3)
            net.normalise = nn.Identity()
            return net
        net = ResNet(3, CLASSES, width=16, stem=2, norm=self.norm)
        net[0] = nn.Identity()
        return net


RECIPES = [Recipe(data, norm, scale, seed) for data in SIZES for seed, (norm, scale) in enumerate(PLAN)]


def images_of(data: str, part: str, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Images `(n, side, side, 3)`, bytes, and labels; grey ones get a tone, or they would have no colour order."""
    with np.load(FOLDER / f"{data}.npz") as file:
        images, labels = file[f"{part}_images"][rows], file[f"{part}_labels"][rows]
    if images.ndim == 3:
        grey = images / 255
        images = (255 * np.stack([grey, grey**1.5, 0.6 * grey**3 + 0.1], -1)).round().astype(np.uint8)
    return images, labels.astype(np.int64)


def centre(images: np.ndarray, size: int, crop: float = 0.875) -> np.ndarray:
    """Resize the images so that their centre of `size` is a share `crop` of them, and cut it out."""
    side = round(size / crop)
    start = (side - size) // 2
    cut = slice(start, start + size)
    if images.shape[1] == side:
        return images[:, cut, cut]
    resize = Image.Resampling.BILINEAR
    return np.stack([np.asarray(Image.fromarray(image).resize((side, side), resize))[cut, cut] for image in images])


def scale_of(recipe: Recipe, images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation that a network is trained with."""
    if (known := SCALES[recipe.scale]) is not None:
        return known
    values = images.reshape(-1, 3) / 255
    return tuple(values.mean(0).tolist()), tuple(values.std(0).tolist())


def networks(recipes: list[Recipe]) -> dict[Recipe, Scaled]:
    """Trained once; the weights stay beside the data."""
    found = {}
    for recipe in recipes:
        size = SIZES[recipe.data]
        path = FOLDER / f"preflight-{recipe.name.replace(' ', '-')}.safetensors"
        if not path.exists():
            images, labels = images_of(recipe.data, "train", slice(TRAIN))
            images = centre(images, size)
            net = Scaled(recipe.body(), *scale_of(recipe, images))
            fit(net, ArrayData(images, labels), epochs=3, seed=recipe.seed, lr=1e-3 if recipe.norm == "vit" else 3e-3)
            save_file(net.state_dict(), path)
        net = Scaled(recipe.body(), *SCALES["half"])
        net.load_state_dict(load_file(path))
        found[recipe] = net.eval()
    return found


def set_ups(recipe: Recipe, net: Scaled, folder: Path) -> Iterator[tuple[str, str, nn.Module, Data]]:
    """Yield what is tried, which check should complain (none for what is right), a model, and data."""
    size, other = SIZES[recipe.data], "half" if recipe.scale not in ("half",) else "imagenet"
    whole, labels = images_of(recipe.data, "test", slice(IMAGES))
    images = centre(whole, size)
    data = ArrayData(images, labels, recipe.data)
    write_files(folder, whole, labels)
    yield "right, with labels", "", net, data
    yield "right, without labels", "", net, ArrayData(images, None, recipe.data)
    yield "right, image files", "", net, FolderData(folder, size=size)
    wrong = SCALES[other]
    assert wrong is not None
    yield "wrong mean and std", "scale", Scaled(net.network, *wrong).eval(), data
    bytes_in = Scaled(net, (0.0,) * 3, (1 / 255,) * 3).eval()
    yield "inputs in 0..255", "scale", bytes_in, data
    yield "BGR", "colour", net, ArrayData(np.ascontiguousarray(images[..., ::-1]), labels, recipe.data)
    order = np.random.default_rng(recipe.seed).permutation(CLASSES)
    yield "permuted labels", "labels", net, ArrayData(images, order[labels], recipe.data)
    if recipe.norm == "batch":
        yield "training mode", "mode", net.train(), data
        net.eval()
    yield "crop 1 in the place of 0.875", "crop", net, FolderData(folder, size=size, crop=1.0)


def write_files(folder: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write images as files in class folders, if they are not there."""
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = folder / str(label) / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            Image.fromarray(image).save(path)


def examine(recipe: Recipe) -> list[dict[str, object]]:
    """Check a network in every set-up."""
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    net = networks([recipe])[recipe]
    for what, word, model, data in set_ups(recipe, net, Path(tempfile.gettempdir()) / f"haptera-{recipe.data}"):
        found = check_model(model, data, samples=256)
        words = [each.word for each in found.complaints]
        row = {
            "network": recipe.name,
            "data": recipe.data,
            "norm": recipe.norm,
            "set-up": what,
            "said": ", ".join(words),
        }
        rows.append(row | {"caught": word in words if word else bool(words), "right": not word})
        if not word and words:
            print(recipe.name, what, [each.sentence for each in found.complaints], flush=True)
    return rows


def write(frame: pd.DataFrame) -> None:
    """Write the table of rates."""
    names = {"batch": "BatchNorm", "group": "GroupNorm", "vit": "ViT"}
    groups = [(data, norm) for data in SIZES for norm in names]
    counts = [frame[(frame["data"] == d) & (frame["norm"] == n)]["network"].nunique() for d, n in groups]
    lines = [
        f"How many of {frame['network'].nunique()} networks are complained of, 256 of {IMAGES:,} test images each.",
        "",
        "| set-up | "
        + " | ".join(f"{d}, {names[n]} ({c})" for (d, n), c in zip(groups, counts, strict=True))
        + " | all |",
        "|---|" + "---|" * (len(groups) + 1),
    ]
    for what in frame["set-up"].unique():
        rows = frame[frame["set-up"] == what]
        cells = [rows[(rows["data"] == d) & (rows["norm"] == n)]["caught"] for d, n in groups]
        told = [f"{int(cell.sum())} of {len(cell)}" if len(cell) else "–" for cell in [*cells, rows["caught"]]]
        lines.append(f"| {what} | {' | '.join(told)} |")
    (RESULTS / "preflight.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main(jobs: int) -> None:
    networks(RECIPES)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        rows = [row for some in pool.imap(examine, RECIPES, chunksize=1) for row in some]
    write(pd.DataFrame(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    for data in SIZES:
        if not (FOLDER / f"{data}.npz").is_file():
            sys.exit(f"there is no {FOLDER / data}.npz; put it there, or say in HAPTERA_DATA where it is")
    main(given.jobs)
