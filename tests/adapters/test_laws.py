"""Every adapter keeps every law, on every kind of model to which it applies."""

from functools import partial

import pytest
import torch
from torch import nn

from adapter_cases import ADAPTERS
from haptera import catalog
from haptera.adapters import Reset, Tent
from haptera.models.networks import Block, Normalise
from haptera.testing.adapters import (
    ADAPTER_LAWS,
    check_adapter,
    example_batches,
    example_models,
    infinite_prior_is_the_model,
    memory_layout_does_not_matter,
)
from haptera.testing.batchnorm_networks import batchnorm_networks, convolutional_networks
from haptera.testing.image_text import image_text_model
from haptera.testing.law import run_laws


def small_models():
    """The example models, but a smaller one with BatchNorm: there are many cases, and each takes a hundred steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = (Normalise(), nn.Conv2d(1, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        last = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
        model = nn.Sequential(*first, Block(4, 8, 2, "batch"), *last)
        model(torch.rand(16, 1, 16, 16))
    return example_models() | {"batch": model.eval(), "text": image_text_model()}


ONCE = ("memo", "cmf", "deyo", "santa", "petta", "asr", "vte")
"""Adapters that cost much, or differ little from another, and are tried on the first kind of model only."""
SLOW = ("weighted_slr", "roid, ", "deyo, ", "santa, ", "petta, ", "asr, ")
"""How adapters begin whose laws are all for the slow tests, since another one is much the same."""


def later(name, norm, norms):
    """Whether a case is for the slow tests: GroupNorm is treated as LayerNorm is, and a variant is tried once."""
    return norm == "group" or (norm != norms[0] and ("," in name or name in ONCE)) or name.startswith(SLOW)


CASES = [
    pytest.param(make, norm, id=f"{name}, {norm}", marks=pytest.mark.slow if later(name, norm, norms) else ())
    for name, (make, norms) in ADAPTERS.items()
    for norm in norms
]


@pytest.mark.parametrize(("make", "norm"), CASES)
def test_laws_hold(make, norm):
    verdict = run_laws(ADAPTER_LAWS, [(make, small_models()[norm], example_batches())])
    assert {law: why for law, why in verdict.items() if why} == {}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=pytest.mark.slow if name.startswith(SLOW) else ())
        for name, (make, norms) in ADAPTERS.items()
        if "batch" in norms
    ],
)
def test_an_infinite_prior_is_the_model_for_layers_of_other_packages(make):
    cases = [(make, network, example_batches()) for network in batchnorm_networks().values()]
    assert not any(run_laws([infinite_prior_is_the_model], cases).values())


@pytest.mark.parametrize("name", ["batchnorm", "tent", "tent, every parameter", "cotta without views"])
def test_memory_layout_does_not_matter_for_awkward_convolutions(name):
    cases = [(ADAPTERS[name][0], network, example_batches(3)) for network in convolutional_networks().values()]
    assert not any(run_laws([memory_layout_does_not_matter], cases).values())


def test_every_adapter_of_the_catalog_is_in_the_list():
    listed = {make.func if isinstance(make, partial) else make for make, _ in ADAPTERS.values()}
    assert {entry.load() for entry in catalog.entries("adapters").values()} <= listed | {Reset}


@pytest.mark.long
def test_public_check_says_nothing_about_a_good_adapter():
    assert not any(check_adapter(Tent).values())
