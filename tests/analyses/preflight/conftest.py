"""A small network on toned digits, trained once, and the digits as arrays and as files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from haptera.data import ArrayData, digits
from haptera.models import Classifier, Preprocessing, ResNet
from haptera.models.preprocessing import NORMALISATIONS
from haptera.models.training import fit

SIDE, SIZE = 18, 16
SCALES = {**NORMALISATIONS, "none": ((0.0,), (1.0,)), "bytes": ((0.0,), (1 / 255,))}


def tone(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Digits `(n, side, side, 3)` in bytes, with a tone that makes the order of colours matter, and their labels."""
    data = digits(split, size=SIDE)
    grey = data.images(np.arange(len(data))).numpy()[:, 0]
    return (255 * np.stack([grey, grey**1.5, 0.6 * grey**3 + 0.1], -1)).round().astype(np.uint8), data.targets


def centre(images: np.ndarray) -> np.ndarray:
    cut = slice((SIDE - SIZE) // 2, (SIDE + SIZE) // 2)
    return np.ascontiguousarray(images[:, cut, cut])


@dataclass
class Trained:
    """A network without its normalisation, which was `scale`."""

    body: nn.Module
    scale: str

    def behind(self, scale: str) -> nn.Module:
        """The network behind a normalisation, right or wrong."""
        mean, std = SCALES[scale]
        return Classifier(self.body, Preprocessing(mean=mean, std=std)).eval()

    @property
    def right(self) -> nn.Module:
        return self.behind(self.scale)


def train(norm: str, scale: str, epochs: int) -> Trained:
    images, labels = tone("train")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = ResNet(3, 10, width=8, stem=2, norm=norm)
    net[0] = nn.Identity()
    trained = Trained(net, scale)
    fit(trained.right, ArrayData(centre(images), labels), epochs=epochs)
    return trained


@pytest.fixture(scope="package")
def batch_net() -> Trained:
    return train("batch", "imagenet", 6)


@pytest.fixture(scope="package")
def group_net() -> Trained:
    return train("group", "half", 10)


@pytest.fixture(scope="package")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    images, labels = tone("test")
    return centre(images), labels


@pytest.fixture(scope="package")
def files(tmp_path_factory) -> Path:
    """Class folders with the digits of the test half, larger than the network sees them."""
    root = tmp_path_factory.mktemp("files")
    images, labels = tone("test")
    for place, (image, label) in enumerate(zip(images[:300], labels[:300], strict=True)):
        (root / str(label)).mkdir(exist_ok=True)
        Image.fromarray(image).save(root / str(label) / f"{place}.png")
    return root
