"""Presets: every line names an adapter and settings that it takes; the nearest is found; what is given wins."""

import inspect
import json
import logging
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from haptera import catalog
from haptera.adapters import ETA, NoAdaptation, RDumb, Reset, Tent, presets, with_preset
from haptera.adapters.norm import Once
from haptera.adapters.presets import classes_of, norms_of
from haptera.adapters.wrapper import Wrapper
from haptera.cli.lists import list_
from haptera.errors import HapteraError
from haptera.models import ResNet, ViT
from haptera.run.parts import check_adapter, make_adapter

ROWS = [(preset.name, adapter) for preset in presets().values() for adapter in preset.settings]


@pytest.fixture
def lines(caplog):
    """What is logged once, from the beginning."""
    logger = logging.getLogger("haptera.once")
    logger.filters[:] = [each for each in logger.filters if not isinstance(each, Once)]
    caplog.set_level(logging.INFO, logger="haptera")
    return caplog


def network(norm, classes):
    layers = {"batch": nn.BatchNorm1d(6), "group": nn.GroupNorm(2, 6), "layer": nn.LayerNorm(6), "none": nn.Identity()}
    return nn.Sequential(nn.Linear(4, 6), layers[norm], nn.Linear(6, classes)).eval()


@cache
def example(norm):
    return ViT(size=16, width=16, depth=1).eval() if norm == "layer" else ResNet(width=4).eval()


@pytest.mark.parametrize(("preset", "adapter"), ROWS, ids=[f"{adapter}, {preset}" for preset, adapter in ROWS])
def test_every_line_names_an_adapter_and_settings_that_it_takes(preset, adapter):
    row, source = presets()[preset].settings[adapter], presets()[preset].sources[adapter]
    make = catalog.find("adapters", adapter)
    check_adapter(make, adapter, row)
    assert len(source) > 5
    adapted = with_preset(make, preset)(example(presets()[preset].norm[0]))
    inner = adapted
    while isinstance(inner, Wrapper):
        inner = inner.inner
    if "lr" in row:
        group = inner.optimiser.param_groups[0]
        assert group["lr"] == row["lr"]
        assert type(inner.optimiser).__name__.lower() == row.get("optimiser", "sgd")
        assert bool(group.get("nesterov")) == row.get("nesterov", False)


@pytest.mark.parametrize(
    ("norm", "classes", "name"),
    [
        ("batch", 10, "cifar10"),
        ("batch", 8, "cifar10"),
        ("batch", 100, "cifar100"),
        ("batch", 1000, "imagenet-resnet"),
        ("batch", 345, "imagenet-resnet"),
        ("group", 1000, "imagenet-resnet"),
        ("layer", 1000, "imagenet-vit"),
        ("layer", 10, "cifar10"),
    ],
)
def test_auto_takes_the_nearest_and_says_so_once(lines, norm, classes, name):
    model = network(norm, classes)
    for _ in range(2):
        adapter = with_preset(Tent, "auto")(model)
    expected = presets()[name].settings["tent"]
    assert adapter.optimiser.param_groups[0]["lr"] == expected["lr"]
    assert adapter.learning.optimiser == expected["optimiser"]
    said = [record.getMessage() for record in lines.records if "preset" in record.getMessage()]
    assert len(said) == 1
    assert f"preset {name}" in said[0]
    assert f"{classes} classes" in said[0]


def test_facts_about_a_network_come_from_its_layers():
    assert (norms_of(network("group", 3)), classes_of(network("group", 3))) == ({"group"}, 3)
    assert (norms_of(nn.ReLU()), classes_of(nn.ReLU())) == (set(), None)


def test_auto_looks_at_the_size_of_images_where_the_model_says_it():
    from haptera.models import Preprocessing

    model = network("batch", 320)  # as far from 100 classes as from 1,000, or nearly
    model.preprocessing = Preprocessing(size=32)
    assert with_preset(Tent, "auto")(model).learning.optimiser == "adam"
    model.preprocessing = Preprocessing(size=224)
    assert with_preset(Tent, "auto")(model).learning.optimiser == "sgd"


def test_auto_takes_a_preset_that_has_the_method():
    adapter = with_preset(catalog.find("adapters", "slr"), "auto")(network("batch", 10))
    assert adapter.optimiser.param_groups[0]["lr"] == 6e-4


def test_what_is_given_wins():
    adapter = with_preset(Tent, "cifar10", lr=0.5, momentum=0.1)(network("batch", 10), window=7)
    assert adapter.optimiser.param_groups[0]["lr"] == 0.5
    assert adapter.learning.optimiser == "adam"
    assert adapter.window == 7
    nearest = with_preset(Tent, "auto", lr=0.5)(network("batch", 10))
    assert nearest.optimiser.param_groups[0]["lr"] == 0.5


def test_a_preset_is_a_setting_by_name_and_goes_with_what_is_around_an_adapter():
    name, make = make_adapter({"use": "tent", "preset": "imagenet-resnet", "lr": 0.1, "reset": 5}, Path())
    assert name == "tent:preset=imagenet-resnet,lr=0.1,reset=5"
    adapter = make(network("batch", 10))
    assert isinstance(adapter, Reset)
    assert adapter.inner.optimiser.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize(
    ("method", "preset", "why"),
    [
        (Tent, "cifar11", "cifar10"),
        (NoAdaptation, "cifar10", "no preset for 'NoAdaptation'"),
        (catalog.find("adapters", "slr"), "cifar10", "imagenet-resnet"),
    ],
)
def test_unknown_presets_are_refused_with_the_nearest_name(method, preset, why):
    with pytest.raises(HapteraError, match=why):
        with_preset(method, preset)


def test_etas_redundancy_is_no_trap_for_ten_classes(lines):
    last = nn.Linear(10, 10, bias=False)
    confident, inputs = nn.Sequential(nn.BatchNorm1d(10), last).eval(), torch.eye(10).repeat(3, 1)
    with torch.no_grad():
        last.weight.copy_(6 * torch.eye(10))
    for make in (with_preset(ETA, "auto"), with_preset(ETA, "imagenet-resnet"), with_preset(RDumb, "auto")):
        adapter = make(confident, prior=float("inf"))
        for _ in range(3):
            adapter(inputs)
            assert adapter.record["kept"] == 1
    assert not [record for record in lines.records if "redundancy is" in record.getMessage()]
    trap = ETA(confident, redundancy=0.05, prior=float("inf"))
    for _ in range(2):
        trap(inputs)
    assert trap.record["kept"] == 0
    (said,) = [record.getMessage() for record in lines.records if "redundancy is" in record.getMessage()]
    assert "published one for so many classes is 0.4" in said


def test_the_command_line_shows_every_line_with_its_source(capsys):
    list_("presets", as_json=False)
    shown = capsys.readouterr().out
    assert "tent:optimiser=sgd,lr=0.001   (FOA's main.py" in shown
    assert shown.count("\n") == len(ROWS) + len(presets())
    list_("presets", as_json=True)
    assert json.loads(capsys.readouterr().out)["presets"]["cifar10"]["settings"]["eta"]["redundancy"] == 0.4


def test_every_setting_of_the_table_is_in_the_signature():
    for preset in presets().values():
        for adapter, row in preset.settings.items():
            assert set(row) <= set(inspect.signature(catalog.find("adapters", adapter)).parameters)


def test_a_method_of_somebody_else_with_the_name_of_ours_has_no_preset():
    theirs = type("Tent", (Tent,), {"__module__": "somebody"})
    with pytest.raises(HapteraError, match="there is no preset for 'Tent'"):
        with_preset(theirs, "cifar10")
