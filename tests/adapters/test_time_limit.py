"""A method that is slower than its stream misses what comes while it learns, and predicts that as it is by then."""

from functools import partial

import pytest
import torch

from haptera.adapters import BatchNorm, NoAdaptation, PeriodicReset, Tent, TimeLimit
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models

LEARN = partial(Tent, lr=0.1, prior=0)


@pytest.fixture
def model():
    return example_models()["batch"]


@pytest.mark.parametrize(
    ("cost", "missed"), [(0.5, "......"), (1, "......"), (1.1, ".x.x.x"), (2, ".x.x.x"), (3, ".xx.xx")]
)
def test_batches_that_come_while_a_step_takes_its_time_are_missed(model, cost, missed):
    adapter = TimeLimit(model, LEARN, cost)
    record = ""
    for inputs in (example_batches() * 6)[:6]:
        adapter(inputs)
        record += "x" if adapter.record["missed"] else "."
    assert record == missed


def test_what_is_missed_is_predicted_with_the_last_weights_and_teaches_nothing(model):
    limited, plain = TimeLimit(model, LEARN, cost=2), LEARN(model)
    for step, inputs in enumerate((example_batches() * 6)[:6]):
        plain.frozen = step % 2 == 1
        assert torch.equal(limited(inputs), plain(inputs))
    assert not torch.equal(limited(inputs), BatchNorm(model, prior=0)(inputs))


def test_a_reset_counts_the_steps_that_were_taken(model):
    adapter = TimeLimit(model, PeriodicReset(LEARN, every=2), cost=2)
    resets = []
    for inputs in (example_batches() * 9)[:9]:
        adapter(inputs)
        if not adapter.record["missed"]:
            resets.append(adapter.record["resets"])
    assert resets == [0, 0, 1, 1, 2]


def test_learning_offline_misses_nothing(model):
    stream = [Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in example_batches()]
    limited, plain = TimeLimit(model, LEARN, cost=5), LEARN(model)
    limited.adapt(stream)
    plain.adapt(stream)
    limited.frozen = plain.frozen = True
    assert torch.equal(limited(stream[0].inputs), plain(stream[0].inputs))


def test_the_parent_is_that_of_the_method(model):
    assert isinstance(TimeLimit(model, LEARN, cost=2).parent(model), BatchNorm)
    assert isinstance(TimeLimit(model, NoAdaptation, cost=2).parent(model), NoAdaptation)
    assert isinstance(TimeLimit(model, Tent, cost=2).parent(model), TimeLimit)  # small batches move its statistics


@pytest.mark.parametrize("cost", [0, -1, float("nan"), float("inf"), "fast", None])
def test_a_cost_that_is_no_number_above_zero_is_refused(model, cost):
    with pytest.raises(HapteraError, match=r"cost is .*; a number of intervals of the stream"):
        TimeLimit(model, LEARN, cost)
