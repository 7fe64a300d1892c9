"""What goes around adapters by name: the order, names that an adapter keeps for itself, and values that are refused."""

from functools import partial

import pytest

from haptera.adapters import ROID, BatchPrior, MixtureAdapter, Offline, Reset, SelectiveReset, Tent, WeightEnsemble
from haptera.adapters.wrapper import Wrapper
from haptera.errors import HapteraError
from haptera.models import ResNet
from haptera.run.around import AROUND_ADAPTERS, check_around, configured
from haptera.run.parts import from_flags, make_adapter


def build(text, folder):
    (table,) = from_flags([], adapters=[text])["adapters"]
    name, make = make_adapter(table, folder)
    return name, make(ResNet(width=4, stem=2))


def test_the_command_line_names_all_of_them_the_first_of_the_list_innermost(tmp_path):
    name, adapter = build(
        "tent:epochs=2,reset=7,asr=true,prior_correction=logits,ensemble=0.9,unmixing=3,lr=0.1", tmp_path
    )
    assert name == "tent:epochs=2,reset=7,asr=True,prior_correction=logits,ensemble=0.9,unmixing=3,lr=0.1"
    each = [adapter]
    while isinstance(each[-1], Wrapper):
        each.append(each[-1].inner)
    assert [type(one) for one in each] == [
        Offline,
        Reset,
        SelectiveReset,
        BatchPrior,
        WeightEnsemble,
        MixtureAdapter,
        Tent,
    ]
    assert (each[0].epochs, each[1].rule.steps, each[3].scale, each[4].ensemble) == (2, 7, "logits", 0.9)


def test_roid_keeps_its_own_settings_and_is_reset_by_name(tmp_path):
    _, adapter = build("roid:ensemble=0.5,prior_correction=none,reset=3", tmp_path)
    assert isinstance(adapter, Reset)
    assert isinstance(adapter.inner, ROID)
    assert adapter.inner.inner.ensemble == 0.5
    assert adapter.inner.scale == "none"


def test_an_adapter_without_settings_is_the_class_itself():
    assert configured(Tent, {}) is Tent
    assert configured(Tent, {"lr": 1.0}).func is Tent
    assert isinstance(configured(Tent, {"reset": 2}), partial)


@pytest.mark.parametrize("key", AROUND_ADAPTERS)
def test_bad_values_are_refused_by_the_name_of_the_setting(key):
    with pytest.raises(HapteraError, match=key):
        check_around(Tent, {key: -1})
