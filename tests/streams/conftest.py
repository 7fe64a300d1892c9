"""A small network that knows digits, and its calibration, for the tests of CCC."""

import pytest
import torch

from haptera.data import digits
from haptera.models import LeNet
from haptera.models.training import fit
from haptera.run.calibrate import Scale, calibrate
from haptera.shifts import Contrast, GaussianBlur, GaussianNoise

SHIFTS = (GaussianNoise, Contrast, GaussianBlur)
SCALE = Scale(400, 1.0, flip=False, crop=0.0)


@pytest.fixture(scope="session")
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LeNet(size=16, width=4)
    fit(model, digits("train", size=16), epochs=6)
    return model


@pytest.fixture(scope="session")
def data():
    return digits("test", size=16)


@pytest.fixture(scope="session")
def calibrated(model, data, tmp_path_factory):
    """The folder of a calibration."""
    folder = tmp_path_factory.mktemp("calibration")
    calibrate(model, data, folder, SHIFTS, SCALE)
    return folder
