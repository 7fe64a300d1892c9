"""The settings of learners: optimisers, weight decay and several steps do what plain torch.optim does."""

import copy
from math import log

import pytest
import torch

from haptera.adapters import ETA, MEMO, CoTTA, RoTTA, Tent
from haptera.adapters.learning import Learning
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models

OPTIMISERS = {
    "sgd": ({"momentum": 0.5}, lambda p: torch.optim.SGD(p, 0.05, momentum=0.5)),
    "sgd with decay": ({"weight_decay": 0.3}, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.3)),
    "nesterov": ({"nesterov": True}, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True)),
    "adam": ({"optimiser": "adam", "weight_decay": 0.3}, lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.3)),
    "adamw": ({"optimiser": "adamw", "weight_decay": 0.3}, lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.3)),
    "adamw without decay": ({"optimiser": "adamw"}, lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.0)),
}


def straight(model, batches, make, steps=1):
    """What each batch gets, before its last update, and the network at the end."""
    net = copy.deepcopy(model)
    affine = [p for layer in net.modules() if isinstance(layer, torch.nn.LayerNorm) for p in layer.parameters()]
    optimiser, outputs = make(affine), []
    for inputs in batches:
        for _ in range(steps):
            logits = net(inputs)
            loss = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        outputs.append(logits.detach())
    return outputs, net


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("settings", "make"), OPTIMISERS.values(), ids=OPTIMISERS)
def test_a_learner_goes_as_plain_torch_does(settings, make, steps):
    model, batches = example_models()["layer"], example_batches()
    adapter = Tent(model, lr=0.05, steps=steps, **settings)
    expected, net = straight(model, batches, make, steps)
    for inputs, answer in zip(batches, expected, strict=True):
        assert torch.allclose(adapter(inputs), answer, atol=2e-4)
    for ours, theirs in zip(adapter.model.parameters(), net.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-4)
    assert adapter.record["change"] > 0.02


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_weight_decay_moves_nothing_at_a_rate_of_0(optimiser):
    adapter = Tent(example_models()["layer"], lr=0.0, optimiser=optimiser, weight_decay=0.5, steps=2)
    for inputs in example_batches():
        adapter(inputs)
    assert adapter.record["change"] == 0


def test_weight_decay_makes_weights_smaller_than_they_are_without_it():
    def norm(decay):
        adapter = Tent(example_models()["layer"], lr=0.1, weight_decay=decay)
        adapter(example_batches()[0])
        return sum(float(p.detach().square().sum()) for p in adapter.adapted.values())

    assert norm(1.0) < norm(0.0)


def test_small_batches_move_the_statistics_once_however_many_steps():
    model, inputs = example_models()["batch"], example_batches()[0]
    one, three = Tent(model, lr=0.0), Tent(model, lr=0.0, steps=3)
    for _ in range(2):
        assert torch.allclose(one(inputs), three(inputs), atol=1e-6)


def test_predictions_after_several_updates_are_those_of_the_updated_model():
    model, inputs = example_models()["layer"], example_batches()[0]
    after, one = Tent(model, lr=0.1, steps=2, predictions="after"), Tent(model, lr=0.1)
    for _ in range(2):
        one(inputs)
    assert torch.allclose(after(inputs), one(inputs), atol=1e-5)


def test_what_a_method_remembers_goes_on_at_every_step():
    model, inputs = example_models()["layer"], example_batches()[0]
    twice, once = (ETA(model, lr=0.0, margin=1.1, redundancy=1.1, average="plain", steps=n) for n in (2, 1))
    twice(inputs)
    once(inputs)
    assert (twice.memory["count"], once.memory["count"]) == (12, 6)


@pytest.mark.parametrize(
    "make",
    [
        lambda model, **settings: CoTTA(model, lr=0.1, augmentations=1, threshold=1.0, decay=0.5, **settings),
        lambda model, **settings: MEMO(model, lr=0.1, augmentations=2, **settings),
        lambda model, **settings: RoTTA(model, lr=0.1, capacity=6, frequency=6, **settings),
    ],
    ids=["cotta", "memo", "rotta"],
)
def test_methods_with_steps_of_their_own_take_several_updates_too(make, monkeypatch):
    adapter = make(example_models()["layer"], steps=3)
    losses, learn = [], adapter.learn
    monkeypatch.setattr(adapter, "learn", lambda loss: (losses.append(float(loss.detach())), learn(loss)))
    adapter(example_batches()[0][:1] if isinstance(adapter, MEMO) else example_batches()[0])
    assert len(losses) == 3
    assert len(set(losses)) == 3
    assert all(0 < loss < log(10) + 1 for loss in losses)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"optimiser": "adamv"}, "adamw"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 2, "accumulate": 2}, "not both"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"nesterov": True, "optimiser": "adam"}, "nesterov is for sgd"),
        ({"nesterov": True, "momentum": 0.0}, "nesterov is for sgd"),
    ],
)
def test_wrong_settings_are_refused(settings, why):
    with pytest.raises(HapteraError, match=why):
        Learning(**settings)
