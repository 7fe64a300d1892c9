"""Signals of CIFAR-10's test images, clean and under 15 corruptions at five severities, recorded for `live_alarms`.

A residual network of eight channels, trained for a minute on a few thousand images, gives the first layer. Kept beside
the data in $HAPTERA_DATA as `live-scores.npz`: `clean` `(10000, signals)`, and `NAME-SEVERITY` `(1000, signals)` each.
"""

import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

from cifar_data import TEST, clean
from haptera.catalog import find
from haptera.data import ArrayData
from haptera.live import Profile, Signals
from haptera.live.alarms import FOLLOW
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.streams import Clean, Shifted, Truncated

FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
SCORES = FOLDER / "live-scores.npz"
TRAINING, EPOCHS, IMAGES, BATCH = 5000, 3, 1000, 250
SEVERITIES = (1, 2, 3, 4, 5)


def network() -> nn.Module:
    """Return a small network that was trained on a few thousand images."""
    with np.load(FOLDER / "cifar10.npz") as file:
        images, labels = file["train_images"][:TRAINING], file["train_labels"][:TRAINING].astype(np.int64)
    torch.manual_seed(0)
    net = ResNet(channels=3, width=8)
    fit(net, ArrayData(images, labels, "CIFAR-10"), epochs=EPOCHS)
    return net


def record() -> dict[str, np.ndarray]:
    """Return name -> `(images, signals)`, from the file if it is there."""
    if SCORES.is_file():
        with np.load(SCORES) as file:
            return dict(file)
    net, data = network(), clean()
    assert data.targets is not None
    profile = Profile.measure(net, Truncated(Clean(data, batch_size=BATCH), first=2000))
    names = [name for name in FOLLOW if name in profile.scores]
    streams = {"clean": Clean(data, batch_size=BATCH, shuffle=False)}
    for name in TEST:
        for severity in SEVERITIES:
            shift = find("shifts", name)(severity, table="cifar")
            streams[f"{name}-{severity}"] = Truncated(Shifted(data, shift, batch_size=BATCH), first=IMAGES)
    found = {name: _scores(net, profile, stream, names) for name, stream in streams.items()}
    np.savez(SCORES.with_suffix(".part.npz"), **found)
    SCORES.with_suffix(".part.npz").replace(SCORES)
    return found


def _scores(net: nn.Module, profile: Profile, stream: object, names: list[str]) -> np.ndarray:
    parts = []
    with Signals(net, profile, sample=0) as signals, torch.no_grad():
        for batch in stream:  # type: ignore[attr-defined]
            net(batch.inputs)
            scores = signals.take(len(batch))
            parts.append(np.column_stack([scores[name] for name in names]))
    return np.concatenate(parts)
