"""Train the networks of the adaptation experiments on colour CIFAR-10, each to at least 85 % of the test images.

Run it as `python experiments/cifar_networks.py [batch group vit smooth]`, with `cifar10.npz` (train_images,
train_labels, test_images, test_labels) in $HAPTERA_DATA, by default ~/.cache/haptera. Weights stay beside the data as
`cifar-NAME-SEED.safetensors`; a training that was stopped goes on at the last epoch that it finished. Those in
`experiments/weights` are taken as they are; move them away to train anew.

The recipe: random crops of images that are padded by four pixels, random mirroring, one cycle of the learning rate,
batches of 256. ResNets learn by SGD with Nesterov momentum, the transformer by AdamW. Its patches come out of a
convolutional stem with GroupNorm (`stem="residual"`); patches of raw pixels need far more epochs. `smooth` is `batch`
with label smoothing .1, which keeps predictions from being sure. `group` begins with the weights of `batch`, and the
stem of `vit`, all of `group` but its last layer, with those of `group`, so that few epochs suffice; train in this
order. With `--bfloat16`, arithmetic is bfloat16 where torch's autocast allows: quicker on CPUs that have instructions
for it, far slower on others. The layout in memory is the quicker of both for each network; with GroupNorm that is the
contiguous one. An epoch takes two to three minutes on one thread.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass, field
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from haptera.models import ModelSource, ResNet, ViT

FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
KEPT = Path(__file__).parent / "weights"
BATCH = 256
PADDING = 4
RISE = 0.25
"""The share of the training in which the learning rate goes up."""


@dataclass(frozen=True)
class Recipe:
    """A network and how long it learns."""

    name: str
    epochs: int
    lr: float
    settings: dict[str, Any]
    decay: float = 5e-4
    seed: int = 0
    smoothing: float = 0.0
    layout: torch.memory_format = torch.contiguous_format
    betas: tuple[float, float] = field(default=(0.9, 0.99))
    start: str = ""
    """The network whose weights it begins with, where names and shapes agree."""

    @property
    def kind(self) -> str:
        return "vit" if self.name == "vit" else "resnet"

    @property
    def weights(self) -> Path:
        """Where training leaves them; those that the tables of the evidence were made with lie beside this script."""
        name = f"cifar-{self.name}-{self.seed}.safetensors"
        return KEPT / name if (KEPT / name).is_file() else FOLDER / name

    def build(self) -> nn.Module:
        torch.manual_seed(self.seed)
        net: nn.Module = (ViT if self.kind == "vit" else ResNet)(**self.settings)
        if self.start:
            own, given = net.state_dict(), load_file(RECIPES[self.start].weights)
            given |= {f"{name}.{key.partition('.')[2]}": given[key] for name, key in self._places(given)}
            fits = {key: value for key, value in given.items() if key in own and own[key].shape == value.shape}
            net.load_state_dict(fits, strict=False)
        return net

    def _places(self, given: dict[str, torch.Tensor]) -> list[tuple[str, str]]:
        """Return the parts of a transformer's stem, each with a tensor of the residual network that goes there."""
        return [(name, key) for key in given if (name := STEM.get(key.partition(".")[0]))] if self.kind == "vit" else []

    def optimiser(self, net: nn.Module) -> torch.optim.Optimizer:
        if self.kind == "vit":
            return torch.optim.AdamW(net.parameters(), self.lr, self.betas, weight_decay=self.decay)
        return torch.optim.SGD(net.parameters(), self.lr, 0.9, weight_decay=self.decay, nesterov=True)


RESNET = {"channels": 3, "width": 48, "stem": 2}
VIT = {"channels": 3, "width": 192, "depth": 3, "patch": 8, "stem": "residual"}
STEM = {"1": "patches.0", "2": "patches.1", "4": "patches.3", "5": "patches.4", "6": "patches.5"}
"""Parts of the residual network -> the parts of the transformer's stem."""
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("batch", 16, 0.4, RESNET | {"norm": "batch"}, layout=torch.channels_last),
        Recipe("smooth", 14, 0.4, RESNET | {"norm": "batch"}, layout=torch.channels_last, smoothing=0.1),
        Recipe("group", 5, 0.1, RESNET | {"norm": "group"}, start="batch"),
        Recipe("vit", 4, 5e-4, VIT, decay=0.05, start="group"),
    )
}


def source_of(name: str) -> ModelSource:
    """Return a network that was trained here."""
    recipe = RECIPES[name]
    if not recipe.weights.is_file():
        sys.exit(f"there is no {recipe.weights}; python experiments/cifar_networks.py {name} trains it")
    return ModelSource(recipe.kind, recipe.weights, recipe.settings)


def read(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images `(n, 3, 32, 32)`, bytes, and labels."""
    with np.load(FOLDER / "cifar10.npz") as file:
        images, labels = file[f"{part}_images"], file[f"{part}_labels"].astype(np.int64)
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(labels)


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the batch in [0, 1], each image moved by up to four pixels and mirrored or not."""
    count, side = len(images), images.shape[-1]
    padded = F.pad(images.float() / 255, (PADDING,) * 4, mode="reflect")
    corners = torch.randint(0, 2 * PADDING + 1, (2, count, 1), generator=generator)
    rows, columns = corners + torch.arange(side)
    mirror = torch.rand(count, generator=generator) < 0.5
    columns[mirror] = columns[mirror].flip(1)
    return padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def one_cycle(progress: float) -> float:
    """Return the share of the largest learning rate: up in a line, then down along a cosine to nothing."""
    if progress < RISE:
        return progress / RISE
    return 0.5 * (1 + cos(pi * (progress - RISE) / (1 - RISE)))


@torch.no_grad()
def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the share of images whose class the network names, in float32."""
    net.eval()
    right = [
        (net(part.float().div(255)).argmax(1) == own).sum()
        for part, own in zip(images.split(500), labels.split(500), strict=True)
    ]
    return float(sum(right)) / len(labels)


def train(recipe: Recipe, threads: int, bfloat16: bool) -> None:
    """Train a network from the last epoch that was finished; keep its weights."""
    torch.set_num_threads(threads)
    images, labels = read("train")
    net = recipe.build().to(memory_format=recipe.layout)
    optimiser, checkpoint, start = recipe.optimiser(net), recipe.weights.with_suffix(".checkpoint"), 0
    if checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        net.load_state_dict(saved["net"])
        optimiser.load_state_dict(saved["optimiser"])
        start = saved["epochs"]
    for epoch in range(start, recipe.epochs):
        began, loss = time.perf_counter(), one_epoch(recipe, epoch, net, optimiser, (images, labels), bfloat16)
        saved = {"net": net.state_dict(), "optimiser": optimiser.state_dict(), "epochs": epoch + 1}
        torch.save(saved, beside := checkpoint.with_suffix(".part"))
        beside.replace(checkpoint)
        test = accuracy(net, *read("test")) if epoch % 4 == 3 or epoch + 1 == recipe.epochs else float("nan")
        seconds = time.perf_counter() - began
        print(f"{recipe.name} epoch {epoch + 1}: loss {loss:.3f}, test {test:.4f}, {seconds:.0f} s", flush=True)
    state = {key: value.contiguous() for key, value in net.state_dict().items()}
    save_file(state, beside := recipe.weights.with_suffix(".part"))
    beside.replace(recipe.weights)
    checkpoint.unlink(missing_ok=True)


def one_epoch(
    recipe: Recipe,
    epoch: int,
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    data: tuple[torch.Tensor, torch.Tensor],
    bfloat16: bool,
) -> float:
    """Go through the images once, in an order of the epoch's own; return the mean loss."""
    images, labels = data
    generator = torch.Generator().manual_seed(1000 * recipe.seed + epoch)
    batches = torch.randperm(len(images), generator=generator).split(BATCH)
    net.train()
    total = 0.0
    for step, rows in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = recipe.lr * one_cycle((epoch + step / len(batches)) / recipe.epochs)
        inputs = augment(images[rows], generator).contiguous(memory_format=recipe.layout)
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            logits = net(inputs)
        loss = F.cross_entropy(logits.float(), labels[rows], label_smoothing=recipe.smoothing)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimiser.step()
        total += float(loss.detach()) * len(rows) / len(images)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", help=", ".join(RECIPES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bfloat16", action="store_true")
    given = parser.parse_args()
    if not (FOLDER / "cifar10.npz").is_file():
        sys.exit(f"there is no {FOLDER / 'cifar10.npz'}; put it there, or say in HAPTERA_DATA where it is")
    if wrong := set(given.networks) - set(RECIPES):
        sys.exit(f"there is no network {min(wrong)}; {', '.join(RECIPES)} was expected")
    for name in given.networks or RECIPES:
        if RECIPES[name].weights.is_file():
            print(f"{RECIPES[name].weights} is there", flush=True)
        else:
            train(RECIPES[name], given.threads, given.bfloat16)
