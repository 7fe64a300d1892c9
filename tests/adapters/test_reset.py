"""Resets: RDumb is ETA until the first one and repeats itself after it; rules see no labels; offline learning."""

from functools import partial

import pytest
import torch

from haptera.adapters import (
    ETA,
    At,
    BatchNorm,
    Collapsed,
    Every,
    NoAdaptation,
    Offline,
    PeriodicReset,
    RDumb,
    Reset,
    ResetWhen,
    Tent,
)
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models

LEARN = {"lr": 0.1, "margin": 1.1, "redundancy": 1.1}


@pytest.fixture
def model():
    return example_models()["batch"]


def test_rdumb_is_eta_up_to_the_first_reset_and_repeats_itself_after_it(model):
    batches = example_batches()[:3]
    rdumb, eta = RDumb(model, every=3, **LEARN), ETA(model, **LEARN)
    first = [rdumb(inputs) for inputs in batches]
    assert all(map(torch.equal, first, map(eta, batches)))
    again = [rdumb(inputs) for inputs in batches]
    assert all(map(torch.equal, first, again))
    assert not torch.equal(eta(batches[0]), first[0])
    assert rdumb.record["resets"] == 1


def test_rdumb_is_a_periodic_reset_of_eta(model):
    one, two = RDumb(model, every=2, **LEARN), PeriodicReset(partial(ETA, **LEARN), every=2)(model)
    for inputs in example_batches():
        assert torch.equal(one(inputs), two(inputs))


def test_resets_at_known_steps(model):
    adapter = ResetWhen(partial(Tent, lr=0.1), At((1, 3)))(model)
    counts = []
    for inputs in example_batches():
        adapter(inputs)
        counts.append(adapter.record["resets"])
    assert counts == [0, 1, 1, 2]


def test_collapse_is_seen_in_the_mean_prediction_without_labels():
    rule = Collapsed(entropy=0.5, largest=0.6, images=10)
    spread, one_class = torch.full((4,), 0.25), torch.tensor([0.97, 0.01, 0.01, 0.01])
    two_classes = torch.tensor([0.58, 0.42, 0.0, 0.0])
    assert not rule({"mean": None, "images": 99})
    assert not rule({"mean": one_class, "images": 9})
    assert not rule({"mean": spread, "images": 99})
    assert rule({"mean": one_class, "images": 99})
    assert rule({"mean": two_classes, "images": 99}) is (0.6801 < 0.5 * 1.3863)


def test_a_model_that_predicts_one_class_is_reset(model):
    adapter = ResetWhen(partial(Tent, lr=0.0), Collapsed(largest=0.0, images=12))(model)
    for inputs in example_batches():
        adapter(inputs)
    assert adapter.record["resets"] == 1  # two batches fill the 12 images, then one reset, then it waits again


def test_frozen_it_neither_counts_nor_resets(model):
    adapter = PeriodicReset(Tent, every=1)(model, frozen=True)
    for inputs in example_batches():
        adapter(inputs)
    assert adapter.memory["steps"] == 0


@pytest.mark.parametrize("every", [0, -3, 1.5, True])
def test_a_wrong_interval_is_refused(every):
    with pytest.raises(HapteraError, match="every is"):
        Every(every)


def test_a_reset_adapter_has_the_parent_and_release_of_the_one_inside(model):
    adapter = PeriodicReset(Tent, every=5)(model)
    assert isinstance(adapter, Reset)
    assert adapter.parent_label == "batchnorm:prior=0"
    assert isinstance(adapter.parent(model).inner, BatchNorm)
    assert isinstance(PeriodicReset(partial(Tent, prior=0), every=5)(model).parent(model), BatchNorm)
    assert type(adapter.release()) is type(model)
    assert isinstance(RDumb(example_models()["group"]).parent(model), NoAdaptation)


def test_offline_learns_from_the_whole_stream_first(model):
    stream = [Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in example_batches()]
    offline = Offline(model, partial(Tent, lr=0.1), epochs=2)
    offline.adapt(stream, 2)
    offline.frozen = True
    by_hand = Tent(model, lr=0.1)
    for _ in range(2):
        for batch in stream:
            by_hand(batch.inputs)
    by_hand.frozen = True
    assert torch.equal(offline(stream[0].inputs), by_hand(stream[0].inputs))
    with pytest.raises(HapteraError, match="epochs is 0"):
        Offline(model, Tent, epochs=0)
