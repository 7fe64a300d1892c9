"""ROID and CMF: five batches against a straight version from the papers, sample by sample; weights of the loss."""

import copy
from math import exp, log

import pytest
import torch
from torch import nn

from haptera.adapters import CMF, ROID, PeriodicReset, WeightedSLR
from haptera.adapters.generator import generator_of
from haptera.adapters.weighted_slr import PLAIN
from haptera.errors import HapteraError


def network(norm="batch"):
    """A convolution and a linear layer with one normalisation between them, away from the defaults.

    In double precision: five steps at this rate turn the rounding of single precision, which differs from CPU to CPU,
    into differences of 1e-4.
    """
    torch.manual_seed(0)
    norms = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([4, 6, 6])}
    layers = (nn.Conv2d(1, 4, 3), norms[norm], nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    model = nn.Sequential(*layers)
    model[5].weight.data.mul_(6)
    nn.init.normal_(model[1].weight, 1.0, 0.3)
    return model.double().eval()


def batches(n=5, size=17):
    generator = torch.Generator().manual_seed(5)
    return [torch.rand(size, 1, 8, 8, generator=generator).double() * (0.4 + 0.15 * step) for step in range(n)]


def entropy(p):
    return -sum(float(x) * log(float(x)) for x in p)


def cosine(a, b):
    return float((a * b).sum()) / (float((a * a).sum()) ** 0.5 * float((b * b).sum()) ** 0.5)


def unit(values):
    return [(value - min(values)) / (max(values) - min(values)) for value in values]


class Straight:
    """One method for ROID and CMF, on one model in training mode, with plain loops over samples."""

    def __init__(self, model, averaging, rate=0.05, temperature=1 / 3):
        self.model = copy.deepcopy(model).train()
        self.parameters = [*self.model[1].parameters()]
        self.source = [p.detach().clone() for p in self.parameters]
        self.optimiser = torch.optim.SGD(self.parameters, lr=rate, momentum=0.9)
        self.temperature, self.averaging = temperature, averaging
        self.mean, self.views = None, generator_of(0)
        self.hidden, self.variance = [p.clone() for p in self.source], 0.0

    def step(self, inputs):
        logits = self.model(inputs)
        p = logits.softmax(1).detach()
        n, classes = p.shape
        if self.mean is None:
            self.mean = torch.ones(classes) / classes
        diversity = unit([1 - cosine(self.mean, row) for row in p])
        certainty = unit([-entropy(row) for row in p])
        kept = [i for i in range(n) if diversity[i] >= sum(diversity) / n]
        weights = {i: exp(diversity[i] * certainty[i] / self.temperature) for i in kept}
        self.mean = 0.9 * self.mean + 0.1 * p.mean(0)
        seen = self.model(PLAIN(inputs[kept], self.views))
        loss = 0.0
        for place, i in enumerate(kept):
            own, view = logits[i].softmax(0), seen[place].softmax(0)
            clipped = own.clamp(max=0.99)
            ratio = -sum(x * torch.log(x / (1 - x) + 1e-5) for x in clipped)
            symmetric = -sum(0.5 * a * torch.log(b) + 0.5 * b * torch.log(a) for a, b in zip(own, view, strict=True))
            loss = loss + weights[i] * (ratio + symmetric) / n
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        with torch.no_grad():
            self.averaging(self)
        return self.correct(p)

    @staticmethod
    def correct(p):
        n, classes = p.shape
        prior = sum(p) / n
        smoothing = max(1 / n, 1 / classes) / float(max(prior))
        prior = (prior + smoothing) / (1 + classes * smoothing)
        return torch.stack([row * prior / (row * prior).sum() for row in p])


def average_with_the_source(straight):
    for now, first in zip(straight.parameters, straight.source, strict=True):
        now.copy_(0.9 * now + 0.1 * first)


def filter_weights(straight, alpha=0.9, gamma=0.8, noise=200.0):
    q = noise * sum(p.numel() for p in straight.parameters) / 38400
    variance = alpha**2 * straight.variance + q
    beta = (1 - q) / (variance + (1 - q))
    beta = max(beta, 0.89) if beta < 0.9999 else 1.0
    straight.variance = beta * variance
    for place, (now, first) in enumerate(zip(straight.parameters, straight.source, strict=True)):
        predicted = alpha * straight.hidden[place] + (1 - alpha) * first
        straight.hidden[place] = beta * predicted + (1 - beta) * now
        now.copy_(gamma * now + (1 - gamma) * straight.hidden[place])


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
@pytest.mark.parametrize(
    ("make", "averaging"),
    [
        (lambda model: ROID(model, lr=0.05, ensemble=0.9), average_with_the_source),
        (lambda model: CMF(model, lr=0.05, alpha=0.9, gamma=0.8, noise=200.0), filter_weights),
    ],
    ids=["roid", "cmf"],
)
def test_five_batches_are_those_of_a_straight_version(make, averaging, norm):
    model = network(norm)
    adapter, straight = make(model), Straight(model, averaging)
    for inputs in batches():
        assert torch.allclose(adapter(inputs).softmax(1), straight.step(inputs), atol=1e-7)
        assert 0 < adapter.record["kept"] < 1
    learner = adapter.innermost
    for ours, theirs in zip(learner.adapted.values(), straight.parameters, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-7)
    assert learner.change() > 0.01


def test_the_filter_gives_in_to_noise_within_the_limits_of_the_public_code():
    quiet, middle, loud = (CMF(network(), lr=0.05, noise=noise, parameters="all").inner for noise in (0.0, 30.0, 1e6))
    for adapter in (quiet, middle, loud):
        adapter(batches(1)[0])
    assert [adapter.q for adapter in (quiet, loud)] == [0.0, 1.0]
    for adapter, first in zip(quiet.memory["hidden"], quiet.learner._source, strict=True):
        assert torch.equal(adapter, first)  # β = 1: nothing of what was learnt
    assert loud.memory["variance"] == pytest.approx(0.89)  # β = .89
    assert middle.memory["variance"] == pytest.approx(middle.q * (1 - middle.q))  # β = (1 − q) / (q + 1 − q)


def test_without_averaging_and_correction_roid_is_its_loss_alone():
    roid, alone = ROID(network(), ensemble=1.0, prior_correction="none", lr=0.05), WeightedSLR(network(), lr=0.05)
    for inputs in batches(3):
        assert torch.equal(roid(inputs), alone(inputs))


def test_a_reset_begins_the_filter_the_mean_and_the_views_anew():
    adapter = PeriodicReset(CMF, every=2)(network(), lr=0.05, noise=200.0)
    inputs = batches(2)
    first = [adapter(each).clone() for each in inputs]
    assert adapter.inner.inner.memory["variance"] > 0
    assert all(torch.equal(adapter(each), before) for each, before in zip(inputs, first, strict=True))
    assert adapter.record["resets"] == 1


def test_one_image_counts_fully_and_values_that_are_not_finite_teach_nothing():
    adapter = WeightedSLR(network("layer"), lr=0.05, decay=0.5)
    assert adapter.weights(torch.tensor([[2.0, 1.0, 0.0]])).tolist() == [1.0]
    mean = adapter.memory["mean"]
    assert adapter.loss(torch.tensor([[1.0, float("inf"), 0.0]]), torch.zeros(1, 1, 8, 8)) is None
    assert torch.equal(adapter.memory["mean"], mean)


def test_a_single_view_is_normalised_by_the_statistics_of_the_batch():
    layers = (nn.Conv2d(1, 4, 8), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 3))  # maps of one pixel
    inputs = batches(1)[0]
    adapter = WeightedSLR(nn.Sequential(*layers).double().eval(), lr=0.05)
    adapter.weights = lambda logits: torch.eye(len(logits))[0]  # only the first is kept
    assert torch.isfinite(adapter(inputs)).all()
    assert adapter.record["change"] > 0
    found = adapter.norms[0].mean.clone()
    adapter.weights = lambda logits: torch.ones(len(logits))
    adapter.reset()
    adapter(inputs)
    assert torch.equal(adapter.norms[0].mean, found)  # not those of views, however many there are


def test_without_consistency_inputs_need_not_be_images():
    model = nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 3))
    assert torch.isfinite(ROID(model, consistency=0)(torch.rand(6, 5))).all()
    with pytest.raises(HapteraError, match="views need images"):
        ROID(model)(torch.rand(6, 5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ensemble": 1.1}, "ensemble is 1.1; a share"),
        ({"prior_correction": "prob"}, "unknown prior_correction 'prob'"),
        ({"temperature": 0}, "temperature is 0"),
        ({"consistency": -1}, "consistency is -1; a weight"),
        ({"momentun": 0.9}, "did you mean 'momentum'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(HapteraError, match=message):
        ROID(network(), **settings)
