"""SHOT against straight versions: its labels by loops over images, and its steps, online and offline."""

import copy
from math import sqrt

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import SHOT, Offline
from haptera.adapters.shot import centroid_labels
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


def batches_of(tensors):
    return [Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in tensors]


def labels_by_hand(found, probabilities, rounds):
    n, classes = probabilities.shape
    rows = [np.append(row, 1.0) for row in found]
    rows = [row / np.linalg.norm(row) for row in rows]
    labels = [int(np.argmax(row)) for row in probabilities]
    shares = probabilities
    for _ in range(rounds):
        centroids = {
            k: sum(shares[i, k] * rows[i] for i in range(n)) / sum(shares[i, k] for i in range(n)) for k in set(labels)
        }
        distance = [
            {k: 1 - row @ c / sqrt(float(c @ c) * float(row @ row)) for k, c in centroids.items()} for row in rows
        ]
        labels = [min(sorted(each), key=each.get) for each in distance]
        shares = np.eye(classes)[labels]
    return labels


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_labels_are_those_of_the_nearest_weighted_centroids(rounds, seed):
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(25, 6, generator=generator, dtype=torch.float64)
    said = (2 * torch.randn(25, 8, generator=generator, dtype=torch.float64)).softmax(1)
    ours = centroid_labels(found, said, rounds).tolist()
    assert ours == labels_by_hand(found.numpy(), said.numpy(), rounds)
    assert ours != said.argmax(1).tolist()


def straight_loss(logits, labels, beta):
    rows = logits.softmax(1)
    sure = torch.stack([-(row * row.log()).sum() for row in rows]).mean()
    mean = rows.mean(0)
    loss = sure + (mean * mean.log()).sum()
    kept = [i for i in range(len(rows)) if labels[i] >= 0]
    return loss + beta * torch.stack([-rows[i, labels[i]].log() for i in kept]).mean() if kept else loss


def body(net):
    """A network whose last layer stays, in training mode of BatchNorm."""
    net = copy.deepcopy(net).train()
    *others, weight, bias = net.parameters()
    for parameter in (weight, bias):
        parameter.requires_grad_(False)
    return net, torch.optim.SGD(others, lr=0.05, momentum=0.9, weight_decay=1e-3)


def small(norm):
    layers = {"batch": nn.BatchNorm1d(12), "group": nn.GroupNorm(3, 12), "layer": nn.LayerNorm(12)}
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 12), layers[norm], nn.ReLU(), nn.Linear(12, 5)).eval()


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_online_steps_equal_a_straight_version(norm):
    net, optimiser = body(small(norm))
    adapter = SHOT(small(norm), lr=0.05, beta=0.3, threshold=0.25, prior=0)
    counts = set()
    for inputs in example_batches():
        logits = net(inputs)
        p = logits.softmax(1)
        labels = [int(row.argmax()) if row.max() > 0.25 else -1 for row in p]
        counts.add(sum(label >= 0 for label in labels))
        straight_loss(logits, labels, 0.3).backward()
        optimiser.step()
        optimiser.zero_grad()
        assert torch.allclose(adapter(inputs), logits.detach(), atol=1e-5)
    assert len(counts) > 1  # the threshold parts them
    assert torch.equal(adapter.model[-1].weight, small(norm)[-1].weight)


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_epochs_offline_equal_a_straight_version(norm):
    stream = example_batches()
    net, optimiser = body(small(norm))
    for _ in range(2):
        with torch.no_grad():
            found = [net[:-1](inputs) for inputs in stream]
            said = torch.cat([net[-1](each).softmax(1) for each in found]).double().numpy()
        labels = iter(labels_by_hand(torch.cat(found).double().numpy(), said, 2))
        for inputs in stream:
            straight_loss(net(inputs), [next(labels) for _ in inputs], 0.3).backward()
            optimiser.step()
            optimiser.zero_grad()
    adapter = SHOT(small(norm), lr=0.05, prior=0)
    adapter.adapt(batches_of(stream), epochs=2)
    for name, parameter in net.named_parameters():
        assert torch.allclose(adapter.model.get_parameter(name), parameter, atol=1e-5), name
    with torch.no_grad():
        assert torch.allclose(adapter.predictor()(stream[0]), net(stream[0]), atol=1e-4)


def test_without_labels_it_is_information_maximisation():
    inputs = example_batches()[0]
    adapter = SHOT(small("layer"), beta=0.0, lr=0.0)
    logits = adapter(inputs)
    assert adapter.record["loss"] == pytest.approx(float(straight_loss(logits, [-1] * 6, 0.0)), abs=1e-6)
    assert "kept" not in adapter.record


def test_a_batch_that_is_not_finite_is_left_out_of_labels_and_learning():
    stream = example_batches()
    broken = stream[1].clone()
    broken[0, 0, 0, 0] = float("nan")
    plain, disturbed = (SHOT(small("batch"), lr=0.05, prior=0) for _ in range(2))
    plain.adapt(batches_of([stream[0], stream[2]]))
    disturbed.adapt(batches_of([stream[0], broken, stream[2][:0], stream[2]]))
    assert torch.equal(plain.model[1].weight, disturbed.model[1].weight)
    disturbed.adapt(batches_of([broken]))
    assert torch.equal(plain.model[1].weight, disturbed.model[1].weight)


def test_after_a_whole_stream_it_goes_on_online():
    adapter = Offline(small("batch"), SHOT, lr=0.05)
    adapter.adapt(batches_of(example_batches()))
    inner = adapter.inner
    inner(example_batches()[0][:4])  # another size than any labels
    assert torch.isfinite(torch.tensor(inner.record["loss"]))


def test_classes_of_three_clouds_are_found_from_a_poor_start():
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[4.0, 0.0], [-2.0, 3.5], [-2.0, -3.5]])
    truth = torch.arange(3).repeat(30)
    found = centres[truth] + 0.3 * torch.randn(90, 2, generator=generator)
    said = F.softmax(0.8 * F.one_hot(truth, 3) + torch.randn(90, 3, generator=generator), 1)
    before = (said.argmax(1) == truth).float().mean()
    assert before < 0.75
    assert (centroid_labels(found, said) == truth).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(HapteraError, match="reads a stream twice"):
        SHOT(small("layer")).adapt(iter(batches_of(example_batches())))
    with pytest.raises(HapteraError, match="threshold is 2"):
        SHOT(small("layer"), threshold=2)
    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        SHOT(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(256)))
    assert "!last" in str(SHOT.__signature__)
    assert SHOT(example_models()["none"]).parent_label == "none"
