"""A tiny trained network and a few digits, once for all tests of tuning."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.data import ArrayData, digits
from haptera.models.training import fit


@pytest.fixture(scope="session")
def net():
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Flatten()]
    net = nn.Sequential(*layers, nn.Linear(12 * 6 * 6, 10))
    fit(net, digits("train", size=12), epochs=5)
    return net


@pytest.fixture(scope="session")
def data():
    whole = digits("test", size=12)
    rows = np.arange(96)
    return ArrayData(whole.images(rows), whole.targets[rows], "a few digits")
