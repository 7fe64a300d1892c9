"""Fingerprints follow content: equal things agree, any change differs."""

import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint, of_file, of_model
from haptera.models import LeNet, Linear, ResNet
from haptera.models.networks import Normalise

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(PLAIN, PLAIN)
def test_two_things_agree_when_they_are_equal_and_of_one_type(one, two):
    assert (fingerprint(one) == fingerprint(two)) == (repr(_sorted(one)) == repr(_sorted(two)))


def _sorted(thing):
    if isinstance(thing, dict):
        return {key: _sorted(thing[key]) for key in sorted(thing, key=repr)}
    return [_sorted(item) for item in thing] if isinstance(thing, list) else thing


def test_arrays_differ_by_value_shape_and_type():
    base = np.arange(6.0)
    changed = base.copy()
    changed[3] += 1e-12
    prints = [fingerprint(a) for a in (base, changed, base.reshape(2, 3), base.astype(np.float32), base[::-1])]
    assert len(set(prints)) == 5
    assert fingerprint(base[::2]) == fingerprint(base[::2].copy())


def test_tensors_of_every_type_can_be_told_apart():
    kinds = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool)
    assert len({fingerprint(torch.ones(3).to(kind)) for kind in kinds}) == 5
    assert fingerprint(torch.ones(())) != fingerprint(torch.ones(1))


def test_partials_and_dataclasses_differ_by_their_settings():
    @dataclass(frozen=True)
    class Setting:
        x: int

    assert fingerprint(Setting(1)) == fingerprint(Setting(1)) != fingerprint(Setting(2))
    assert fingerprint(partial(max, key=1)) != fingerprint(partial(max, key=2))
    assert fingerprint(Path("a")) != fingerprint("a")


def test_an_edited_class_of_the_users_has_another_fingerprint(tmp_path):
    from haptera.own_code import find_object

    prints = []
    for line in ("return inputs", "return inputs + 1"):
        file = tmp_path / f"mine{len(prints)}.py"
        file.write_text(f"class Mine:\n    def step(self, inputs):\n        {line}\n")
        prints.append(fingerprint(find_object(f"{file}:Mine", "object")))
    assert prints[0] != prints[1]


SCALE = 1.0


def scaled(inputs, factor=2):
    return inputs * SCALE * factor


def test_a_function_differs_by_all_it_reads(monkeypatch):
    def maker(rate):
        return lambda model: (model, rate)

    assert fingerprint(maker(1)) == fingerprint(maker(1)) != fingerprint(maker(2))
    before = fingerprint(scaled)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert fingerprint(scaled) != before


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(HapteraError, match="cannot tell one object from another"):
        fingerprint(object())


def test_models_differ_by_weight_structure_and_plain_settings():
    def net(**changes):
        torch.manual_seed(0)
        return nn.Sequential(Normalise(**changes), nn.Flatten(), nn.Linear(4, 2))

    base = of_model(net())
    assert of_model(net()) == base
    assert of_model(net(mean=0.4)) != base
    touched = net()
    with torch.no_grad():
        touched[2].weight[0, 0] += 1e-6
    assert of_model(touched) != base
    assert of_model(net().eval()) == of_model(net().train())
    assert len({of_model(kind()) for kind in (Linear, LeNet, ResNet)}) == 3


def test_models_differ_by_settings_that_a_dataclass_holds():
    @dataclass(repr=False)
    class Settings:
        stride: float
        more: object = None

    def net(*settings):
        model = nn.Identity()
        model.settings = Settings(*settings)
        return model

    assert of_model(net(4.0)) == of_model(net(4.0))
    assert of_model(net(4.0)) != of_model(net(8.0))
    assert of_model(net(4.0, object())) == of_model(net(4.0, object()))  # what has no text is left out


def test_files_are_told_by_content(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    assert of_file(one) == of_file(two)
    two.write_bytes(b"sane")
    assert of_file(one) != of_file(two)


class _Own(nn.Module):
    """A class that is not ours, whose source counts."""


def test_the_source_of_a_class_is_read_once_however_many_modules_are_of_it(monkeypatch):
    model, read, real = nn.Sequential(*(_Own() for _ in range(5))), [], inspect.getsource
    before = of_model(model)
    monkeypatch.setattr(inspect, "getsource", lambda kind: read.append(kind) or real(kind))
    assert of_model(model) == before
    assert read == [_Own]
