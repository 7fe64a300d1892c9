"""LAME against loops written out, and its bound."""

import copy
from itertools import pairwise
from math import exp

import numpy as np
import pytest
import torch
from torch import nn

from haptera.adapters import LAME
from haptera.adapters.lame import adjust, affinities
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


def scene(n=9, d=5, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    found = nn.functional.normalize(torch.randn(n, d, generator=generator), dim=1)
    return found, (2 * torch.randn(n, classes, generator=generator)).log_softmax(1)


def affinities_by_hand(found, kind, neighbours):
    n = len(found)
    distance = [[float(np.linalg.norm(found[i] - found[j])) for j in range(n)] for i in range(n)]
    weights = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: distance[i][j])
        for j in range(n):
            if kind == "linear":
                weights[i, j] = sum(a * b for a, b in zip(found[i], found[j], strict=True))
            elif kind == "knn":
                weights[i, j] = float(j in others[:neighbours])
            else:
                ranked = np.mean([sorted(row)[min(neighbours, n - 1)] for row in distance])
                weights[i, j] = exp(-(distance[i][j] ** 2) / (2 * ranked**2))
    return weights


def adjusted_by_hand(q, weights, iterations):
    z = q.copy()
    for _ in range(iterations):
        new = np.zeros_like(z)
        for i in range(len(q)):
            for c in range(q.shape[1]):
                new[i, c] = q[i, c] * exp(sum(weights[i, j] * z[j, c] for j in range(len(q))))
            new[i] /= new[i].sum()
        z = new
    return z


def bound(z, q, weights):
    return (z * np.log(z / q)).sum() - 0.5 * (weights * (z @ z.T)).sum()


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
@pytest.mark.parametrize(("n", "neighbours"), [(9, 3), (4, 10), (2, 1)])
def test_affinities_follow_their_definition(kind, n, neighbours):
    found, _ = scene(n)
    expected = affinities_by_hand(found.double().numpy(), kind, neighbours)
    assert np.allclose(affinities(found, kind, neighbours), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
@pytest.mark.parametrize("iterations", [1, 2, 40])
def test_iterations_equal_a_naive_loop(kind, iterations):
    found, log_q = scene()
    weights = affinities(found, kind, 3)
    log_z, steps = adjust(log_q, weights, iterations)
    expected = adjusted_by_hand(log_q.exp().double().numpy(), weights.double().numpy(), iterations)
    assert np.allclose(log_z.exp(), expected, atol=1e-4)
    assert steps <= iterations


@pytest.mark.parametrize("kind", ["rbf", "linear"])
@pytest.mark.parametrize("seed", range(5))
def test_no_iteration_makes_the_bound_larger(kind, seed):
    found, log_q = (part.double() for part in scene(seed=seed))
    weights = affinities(found, kind, 3)
    q, values = log_q.exp().numpy(), []
    for iterations in range(12):
        z = adjust(log_q, weights, iterations)[0].exp().numpy()
        values.append(bound(z, q, weights.numpy()))
    assert values[-1] < values[0] - 1e-3
    assert all(after <= before + 1e-9 for before, after in pairwise(values))


def test_it_ends_where_nothing_moves():
    found, log_q = scene()
    weights = affinities(found, "rbf", 3)
    log_z, steps = adjust(log_q, weights, 500)
    assert steps < 500
    again = (log_q + weights @ log_z.exp()).softmax(1)
    assert torch.allclose(again, log_z.exp(), atol=1e-5)


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
def test_the_adapter_joins_features_affinities_and_iterations(kind):
    model, inputs = example_models()["layer"], example_batches()[0]
    with torch.no_grad():
        tokens = model.patches(model.normalise(inputs)).flatten(2).transpose(1, 2)
        found = model.encoder(tokens + model.positions).mean(1).double().numpy()
        q = model(inputs).softmax(1).double().numpy()
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    expected = adjusted_by_hand(q, affinities_by_hand(found, kind, 2), 100)
    adapter = LAME(model, affinity=kind, neighbours=2)
    assert np.allclose(adapter(inputs).exp(), expected, atol=1e-3)
    assert 1 <= adapter.record["iterations"] <= 100


def test_an_unsure_image_takes_the_class_of_its_neighbours():
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    net[1].weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    one, other = torch.tensor([5.0, 1.0]), torch.tensor([1.0, 5.0])
    inputs = torch.stack([one, one * 0.9, one * 1.1, torch.tensor([0.10, 0.11]), other, other * 0.9, other * 1.1])
    outputs = LAME(net, neighbours=3)(inputs[:4])
    assert net(inputs).argmax(1).tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert outputs.argmax(1).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
def test_one_image_is_predicted_and_with_no_neighbour_as_the_model_does(kind):
    model, inputs = example_models()["layer"], example_batches()[0][:1]
    outputs = LAME(model, affinity=kind)(inputs)
    assert torch.isfinite(outputs).all()
    if kind == "knn":
        assert torch.allclose(outputs, model(inputs).log_softmax(1), atol=1e-5)


def test_an_image_is_never_its_own_neighbour():
    found = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    weights = affinities(found, "knn", 1)
    assert weights.diagonal().sum() == 0
    assert weights.sum(1).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
def test_an_image_of_nan_does_not_reach_the_others(kind):
    model, inputs = example_models()["layer"], example_batches()[0].clone()
    expected = LAME(model, affinity=kind)(inputs[1:])
    inputs[0] = float("nan")
    adapter = LAME(model, affinity=kind)
    assert torch.allclose(adapter(inputs)[1:], expected, atol=1e-5)
    assert adapter.record["skipped"] == 1


def test_a_window_brings_neighbours_to_single_images():
    model, inputs = example_models()["batch"], example_batches()[0]
    adapter = LAME(model, window=6)
    single = [adapter(image) for image in inputs.split(1)]
    assert torch.allclose(single[-1], LAME(model)(inputs)[-1:], atol=1e-5)


def test_a_released_model_has_no_hook():
    adapter = LAME(example_models()["none"])
    adapter(example_batches()[0])
    released = adapter.release()
    assert not any(layer._forward_pre_hooks for layer in released.modules())
    copy.deepcopy(adapter)


def test_a_model_without_a_last_layer_does_not_apply():
    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        LAME(nn.Sequential(nn.BatchNorm1d(3)))


def test_a_last_layer_that_is_not_used_is_said():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.never = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, inputs):
            return self.first(inputs)

    with pytest.raises(HapteraError, match="does not use its last"):
        LAME(Unused())(torch.rand(3, 4))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"affinity": "nearest"}, "unknown affinity"),
        ({"neighbours": 0}, "is 0"),
        ({"iterations": 2.5}, "is 2"),
    ],
)
def test_wrong_settings_are_refused(settings, says):
    with pytest.raises(HapteraError, match=says):
        LAME(example_models()["none"], **settings)
