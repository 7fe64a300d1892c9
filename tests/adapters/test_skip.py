"""Backward passes of some samples only: the same gradients as torch's, on networks that mix samples and that do not."""

import collections

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import ETA, SAR, PseudoLabels, skip
from haptera.adapters.rows import Rows
from haptera.adapters.skip import keep
from haptera.models import ViT
from haptera.testing.adapters import example_batches, example_models


class Attention(nn.Module):
    """Written out, with a class token, as in timm's and transformers' networks."""

    def __init__(self):
        super().__init__()
        self.patches, self.token = nn.Conv2d(1, 8, 8, 8), nn.Parameter(torch.randn(1, 1, 8))
        self.norm, self.qkv, self.last = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 10)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1)
        q, k, v = self.qkv(self.norm(tokens)).reshape(len(tokens), -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = (q @ k.transpose(-2, -1) / 2).softmax(-1) @ v
        return self.last((tokens + mixed.transpose(1, 2).flatten(2))[:, 0])


class AcrossSamples(nn.Module):
    """Samples see one another: no row of a gradient stays apart."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(256, 8), nn.LayerNorm(8), nn.Linear(8, 10)

    def forward(self, images):
        hidden = self.norm(self.first(images.flatten(1)))
        hidden = hidden - hidden.mean(0) + (hidden @ hidden.t()).softmax(1) @ hidden + hidden.cumsum(0)
        return self.last(hidden.roll(1, 0))


def pooled():
    layers = [
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=4),
    ]
    more = [nn.Hardswish(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *more, nn.Linear(8, 10))


def networks():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        deep = ViT(size=16, width=16, depth=2)
        made = {"attention": Attention(), "across": AcrossSamples(), "pooled": pooled(), "deep": deep}
    return {name: model.eval() for name, model in (example_models() | made).items()}


KEPT = torch.tensor([True, False, False, True, True, False])


def gradients(model, inputs, choose, kept=KEPT, parameters=None):
    net = model.requires_grad_(True)
    logits = net(inputs)
    loss = (F.cross_entropy(choose(logits, kept), torch.arange(int(kept.sum())) % 10)) * 3
    return torch.autograd.grad(loss, list(net.parameters()), materialize_grads=True)


@pytest.mark.parametrize("name", networks())
@pytest.mark.parametrize("kept", [KEPT, ~KEPT, torch.arange(6) == 4], ids=["three", "others", "one"])
def test_gradients_of_all_parameters_are_torchs(name, kept, monkeypatch):
    model, inputs = networks()[name], example_batches()[0]
    of, made = Rows.of, []
    monkeypatch.setattr(Rows, "of", lambda whole, index: made.append(of(whole, index)) or made[0])
    expected = gradients(model, inputs, lambda logits, kept: logits[kept], kept)
    found = gradients(model, inputs, keep, kept)
    assert made
    assert all(type(gradient) is torch.Tensor for gradient in found)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["group", "layer", "none", "attention", "pooled", "deep", "batch"])
def test_samples_that_are_dropped_cost_nothing_where_layers_treat_samples_apart(name, monkeypatch):
    whole, wholes = Rows.whole, collections.Counter()
    monkeypatch.setattr(Rows, "whole", lambda rows: wholes.update(["whole"]) or whole(rows))
    gradients(networks()[name], example_batches()[0], keep)
    assert not wholes


def test_what_mixes_samples_gets_the_whole_gradient(monkeypatch):
    whole, wholes = Rows.whole, collections.Counter()
    monkeypatch.setattr(Rows, "whole", lambda rows: wholes.update(["whole"]) or whole(rows))
    gradients(networks()["across"], example_batches()[0], keep)
    assert wholes


def test_other_paths_to_the_same_logits_keep_their_gradient():
    model, inputs = networks()["layer"], example_batches()[0]

    def loss(choose):
        logits = model(inputs)
        return choose(logits, KEPT).logsumexp(1).mean() + 0.1 * (logits**2).mean()

    parameters = list(model.requires_grad_(True).parameters())
    ours, theirs = (torch.autograd.grad(loss(choose), parameters) for choose in (keep, lambda z, kept: z[kept]))
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(ours, theirs, strict=True))


def test_functions_that_are_not_torchs_and_statistics_of_the_batch_are_left_to_torch(monkeypatch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return 2 * values

        @staticmethod
        def backward(ctx, grad):
            assert type(grad) is torch.Tensor
            return 2 * grad

    monkeypatch.setattr(Rows, "of", None)
    inputs = torch.rand(6, 4)
    for model in (nn.Linear(4, 10), nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 10)).train()):
        logits = model(inputs) if isinstance(model, nn.Sequential) else Double.apply(model(inputs))
        keep(logits, KEPT).sum().backward()


@pytest.mark.parametrize("use", [lambda a, b, c: a * c, lambda a, b, c: a * a + b + c, lambda a, b, c: b])
def test_entries_of_a_dimension_may_be_used_twice_or_not_at_all(use):
    torch.manual_seed(0)
    first, last, inputs = nn.Linear(4, 24), nn.Linear(8, 10), torch.randn(6, 4)

    def found(choose):
        entries = first(inputs).unflatten(1, (3, 8))
        logits = last(use(*(entries.select(1, entry) for entry in (0, 1, 2))) + entries[:, 0])
        parameters = [*first.parameters(), *last.parameters()]
        return torch.autograd.grad(choose(logits, KEPT).logsumexp(1).sum(), parameters)

    for ours, theirs in zip(found(keep), found(lambda logits, kept: logits[kept]), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_something_written_to_a_gradient_in_place_is_there_afterwards():
    rows = Rows.of(torch.ones(6, 3) * KEPT[:, None], KEPT.nonzero().squeeze(1))
    rows.add_(torch.full((6, 3), 2.0))
    assert torch.equal(rows * 1.0 + torch.zeros(6, 3), torch.full((6, 3), 2.0) + KEPT[:, None])
    rows.mul_(2.0)
    assert float((rows + torch.zeros(6, 3)).sum()) == 2 * (36 + 9)


@torch.no_grad()
def sharpened(model):
    """A network that is sure of about a half of the images."""
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
    spread = torch.cat([model(inputs) for inputs in example_batches()])
    last.weight.mul_(2 / spread.std(0).mean())
    last.bias.sub_(torch.cat([model(inputs) for inputs in example_batches()]).mean(0))
    return model


@pytest.mark.parametrize("norm", ["layer", "group", "batch"])
@pytest.mark.parametrize(
    "make",
    [
        lambda model: ETA(model, lr=0.05, margin=0.6, redundancy=1.1),
        lambda model: SAR(model, lr=0.05, margin=0.6, floor=0.0),
        lambda model: PseudoLabels(model, lr=0.05, threshold=0.5),
    ],
    ids=["eta", "sar", "pseudo_labels"],
)
def test_methods_learn_what_they_learn_through_the_whole_batch(make, norm, monkeypatch):
    model = sharpened(example_models()[norm])
    ours = make(model)
    outputs, kept = zip(*[(ours(inputs), ours.record["kept"]) for inputs in example_batches()], strict=True)
    monkeypatch.setattr(skip, "_treats_apart", lambda last: False)
    plain = make(model)
    for inputs, output in zip(example_batches(), outputs, strict=True):
        assert torch.allclose(plain(inputs), output, rtol=1e-4, atol=1e-4)
    assert any(0 < share < 1 for share in kept)
