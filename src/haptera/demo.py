"""The demo: about a dozen small networks on digits, clean and shifted streams, with and without adaptation."""

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.batch import Stream
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.fingerprint import fingerprint, of_model
from haptera.models import MLP, LeNet, Linear, ModelSource, ResNet, ViT
from haptera.models.training import fit
from haptera.progress import Progress
from haptera.run.calibrate import Scale, calibrate
from haptera.run.execute import in_processes, in_this_process
from haptera.run.ledger import Ledger, Piece
from haptera.run.study import Study
from haptera.shifts import Contrast, Frost, GaussianBlur, GaussianNoise, ImpulseNoise
from haptera.streams import CCC, Clean, Continual, Corruptions, Stability
from haptera.streams.calibration import Calibration

log = logging.getLogger("haptera")


@dataclass(frozen=True)
class Network:
    """A recipe: what is built, and how long it is trained."""

    name: str
    build: str
    make: Callable[..., nn.Module]
    epochs: int
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def piece(self) -> Piece:
        """Its weights, as a piece of the ledger of networks; another recipe has another key."""
        key = f"{self.name}-{fingerprint(self)[:8]}"
        return Piece(key, f"{key}.safetensors", self.name)


NETWORKS = (
    Network("linear", "linear", Linear, 20),
    Network("mlp-64", "mlp", MLP, 20, {"width": 64}),
    Network("mlp-256", "mlp", MLP, 20, {"width": 256}),
    Network("lenet-4", "lenet", LeNet, 15, {"width": 4}),
    Network("lenet-12", "lenet", LeNet, 10, {"width": 12}),
    Network("resnet-bn-4", "resnet", ResNet, 15, {"width": 4, "stem": 2}),
    Network("resnet-bn-8", "resnet", ResNet, 15, {"width": 8, "stem": 2}),
    Network("resnet-bn-8-brief", "resnet", ResNet, 4, {"width": 8, "stem": 2}),
    Network("resnet-bn-16", "resnet", ResNet, 9, {"width": 16, "stem": 2}),
    Network("resnet-gn-8", "resnet", ResNet, 20, {"width": 8, "stem": 2, "norm": "group"}),
    Network("vit-32", "vit", ViT, 30, {"width": 32, "patch": 8}),
    Network("vit-64", "vit", ViT, 20, {"width": 64, "patch": 8}),
)


QUICK = ("linear", "resnet-bn-4")
"""Networks of the quick demo: one with BatchNorm, and one that adaptation does not change."""
SHIFTS = (GaussianNoise, GaussianBlur, Contrast)
YARDSTICK = "resnet-bn-8"
IMAGES = 512
"""Of the test half, whole batches of them: enough for intervals of 3 points, in a bit more than half of the time."""
FADING = (Frost, GaussianNoise, ImpulseNoise)  # each can be made hard enough for the yardstick


def demo_study(out: Path, jobs: int = 1, progress: bool | None = None, quick: bool = False) -> Study:
    """Return the demo's study, its networks trained unless that was done before; a quick one has two networks."""
    folder = out / "networks"
    networks = [net for net in NETWORKS if net.name in QUICK] if quick else NETWORKS
    train_missing(folder, jobs, progress, networks)
    data = test_images()
    models = {net.name: ModelSource(net.build, folder / net.piece.path, net.arguments) for net in networks}
    streams: list[Stream] = [Clean(data), Corruptions(data, SHIFTS, severities=(1, 3, 5) if quick else (1, 2, 3, 4, 5))]
    if not quick:
        fading = CCC(data, calibrated(models[YARDSTICK](), out, progress), "easy", speed=75, length=3000)
        streams += [Continual(data, SHIFTS), fading, Stability(data, first=301)]
    return Study(
        models=models,
        streams=streams,
        adapters={"none": NoAdaptation, "batchnorm": BatchNorm},
        out=out,
        settings={"data": f"digits of scikit-learn, 32 x 32, the first {IMAGES} of the test half"},
    )


def test_images() -> ArrayData:
    """Return the images that everything is measured on."""
    data = digits("test")
    assert data.targets is not None
    return ArrayData(
        data.images(np.arange(IMAGES)), data.targets[:IMAGES], data.name, data.names, ids=data.rows[:IMAGES]
    )


def calibrated(model: nn.Module, out: Path, progress: bool | None) -> Calibration:
    """Return the yardstick of the stream that keeps changing: a coarse one, on few images, which takes some seconds."""
    folder = out / f"calibration-{fingerprint(of_model(model), FADING)[:8]}"  # another network has another one
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # passes of a millisecond, in which several threads wait for each other
    try:
        return calibrate(model, test_images(), folder, FADING, Scale(100, 1.0, flip=False), progress=progress)
    finally:
        torch.set_num_threads(threads)


def train_missing(folder: Path, jobs: int, progress: bool | None, networks: Sequence[Network]) -> None:
    """Train the networks whose weights are not in the folder, or are damaged."""
    with Ledger(folder, "set of networks", noun="network") as ledger:
        ledger.plan((network.piece for network in networks), {"data": "digits"})
        missing = {piece.key for piece in ledger.missing()}
        untrained = [network for network in networks if network.piece.key in missing]
        work, indices = functools.partial(train, untrained, folder), range(len(untrained))
        ended = in_processes(work, indices, jobs) if jobs > 1 and untrained else in_this_process(work, indices)
        with Progress("training", len(untrained), progress, unit="networks") as bar:
            for index, failure in ended:
                network = untrained[index]
                if failure:
                    raise HapteraError(f"training {network.name} failed: {failure}")
                ledger.done(network.piece)
                bar.advance(network.name)


def train(networks: Sequence[Network], folder: Path, index: int) -> str:
    """Train one network and save its weights."""
    network = networks[index]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = network.make(**network.arguments)
    fit(model, digits("train"), epochs=network.epochs)
    with whole(folder / network.piece.path) as file:
        file.write(save(model.state_dict()))
    return ""
