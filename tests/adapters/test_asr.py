"""ASR: batches against a straight version of the public rules; what returns, what stays, and what draws back."""

import copy
from functools import partial
from math import log

import pytest
import torch
from torch import nn

from haptera.adapters import ASR, ETA, ROID, AdaptiveReset, MeanTeacher, PriorCorrection, Tent
from haptera.errors import HapteraError
from haptera.losses.self_learning import soft_pseudo_labels


def network(norm="layer"):
    """Two normalisation layers, so four tensors that adapt."""
    torch.manual_seed(0)
    norms = {
        "batch": lambda: nn.BatchNorm1d(6),
        "group": lambda: nn.GroupNorm(2, 6),
        "layer": lambda: nn.LayerNorm(6),
    }
    layers = (nn.Linear(5, 6), norms[norm](), nn.ReLU(), nn.Linear(6, 6), norms[norm](), nn.ReLU(), nn.Linear(6, 4))
    model = nn.Sequential(*layers).eval()
    model[6].weight.data.mul_(4)
    return model


def batches(n=8, size=18):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 5, generator=generator) for _ in range(n)]


class Straight:
    """Entropy minimisation with the rules of ASR, in training mode."""

    def __init__(self, model, rate, classes, pace, keep, slope, strength):
        self.model, self.source = copy.deepcopy(model).train(), copy.deepcopy(model).train()
        self.weights = [*self.model[1].parameters(), *self.model[4].parameters()]
        self.first = [weight.detach().clone() for weight in self.weights]
        self.make = lambda: torch.optim.SGD(self.weights, lr=rate, momentum=0.9)
        self.optimiser = self.make()
        self.classes, self.pace, self.keep, self.slope, self.strength = classes, pace, keep, slope, strength
        self.bound, self.pull, self.fisher, self.centre = log(4 * classes), 0.0, None, None
        self.squares, self.places, self.kept, self.pulls = [], [], [], []

    def step(self, inputs):
        logits = self.model(inputs)
        loss = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        self.squares.append([g**2 for g in torch.autograd.grad(loss, self.weights, retain_graph=True)])
        self.places.append([weight.detach().clone() for weight in self.weights])
        if self.fisher is not None:
            self.pulls.append(self.pull)
            terms = zip(self.weights, self.fisher, self.centre, strict=True)
            loss = loss + self.pull * sum((fisher * (now - centre) ** 2).sum() for now, fisher, centre in terms)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        p = logits.detach().mean(0).softmax(0)
        spread = -float((p * p.log()).sum())
        flips = float((self.source(inputs).argmax(1) != logits.argmax(1)).float().mean())
        self.pull = self.strength * flips**2
        if spread < self.bound:
            self.reset(self.bound - spread)
        else:
            follow = self.pace * flips + 1 - self.pace
            self.bound = follow * self.bound + (1 - follow) * spread
        return logits.detach()

    def reset(self, below):
        n = len(self.squares)
        fisher = [sum(step[i] for step in self.squares) / n for i in range(4)]
        centre = [sum(step[i] for step in self.places) / n for i in range(4)]
        if self.fisher is not None:
            fisher = [0.9 * old + 0.1 * new for old, new in zip(self.fisher, fisher, strict=True)]
            centre = [0.9 * old + 0.1 * new for old, new in zip(self.centre, centre, strict=True)]
        self.fisher, self.centre, self.squares, self.places = fisher, centre, [], []
        share = max(self.keep - self.slope * below, 0)
        self.kept.append(sum(i < share * 4 for i in range(4)))
        with torch.no_grad():
            for i, (weight, first) in enumerate(zip(self.weights, self.first, strict=True)):
                if i >= share * 4:
                    weight.copy_(first)
        self.optimiser, self.bound = self.make(), log(4 * self.classes)


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_batches_are_those_of_a_straight_version(norm):
    model = network(norm)
    settings = {"classes": 0.93, "pace": 0.3, "keep": 0.75, "slope": 5.0, "strength": 400.0}
    adapter = AdaptiveReset(partial(Tent, lr=0.3), **settings)(model)
    straight = Straight(model, 0.3, **settings)
    for inputs in batches():
        assert torch.allclose(adapter(inputs), straight.step(inputs), atol=1e-4)
        assert adapter.record["resets"] == len(straight.kept)
        assert (adapter.memory["bound"], adapter.memory["weight"]) == pytest.approx((straight.bound, straight.pull))
    for ours, theirs in zip(adapter.learner.masters.values, straight.weights, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
    assert len(straight.kept) > 1
    assert 0 < max(straight.kept) < 4  # some of the tensors stay
    assert max(straight.pulls) > 0


def test_resets_begin_the_memory_of_the_method_anew_and_keep_the_window():
    adapter = ASR(network(), classes=1.0, margin=1.1, redundancy=1.1, window=20)
    adapter(batches()[0])
    assert isinstance(adapter.learner, ETA)
    assert adapter.record["resets"] == 1
    assert adapter.learner.memory["mean"] is None
    assert len(adapter.learner.memory["recent"]) == 18


def test_a_prior_correction_inside_does_not_count():
    resets = []
    for make in (Tent, PriorCorrection(Tent)):
        adapter = AdaptiveReset(make, classes=0.95)(network(), lr=0.1)
        for inputs in batches():
            adapter(inputs)
        resets.append((adapter.record["resets"], adapter.memory["bound"]))
    assert resets[0] == resets[1]


def test_a_teacher_returns_with_its_student():
    class Copied(MeanTeacher):
        def lesson(self, inputs):
            answer = self.answer(inputs)
            return answer, soft_pseudo_labels(self.logits(inputs) * 2, answer).mean()

    adapter = AdaptiveReset(partial(Copied, lr=0.5, decay=0.5), classes=1.0, keep=0.5, slope=0.0)(network())
    adapter(batches()[0])
    assert adapter.record["resets"] == 1
    for masters in (adapter.learner.masters, adapter.learner.taught):
        moved = [not torch.equal(v, s) for v, s in zip(masters.values, adapter.learner._source, strict=True)]
        assert moved == [True, True, False, False]


def test_it_goes_around_roid():
    adapter = AdaptiveReset(ROID, classes=1.0)(network(), consistency=0, lr=0.1)
    for inputs in batches(3):
        assert torch.isfinite(adapter(inputs)).all()
    assert adapter.record["resets"] > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": 0}, "classes is 0; a share"),
        ({"keep": 2}, "keep is 2; a share"),
        ({"slope": -1}, "slope is -1"),
        ({"marginn": 1}, "did you mean 'margin'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(HapteraError, match=message):
        ASR(network(), **settings)
