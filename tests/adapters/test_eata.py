"""EATA: the Fisher matrix by hand, from the stream or before the first step, and what the anchor does."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import EATA, ETA, BatchNorm
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def values(adapter):
    return [parameter.detach().clone() for parameter in adapter.adapted.values()]


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_eata_is_eta_until_it_knows_what_matters_then_holds_back(model):
    settings = {"lr": 0.05, "margin": 1.1, "redundancy": 1.1}
    eta, eata = ETA(model, **settings), EATA(model, fisher_samples=12, **settings)
    batches = example_batches()
    for inputs in batches[:3]:  # 6 images each: the first two fill F, the third is the first with the anchor
        assert torch.equal(eta(inputs), eata(inputs))
    assert eata.memory["fisher_batches"] == 2
    assert not same(values(eta), values(eata))


def test_eatas_fisher_is_the_mean_squared_gradient_on_its_own_labels(model):
    adapter = EATA(model, lr=0.0, margin=1.1, redundancy=1.1, fisher_samples=12, strength=1.0)
    batches = example_batches()[:2]
    expected = [torch.zeros_like(p) for p in adapter.adapted.values()]
    for inputs in batches:
        adapter(inputs)
        with torch.enable_grad():
            logits = adapter.logits(inputs)
            loss = F.cross_entropy(logits, logits.argmax(1))
        for total, g in zip(expected, torch.autograd.grad(loss, list(adapter.adapted.values())), strict=True):
            total += g**2 / 2
    with torch.no_grad():
        for parameter in adapter.adapted.values():
            parameter.add_(0.5)
    assert float(adapter.anchor().detach()) == pytest.approx(sum(float(f.sum()) for f in expected) * 0.25, rel=1e-4)


def fisher_by_hand(model, batches):
    """Squared gradients of the loss on its own labels, the mean over batches, on statistics of the batch."""
    net = copy.deepcopy(model).train().requires_grad_(False)
    affine = [p for m in net.modules() if isinstance(m, nn.BatchNorm2d) for p in (m.weight, m.bias)]
    squares = []
    for inputs in batches:
        for p in affine:
            p.requires_grad_(True)
        logits = net(inputs)
        gradients = torch.autograd.grad(F.cross_entropy(logits, logits.argmax(1)), affine)
        squares.append([g**2 for g in gradients])
    return [sum(each) / len(batches) for each in zip(*squares, strict=True)]


def as_batches(inputs):
    return [Batch(part, None, torch.arange(len(part)), {}) for part in inputs]


def test_eatas_fisher_comes_from_images_that_are_passed_before_the_first_step(model):
    source, stream = example_batches()[:2], example_batches()[2:]
    adapter = EATA(model, prior=0, lr=0.05, margin=1.1, redundancy=1.1, source=as_batches(source), fisher_samples=9)
    expected = fisher_by_hand(model, [source[0], source[1][:3]])
    found = [f / adapter.memory["fisher_batches"] for f in adapter.memory["fisher"]]
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert torch.equal(adapter(stream[0]), ETA(model, prior=0, lr=0.05, margin=1.1, redundancy=1.1)(stream[0]))
    adapter(stream[1])
    assert adapter.memory["fisher_seen"] == 9
    adapter.reset()
    assert same(adapter.memory["fisher"], [f * 2 for f in found])


def test_eatas_fisher_of_the_first_samples_waits_with_the_first_step(model):
    batches = example_batches()
    adapter = EATA(model, prior=0, lr=0.05, margin=1.1, redundancy=1.1, fisher="before", fisher_samples=12)
    plain = BatchNorm(model, prior=0)
    for inputs in batches[:3]:
        assert torch.allclose(adapter(inputs), plain(inputs), atol=1e-5)
    expected = fisher_by_hand(model, batches[:2])
    found = [f / 2 for f in adapter.memory["fisher"]]
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert adapter.record["change"] > 0  # the third batch was learnt from


def test_a_source_without_images_is_refused(model):
    with pytest.raises(HapteraError, match="source has no batch"):
        EATA(model, source=[])
    with pytest.raises(HapteraError, match="during"):
        EATA(model, fisher="durin")
