"""States: only what an adapter owns, of one model and one kind of adapter, in a file without pickles."""

import copy
import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from haptera.adapters import EATA, BatchNorm, CoTTA, NoAdaptation, PeriodicReset, RDumb, Tent
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(model, before):
    return all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def retrained(model):
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.01)
    return other


def test_an_old_state_does_not_revert_a_retrained_model(model):
    adapter = Tent(model, lr=0.1)
    adapter(example_batches()[0])
    state, new = adapter.state_dict(), retrained(model)
    before = weights(new)
    with pytest.raises(HapteraError, match="another model"):
        Tent(new, lr=0.1).load_state_dict(state)
    assert same(new, before)


def test_a_state_holds_what_the_adapter_owns_and_nothing_of_the_rest(model):
    state = Tent(model).state_dict()
    kept = {name.removeprefix("model.") for name in state}
    convolutions = {f"{n}.weight" for n, layer in model.named_modules() if isinstance(layer, nn.Conv2d | nn.Linear)}
    assert not kept & convolutions
    assert {f"{n}.weight" for n, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)} <= kept


def test_a_state_is_a_snapshot(model):
    adapter = Tent(model, lr=0.1)
    state = adapter.state_dict()
    before = copy.deepcopy(state)
    adapter(example_batches()[0])
    assert all(torch.equal(state[key], value) for key, value in before.items() if isinstance(value, torch.Tensor))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda model: BatchNorm(model), "adapter 'BatchNorm'; this one has 'Tent'"),
        (lambda model: Tent(model, optimiser="adam"), "optimiser 'adam'; this one has 'sgd'"),
        (lambda model: Tent(model, parameters="all"), "saved with other settings"),
        (lambda model: PeriodicReset(Tent, every=3)(model), "adapter 'Reset'"),
        (lambda model: model, "not the state of an adapter"),
    ],
)
def test_a_state_of_another_adapter_is_refused(model, other, why):
    adapter = Tent(model)
    before = repr(adapter.state_dict())
    with pytest.raises(HapteraError, match=why):
        adapter.load_state_dict(other(model).state_dict())
    assert repr(adapter.state_dict()) == before


def test_the_adapter_inside_a_wrapper_is_compared_too(model):
    with pytest.raises(HapteraError, match="adapter 'Tent'; this one has 'BatchNorm'"):
        PeriodicReset(BatchNorm)(model).load_state_dict(PeriodicReset(Tent)(model).state_dict())


def test_the_learning_rate_stays_that_of_the_adapter(model):
    adapter = Tent(model, lr=0.5)
    adapter.load_state_dict(Tent(model, lr=0.1).state_dict())
    assert adapter.optimiser.param_groups[0]["lr"] == 0.5


def test_a_model_on_another_run_of_the_same_weights_is_the_same_model(model):
    class Counted(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, inputs):
            self.calls += 1
            return self.inner(inputs)

    one, two = Counted(model), Counted(copy.deepcopy(model))
    two(example_batches()[0])  # a counter goes on; the weights are the same
    Tent(two).load_state_dict(Tent(one).state_dict())


@pytest.mark.parametrize(
    "make",
    [
        lambda model: EATA(model, lr=0.1, margin=1.1, redundancy=1.1, fisher_samples=8),
        lambda model: CoTTA(model, lr=0.1, augmentations=1, accumulate=2),
        lambda model: RDumb(model, every=2, optimiser="adam"),
        lambda model: BatchNorm(model, window=9),
    ],
)
def test_a_file_goes_on_to_the_same_predictions_and_knows_no_pickle(model, make, tmp_path):
    batches, path = example_batches(), tmp_path / "state.safetensors"
    adapter, other = make(model), make(model)
    adapter(batches[0])
    adapter.save_state(path)
    assert load_file(path)
    other.load_state(path)
    for inputs in batches[1:]:
        assert torch.equal(adapter(inputs), other(inputs))


def test_numbers_that_are_not_finite_survive_a_file(model, tmp_path):
    adapter = NoAdaptation(model)
    adapter.memory |= {"a": float("-inf"), "b": [1, None, "text", torch.ones(2)], "b.3": torch.zeros(1)}
    adapter.save_state(tmp_path / "s")
    other = NoAdaptation(model)
    other.load_state(tmp_path / "s")
    assert repr(other.memory) == repr(adapter.memory)


def test_a_value_that_no_file_can_hold_is_named(model, tmp_path):
    adapter = NoAdaptation(model)
    adapter.memory["rule"] = nn.ReLU()
    with pytest.raises(HapteraError, match=r"memory\.rule.*ReLU"):
        adapter.save_state(tmp_path / "s")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (None, "not one that Adapter.save_state wrote"),
        ("{", "is not JSON"),
        ("[" * 100_000, "deep"),
        ("[]", "the header of .* holds"),
        ("{}", "not the state of an adapter"),
        ('{"_extra_state": {"tensor": "missing"}}', "damaged"),
        ('{"_identity": {"dict": {"adapter": "BatchNorm", "model": 3}}}', "another model"),
    ],
)
def test_a_file_that_is_not_a_state_is_refused_by_name(model, facts, why, tmp_path):
    path = tmp_path / "state.safetensors"
    save_file({"x": torch.zeros(1)}, path, None if facts is None else {"haptera.adapter": facts})
    with pytest.raises(HapteraError, match=why) as caught:
        BatchNorm(model).load_state(path)
    assert str(path) in str(caught.value)


def test_values_of_another_kind_are_refused(model, tmp_path):
    path = tmp_path / "state.safetensors"
    adapter = Tent(model)
    adapter.save_state(path)
    tensors = load_file(path)
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(json.loads(file.read(size))["__metadata__"]["haptera.adapter"])
    header["_extra_state"]["dict"]["memory"]["dict"]["pending"] = "many"
    save_file(tensors, path, {"haptera.adapter": json.dumps(header)})
    with pytest.raises(HapteraError, match="_extra_state"):
        adapter.load_state(path)


@pytest.mark.parametrize("content", [b"", b"not a tensor file", pickle.dumps({"a": 1})])
def test_other_files_are_refused(model, content, tmp_path):
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(HapteraError, match="cannot read the state"):
        BatchNorm(model).load_state(tmp_path / "state")
    with pytest.raises(HapteraError, match="there is no file"):
        BatchNorm(model).load_state(tmp_path / "missing")


class Service(nn.Module):
    """An adapter inside somebody's module."""

    def __init__(self, adapter):
        super().__init__()
        self.adapter = adapter
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, inputs):
        return self.adapter(inputs) * self.scale


@pytest.mark.parametrize("make", [lambda model: Tent(model, lr=0.1), lambda model: RDumb(model, lr=0.1)])
def test_an_adapter_inside_another_module_is_loaded_by_it(model, make):
    batches = example_batches()
    one, two = Service(make(model)), Service(make(model))
    one(batches[0])
    before = weights(model)
    two.load_state_dict(one.state_dict())
    assert torch.equal(one(batches[1]), two(batches[1]))
    assert same(model, before)
    with pytest.raises(HapteraError, match="another model"):
        Service(make(retrained(model))).load_state_dict(one.state_dict())
    with pytest.raises(RuntimeError, match="adapter"):
        two.load_state_dict({"scale": torch.ones(1)})


def test_a_retrained_model_ends_the_adapter_with_a_sentence_and_a_new_one_begins(model):
    batches = example_batches()
    adapter, separate = Tent(model, lr=0.1), Tent(copy.deepcopy(model), lr=0.1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()(batches[0]).sum().backward()
    optimiser.step()
    model.eval()
    with pytest.raises(HapteraError, match="the model was changed after Tent was built around it, first in"):
        adapter(batches[0])
    with pytest.raises(HapteraError, match="the model was changed"):
        adapter.reset()
    assert torch.isfinite(separate(batches[0])).all()
    assert torch.equal(NoAdaptation(model)(batches[0]), model(batches[0]))


def test_a_copy_of_an_adapter_does_not_depend_on_the_callers_model(model):
    batches = example_batches()
    adapter = Tent(model, lr=0.1, accumulate=2)
    adapter(batches[0])  # a gradient waits
    copied, pickled = copy.deepcopy(adapter), pickle.loads(pickle.dumps(adapter))
    expected = [adapter(inputs) for inputs in batches[1:]]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert all(torch.equal(copied(inputs), out) for inputs, out in zip(batches[1:], expected, strict=True))
    assert torch.isfinite(pickled(batches[1])).all()
    copied.reset()
    assert copied.record == {}


def test_weights_are_shared_in_memory(model):
    adapter = Tent(model)
    assert adapter.model[1].weight.data_ptr() == model[1].weight.data_ptr()


def test_assigning_is_refused(model):
    adapter = Tent(model)
    with pytest.raises(HapteraError, match="assign"):
        adapter.load_state_dict(adapter.state_dict(), assign=True)
