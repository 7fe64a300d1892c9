"""Wrappers and weights that people have around their networks survive the way into a study."""

import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation, Tent
from haptera.data import ArrayData
from haptera.errors import HapteraError
from haptera.models import ModelSource
from haptera.run.study import Study
from haptera.streams import Clean
from haptera.testing.networks import Tied, Uncopyable, as_it_is, images, plain

NET = """
import torch
from torch import nn
from haptera.testing.networks import Tied, Uncopyable, plain

def bare():
    return plain()

def parallel():
    return nn.DataParallel(plain())

def compiled():
    return torch.compile(plain())

def half():
    return plain().half()

def bfloat16():
    return plain().bfloat16()

def frozen():
    return plain().requires_grad_(False)

def tied():
    return Tied(plain())

def uncopyable():
    return Uncopyable(plain())

def nested():
    return torch.compile(nn.DataParallel(plain().half()))
"""
WRAPPERS = ("parallel", "compiled", "half", "bfloat16", "frozen", "tied", "uncopyable", "nested")


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


def load(net, name, **settings):
    with as_it_is():
        return ModelSource(f"{net}:{name}", **settings)()


@pytest.mark.long
@pytest.mark.parametrize("normalise", [None, "half"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapped_network_answers_and_adapts_as_the_network_itself(name, normalise, net):
    model, inputs = load(net, name, normalise=normalise), images()[0]
    expected = load(net, "bare", normalise=normalise)(inputs)
    if name == "tied":
        expected = Tied(plain()).eval()(inputs if normalise is None else (inputs - 0.5) / 0.5)
    found = NoAdaptation(model)(inputs)
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, atol=0.05 if name in ("half", "bfloat16", "nested") else 1e-5)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for method in (BatchNorm, Tent):
        assert torch.isfinite(method(model)(inputs)).all()
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters(), strict=True))


@pytest.mark.long
def test_wrapped_networks_run_in_a_study_of_python(tmp_path):
    data = ArrayData(torch.cat(images()).numpy(), torch.arange(12) % 10, "noise")
    with as_it_is():
        models = {
            "bare": plain(),
            "half": plain().half(),
            "locked": Uncopyable(plain()),
            "compiled": torch.compile(plain()),
        }
    table = Study(models, [Clean(data)], [NoAdaptation, Tent], out=tmp_path, device="cpu").run(progress=False)
    rows = table[(table["measure"] == "negative_log_likelihood") & (table["adapter"] == "none")]
    values = rows.set_index("model")["value"]
    assert set(values.index) == set(models)
    assert values.to_dict() == pytest.approx(dict.fromkeys(models, values["bare"]), abs=5e-3)


def state(change=1.0):
    return {key: value + change if value.is_floating_point() else value for key, value in plain().state_dict().items()}


@pytest.mark.parametrize("build", ["bare", "parallel", "compiled"])
@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "_orig_mod.module."])
def test_weights_fit_with_and_without_what_wrappers_put_before_names(build, prefix, net, tmp_path):
    save_file({prefix + key: value for key, value in state().items()}, tmp_path / "w.safetensors")
    model = load(net, build, weights=tmp_path / "w.safetensors")
    assert torch.equal(model[0].weight, state()["0.weight"])


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_state_dict_inside_a_checkpoint_is_found(key, net, tmp_path):
    torch.save({"epoch": 7, key: state()}, tmp_path / "w.pt")
    model = load(net, "bare", weights=tmp_path / "w.pt", allow_pickle=True)
    assert torch.equal(model[0].weight, state()["0.weight"])
    torch.save({"epoch": 7}, tmp_path / "w.pt")
    with pytest.raises(HapteraError, match="does not hold a state dict"):
        load(net, "bare", weights=tmp_path / "w.pt", allow_pickle=True)


def test_of_tied_weights_one_name_is_enough(net, tmp_path):
    network = Tied(plain())
    with torch.no_grad():
        network.first.weight.mul_(2)
    save_model(network, str(tmp_path / "w.safetensors"))  # which leaves the second name out
    model = load(net, "tied", weights=tmp_path / "w.safetensors")
    assert model.first.weight is model.second.weight
    assert torch.equal(model.first.weight, network.first.weight)
    save_file(plain().state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(HapteraError, match="tensors of the model are not in the file"):
        load(net, "tied", weights=tmp_path / "w.safetensors")


def test_a_loader_of_a_plugin_has_a_prefix_like_any_other(monkeypatch):
    from haptera import catalog

    known = dict(catalog.entries("loaders"))
    entry = catalog.Entry("tests.models.test_wrappers:load_ours", "from a plugin")
    monkeypatch.setattr(catalog, "entries", lambda kind: known | {"ours": entry} if kind == "loaders" else {})
    model = ModelSource("ours:3", arguments={"scale": 2.0})()
    assert torch.equal(model(torch.ones(1, 3)), torch.full((1, 3), 6.0))
    with pytest.raises(HapteraError, match="unknown setting of model ours:3 'scal'; did you mean 'scale'"):
        ModelSource("ours:3", arguments={"scal": 2.0})()


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, inputs):
        return inputs * self.factor


def load_ours(text, *, scale=1.0):
    return Times(float(text) * scale)
