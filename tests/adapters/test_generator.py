"""`self.random`: seeded, part of the state, and untouched by passes that only predict."""

import copy
import pickle

import pytest
import torch

from haptera.adapters import Adapter, PeriodicReset, Tent
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


class Noise(Adapter):
    """Adds numbers of its generator to the logits, also where it only predicts."""

    def predict(self, inputs):
        logits = super().predict(inputs)
        return logits + torch.randn(logits.shape, generator=self.random)


@pytest.fixture
def model():
    return example_models()["none"]


def run(adapter, steps=3):
    return [adapter(inputs) for inputs in example_batches()[:steps]]


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_numbers_come_from_the_seed_alone(model):
    plain, expected = model(example_batches()[0]), torch.randn(6, 10, generator=generator_of(4))
    assert torch.allclose(Noise(model, seed=4)(example_batches()[0]), plain + expected, atol=1e-5)
    torch.manual_seed(123)
    assert same(run(Noise(model, seed=4)), run(Noise(model, seed=4)))
    assert not same(run(Noise(model, seed=4)), run(Noise(model, seed=5)))
    before = torch.random.get_rng_state()
    run(Noise(model))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_reset_begins_them_anew(model):
    adapter = Noise(model, seed=2)
    first = run(adapter)
    adapter.reset()
    assert same(run(adapter), first)


@pytest.mark.parametrize("used", [0, 2])
def test_a_state_goes_on_to_the_same_numbers(model, used, tmp_path):
    adapter, other = Noise(model), Noise(model)
    run(adapter, used)
    run(other, 1)
    adapter.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    assert same(run(other), run(adapter))


def test_copies_go_on_by_themselves(model):
    adapter = Noise(model)
    run(adapter)
    copies = [copy.deepcopy(adapter), pickle.loads(pickle.dumps(adapter))]
    expected = run(adapter)
    assert all(same(run(other), expected) for other in copies)


def test_passes_that_only_predict_leave_no_gap(model):
    looking, plain = Noise(model), Noise(model)
    run(looking, 1)
    run(plain, 1)
    looking.frozen = True
    once, again = run(looking, 1), run(looking, 1)
    assert same(once, again)
    looking.frozen = False
    looking(torch.full((2, 1, 16, 16), float("nan")))
    assert same(run(looking), run(plain))


def test_a_wrapper_draws_from_the_adapter_inside(model):
    adapter = PeriodicReset(Noise, every=2)(model, seed=3)
    assert adapter.random is adapter.inner.random
    assert adapter.seed == 3
    batches = example_batches()[:1] * 3
    outputs = [adapter(inputs) for inputs in batches]
    assert torch.equal(outputs[0], outputs[2])
    assert not torch.equal(outputs[0], outputs[1])


@pytest.mark.parametrize("place", [torch.zeros(3, dtype=torch.uint8), "no tensor"])
def test_a_state_with_a_wrong_place_is_refused_whole(model, place):
    adapter = Noise(model)
    state = adapter.state_dict()
    state["_extra_state"]["random"] = place
    state["_extra_state"]["memory"]["more"] = 1
    with pytest.raises(HapteraError, match="'random' of the state is not the place of a generator"):
        adapter.load_state_dict(state)
    assert "more" not in adapter.memory


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
def test_a_wrong_seed_is_refused(seed):
    for method in (Noise, Tent):
        with pytest.raises(HapteraError, match="seed is"):
            method(example_models()["batch"], seed=seed)
