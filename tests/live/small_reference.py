"""A small network and small images that the tests of the live room share."""

from functools import cache

import numpy as np
import torch
from torch import nn

from haptera.data import ArrayData
from haptera.models import ResNet
from haptera.models.training import fit

SIDE, CLASSES = 16, 3


def _data(seed: int = 0, images: int = 240) -> ArrayData:
    """Bars that lie, stand or cross, in noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(CLASSES, size=images)
    pixels = random.normal(90, 25, (images, SIDE, SIDE))
    for k, label in enumerate(labels):
        y, x = random.integers(3, SIDE - 4, 2)
        light = random.uniform(20, 120)
        pixels[k, y : y + 2] += light * (label != 1)
        pixels[k, :, x : x + 2] += light * (label != 0)
    return ArrayData(np.clip(pixels, 0, 255).astype(np.uint8), labels.astype(np.int64), "bars")


DATA = _data()
NEW = _data(1)


@cache
def small_network() -> nn.Module:
    """A residual network that knows the bars."""
    torch.manual_seed(0)
    net = ResNet(channels=1, classes=CLASSES, width=4)
    fit(net, DATA, epochs=4)
    return net
