"""PeTTA: batches against a straight version written from algorithm 1; divergence by loops, with and without source."""

import copy
from math import exp

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import PeTTA, RoTTA
from haptera.adapters.augment import STRONG
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError


def network(norm="layer"):
    torch.manual_seed(0)
    norms = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([4, 6, 6])}
    layers = (nn.Conv2d(1, 4, 3), norms[norm], nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    model = nn.Sequential(*layers).eval()
    nn.init.normal_(model[1].weight, 1.0, 0.3)
    nn.init.normal_(model[1].bias, 0.0, 0.3)
    model[5].weight.data.mul_(4)
    return model


def batches(n=4, size=8):
    generator = torch.Generator().manual_seed(5)
    return [torch.rand(size, 1, 8, 8, generator=generator) for _ in range(n)]


SOURCE = [(torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(9)), torch.zeros(12).long())]


class Straight:
    """Algorithm 1 with a bank that holds the whole batch, for networks without statistics."""

    def __init__(self, model, symmetric, given, rate=0.05, decay=0.5):
        self.student, self.teacher, self.source = (copy.deepcopy(model) for _ in range(3))
        self.optimiser = torch.optim.Adam(self.student[1].parameters(), lr=rate)
        self.symmetric, self.given, self.decay, self.random = symmetric, given, decay, generator_of(0)
        self.means, self.origin, self.variance, self.distances = {}, {}, {}, []
        if given:
            with torch.no_grad():
                seen = self.source[:5](SOURCE[0][0])
                labels = self.source(SOURCE[0][0]).argmax(1).tolist()
            for label in set(labels):
                rows = torch.stack([row for row, own in zip(seen, labels, strict=True) if own == label])
                self.origin[label] = self.means[label] = rows.mean(0)
                if len(rows) > 1:
                    self.variance[label] = ((rows - rows.mean(0)) ** 2).sum(0) / (len(rows) - 1)

    def gamma(self, labels):
        terms = []
        for label in sorted(set(labels)):
            spread = self.variance.get(label) if self.given else sum(self.distances) / max(len(self.distances), 1)
            if label in self.means and isinstance(spread, torch.Tensor) and bool(spread.isfinite().all()):
                terms += ((self.means[label] - self.origin[label]) ** 2 / (spread + 1e-6)).tolist()
        return 1 - exp(-sum(terms) / len(terms)) if terms else 0.0

    @staticmethod
    def move(means, seen, labels):
        for label in set(labels):
            new = torch.stack([row for row, own in zip(seen, labels, strict=True) if own == label]).mean(0)
            means[label] = 0.5 * means[label] + 0.5 * new if label in means else new

    def step(self, inputs):
        with torch.no_grad():
            outputs, seen, from_source = self.teacher(inputs), self.teacher[:5](inputs), self.source[:5](inputs)
        labels = outputs.argmax(1).tolist()
        gamma = self.gamma(labels)
        if not self.given:
            known = [(row, own) for row, own in zip(from_source, labels, strict=True) if own in self.origin]
            self.distances += [(row - self.origin[own]) ** 2 for row, own in known]
            self.move(self.origin, from_source, labels)
        self.move(self.means, seen, labels)
        view = STRONG(inputs, self.random)
        taught, said, said_of_view = outputs.softmax(1), self.student(inputs), self.student(view)
        p, q = said.softmax(1), said_of_view.softmax(1)
        if self.symmetric:
            terms = taught * p.log() + p * taught.log() + taught * q.log() + q * taught.log()
            loss = -0.25 * terms.sum(1).mean()
        else:
            loss = -(taught * q.log()).sum(1).mean()
        anchor = -(self.source(inputs).softmax(1).detach() * q.log()).sum(1).mean()
        pairs = zip(self.student[1].parameters(), self.source[1].parameters(), strict=True)
        cosines = [F.cosine_similarity(a.flatten(), b.flatten().detach(), dim=0) for a, b in pairs]
        self.optimiser.zero_grad()
        (loss + 0.5 * anchor - 3.0 * gamma * sum(cosines) / len(cosines)).backward()
        self.optimiser.step()
        with torch.no_grad():
            for slow, fast in zip(self.teacher[1].parameters(), self.student[1].parameters(), strict=True):
                slow += (1 - gamma) * (1 - self.decay) * (fast - slow)
        return outputs, gamma


@pytest.mark.parametrize("norm", ["group", "layer"])
@pytest.mark.parametrize("given", [True, False], ids=["source data", "no source data"])
@pytest.mark.parametrize("labels", ["symmetric", "cross_entropy"])
def test_batches_are_those_of_a_straight_version(labels, given, norm):
    model = network(norm)
    settings = {"strength": 3.0, "anchor": 0.5, "decay": 0.5, "trace": 0.5, "capacity": 8, "frequency": 8}
    adapter = PeTTA(model, lr=0.05, labels=labels, source=SOURCE if given else None, **settings)
    adapter.bank = lambda: inputs  # all of the batch, in its order
    straight, gammas = Straight(model, labels == "symmetric", given), []
    for inputs in batches():
        outputs, gamma = straight.step(inputs)
        assert torch.allclose(adapter(inputs), outputs, atol=1e-4)
        assert adapter.record["divergence"] == pytest.approx(gamma, abs=1e-5)
        gammas.append(gamma)
    assert max(gammas) > 1e-3
    assert adapter.change() > 0.01


def test_without_source_data_a_model_that_has_not_moved_has_not_diverged():
    adapter = PeTTA(network("batch"), lr=0.0, capacity=8, frequency=8)
    for inputs in batches():
        adapter(inputs * 3)
        assert adapter.record["divergence"] == pytest.approx(0.0, abs=1e-6)


def test_a_model_that_has_gone_far_is_drawn_back_and_its_teacher_stands_still():
    adapter = PeTTA(network(), lr=0.05, capacity=8, frequency=8, decay=0.5)
    adapter(batches()[0])
    adapter.memory["divergence"] = 1.0
    before = [value.clone() for value in adapter.taught.values]
    adapter.follow()
    assert all(torch.equal(a, b) for a, b in zip(adapter.taught.values, before, strict=True))
    adapter.memory["divergence"] = 0.0
    adapter.follow()
    assert not all(torch.equal(a, b) for a, b in zip(adapter.taught.values, before, strict=True))


def test_the_regulariser_is_least_at_the_source():
    adapter = PeTTA(network())
    assert adapter.regulariser().item() == pytest.approx(-1)
    with torch.no_grad():
        adapter.masters.values[0].neg_()
    assert adapter.regulariser().item() == pytest.approx(0, abs=1e-6)


def test_its_parent_is_rottas():
    model = network("batch")
    adapter = PeTTA(model, capacity=5, share=0.3)
    parent = adapter.parent(model)
    assert type(parent) is RoTTA
    assert (parent.capacity, parent.share, adapter.parent_label) == (5, 0.3, "rotta:lr=0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": "soft"}, "unknown labels 'soft'"),
        ({"trace": 2}, "trace is 2; a share"),
        ({"source": [3]}, "source holds a int; batches of images"),
        ({"source": []}, "source has no batch"),
        ({"capasity": 3}, "did you mean 'capacity'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(HapteraError, match=message):
        PeTTA(network(), **settings)
