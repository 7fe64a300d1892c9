"""A few drawn animals, and a small network that has seen a little of them."""

import numpy as np
import pytest
import torch

from haptera.pose import PoseModel, Training, drawn_animals, fit, split_individuals


@pytest.fixture(scope="session")
def animals():
    return drawn_animals(4, 10, seed=3, height=48, width=64)


@pytest.fixture(scope="session")
def seen(animals):
    """All frames of two individuals."""
    split = split_individuals(animals, 2)
    return animals.select(np.concatenate([split.train, split.within]))


@pytest.fixture(scope="session")
def trained(animals, seen):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PoseModel(animals.parts, "small", settings={"width": 8}, skeleton=animals.skeleton)
    fit(model, seen, Training(steps=120, lr=5e-3))
    return model
