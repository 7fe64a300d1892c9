"""SANTA: three batches against a straight version written from the paper; prototypes with and without source data."""

import copy

import pytest
import torch
from torch import nn

from haptera.adapters import SANTA, Augment
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError, NotApplicable

VIEW = Augment(noise=0.1, blur=0.0)


def network(norm="batch"):
    torch.manual_seed(0)
    norms = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([4, 6, 6])}
    layers = (nn.Conv2d(1, 4, 3), norms[norm], nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    return nn.Sequential(*layers).eval()


def batches(n=3, size=6):
    generator = torch.Generator().manual_seed(5)
    return [torch.rand(size, 1, 8, 8, generator=generator) for _ in range(n)]


def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))


class Straight:
    """The method in training mode, with plain loops over samples."""

    def __init__(self, model, projector, rate):
        self.model, self.source = copy.deepcopy(model).train(), copy.deepcopy(model).train()
        self.parameters, self.projector = [*self.model[1].parameters()], copy.deepcopy(projector)
        every = [*self.parameters, *self.projector.parameters()]
        self.optimiser = torch.optim.SGD(every, lr=rate, momentum=0.9)
        self.prototypes, self.random = model[5].weight.detach(), generator_of(0)

    def step(self, inputs):
        view = VIEW(inputs, self.random)
        features, features_of_view = self.model[:5](inputs), self.model[:5](view)
        said, said_of_view = self.model[5](features), self.model[5](features_of_view)
        source = self.source(inputs).softmax(1).log().detach()
        anchor = 0.0
        for place in range(len(inputs)):
            for logits in (said, said_of_view):
                anchor = anchor - 0.5 * sum(logits[place].softmax(0) * source[place]) / len(inputs)
        vectors, owners = [], []
        for place, seen in enumerate(features):
            near = max(range(3), key=[cosine(prototype, seen.detach()) for prototype in self.prototypes].__getitem__)
            vectors += [self.prototypes[near], seen, features_of_view[place]]
            owners += [place] * 3
        vectors = [self.projector(vector) for vector in vectors]
        vectors = [vector / vector.norm() for vector in vectors]
        contrast = 0.0
        for i, one in enumerate(vectors):
            similar = [torch.exp(one @ other / 0.1) for other in vectors]
            rivals = sum(value for j, value in enumerate(similar) if j != i)
            own = [similar[j] for j in range(len(vectors)) if owners[j] == owners[i] and j != i]
            contrast = contrast - sum(torch.log(value / rivals) for value in own) / len(own) / len(vectors)
        self.optimiser.zero_grad()
        (anchor + 0.5 * contrast).backward()
        self.optimiser.step()
        return said.detach()


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_three_batches_are_those_of_a_straight_version(norm):
    model = network(norm)
    adapter = SANTA(model, lr=0.05, contrast=0.5, augment=VIEW, prior=0.0)
    straight = Straight(model, adapter.projector, 0.05)
    for inputs in batches():
        assert torch.allclose(adapter(inputs), straight.step(inputs), atol=1e-5)
    for ours, theirs in zip(adapter.adapted.values(), straight.parameters, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    for ours, theirs in zip(adapter.projector.parameters(), straight.projector.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert adapter.change() > 0.01


def test_with_source_data_prototypes_are_the_mean_features_of_its_classes():
    model, images = network("layer"), torch.rand(6, 1, 8, 8)
    targets = torch.tensor([0, 1, 2, 0, 1, 2])
    adapter = SANTA(model, source=[(images[:4], targets[:4]), (images[4:], targets[4:])])
    with torch.no_grad():
        features = model[:5](images)
    expected = torch.stack([features[targets == label].mean(0) for label in range(3)])
    assert torch.allclose(adapter.prototypes, expected, atol=1e-6)


def test_without_contrast_it_is_not_asked_what_the_features_are():
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    inputs = batches(1)[0]
    assert SANTA(model, contrast=0.0)(inputs).shape == (6, 3)
    with pytest.raises(NotApplicable, match="pass labelled source data by source="):
        SANTA(model)(inputs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"anchor": -1}, "anchor is -1; a weight"),
        ({"temperature": 0}, "temperature is 0"),
        ({"source": []}, "source is list; labelled batches"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(HapteraError, match=message):
        SANTA(network(), **settings)
