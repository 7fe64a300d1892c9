"""Prototypes of classes, labelled source data, and the head that projects features."""

import copy

import pytest
import torch
from torch import nn

from haptera.adapters.prototypes import Projector, SourceData, class_means, head_rows, nearest
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable


def batches(*targets):
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(len(some), 3, generator=generator), torch.tensor(some)) for some in targets]


def look(inputs):
    return inputs * 2, torch.zeros(len(inputs), 4)


def test_prototypes_are_the_mean_features_of_each_class_that_has_samples():
    source = batches([0, 3, 3], [1, 0])
    inputs, targets = torch.cat([pair[0] for pair in source]), torch.cat([pair[1] for pair in source])
    expected = torch.stack([(2 * inputs[targets == label]).mean(0) for label in (0, 1, 3)])
    assert torch.allclose(class_means(SourceData(source), look), expected)


def test_source_data_is_read_in_a_circle_from_pairs_or_batches():
    pairs = batches([0, 1], [2, 3])
    as_batches = [Batch(inputs, targets, torch.arange(2), {}) for inputs, targets in pairs]
    for source in (SourceData(pairs), SourceData(as_batches)):
        assert torch.equal(source[5][0], pairs[1][0])
        assert source[4][1].tolist() == [0, 1]
        assert copy.deepcopy(source) is source


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ([], "source is list; labelled batches by position"),
        (iter([]), "labelled batches by position"),
        ("train/", r"batch 0 of source is str 't'; \(inputs, targets\) was expected"),
        ([torch.zeros(2, 3)], "batch 0 of source is Tensor"),
        ([(torch.zeros(2, 3), None)], "batch 0 of source has targets None"),
        ([(torch.zeros(2, 3), torch.zeros(3))], r"batch 0 of source has targets \(3,\)"),
    ],
)
def test_wrong_source_data_is_refused(source, why):
    with pytest.raises(HapteraError, match=why):
        SourceData(source)


def test_targets_that_the_model_does_not_have_are_refused():
    with pytest.raises(HapteraError, match="targets from 0 to 4; the model has 4 classes"):
        class_means(SourceData(batches([0, 4])), look)


def test_without_source_data_prototypes_are_the_rows_of_the_last_layer():
    net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 4))
    assert torch.equal(head_rows(net), net[1].weight)
    assert head_rows(nn.Sequential(nn.Conv2d(3, 4, 1))).shape == (4, 3)
    with pytest.raises(NotApplicable, match="not features of classes"):
        head_rows(nn.Sequential(nn.Conv2d(3, 4, 3)))


def test_the_nearest_prototype_is_the_one_of_largest_cosine():
    prototypes = torch.tensor([[10.0, 0.0], [0.0, 0.1]])
    found = nearest(torch.tensor([[1.0, 2.0], [3.0, -1.0]]), prototypes)
    assert torch.equal(found, prototypes[[1, 0]])
    with pytest.raises(NotApplicable, match="features have 3 dimensions"):
        nearest(torch.zeros(2, 3), prototypes)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_projector_learns_with_an_optimiser_like_that_of_its_adapter(kind):
    like = kind([nn.Parameter(torch.zeros(1))], lr=0.05)
    one, two = Projector(4, 3, like, seed=1), Projector(4, 3, like, seed=1)
    plain = kind(two.parameters(), lr=0.05)
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        one(features).square().mean().backward()
        one.step()
        plain.zero_grad()
        two(features).square().mean().backward()
        plain.step()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_projector_begins_from_its_seed_and_leaves_the_global_generator_alone():
    like = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    before = torch.get_rng_state()
    same, other = Projector(4, 3, like, seed=1), Projector(4, 3, like, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(same.layers[0].weight, Projector(4, 3, like, seed=1).layers[0].weight)
    assert not torch.equal(same.layers[0].weight, other.layers[0].weight)
    assert float(same.layers[0].weight.detach().abs().max()) <= 0.5


def test_a_projector_goes_on_from_its_state_also_after_half_precision():
    like = torch.optim.Adam([nn.Parameter(torch.zeros(1))], lr=0.05)
    one, two = Projector(4, 3, like), Projector(4, 3, like)
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    one(features).square().mean().backward()
    one.step()
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    for each in (one, two.half()):
        each(features).square().mean().backward()
        each.step()
    assert all(p.dtype == torch.float32 for p in two.parameters())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(Projector(4, 3, like).layers[1].weight, two.layers[1].weight)
