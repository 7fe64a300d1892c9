"""The robust mean teacher, step by step against its equations, with source data and without."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import RMT, Augment, BatchNorm, PeriodicReset
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models
from haptera.testing.networks import images, plain

LR, DECAY, TEMPERATURE = 0.05, 0.7, 0.2
SGD = {"optimiser": "sgd", "momentum": 0.9}  # biases before BatchNorm have no gradient but noise, which Adam enlarges


def labelled(count=2):
    generator = torch.Generator().manual_seed(5)
    targets = torch.arange(20) % 10
    return [(torch.rand(20, 1, 16, 16, generator=generator), targets) for _ in range(count)]


def symmetric(said, taught):
    """Per sample, one after the other."""
    losses = []
    for one, two in zip(said, taught, strict=True):
        p, q = one.softmax(0), two.softmax(0)
        losses.append(-(q * p.log()).sum() / 2 - (p * q.log()).sum() / 2)
    return torch.stack(losses)


def contrast(prototypes, seen, in_view, projector):
    """Equation (5) of the paper: anchors are all 3 n features, positives the two others of the same image."""
    nearest = [max(prototypes, key=lambda each: float(F.cosine_similarity(each, row, dim=0))) for row in seen.detach()]
    rows = [projector(row) for group in (nearest, seen, in_view) for row in group]
    n, losses = len(seen), []
    for i in range(3 * n):
        weights = {
            j: torch.exp(F.cosine_similarity(rows[i], rows[j], dim=0) / TEMPERATURE) for j in range(3 * n) if j != i
        }
        total = sum(weights.values())
        positives = [-(weights[j] / total).log() for j in weights if j % n == i % n]
        losses.append(sum(positives) / len(positives))
    return sum(losses) / len(losses)


def by_hand(model, batches, prototypes, head, source=None):
    """Predictions and losses of every step, and both networks; batch statistics are those of train mode."""
    student, teacher = copy.deepcopy(model).train(), copy.deepcopy(model).train()
    projector = nn.Sequential(nn.Linear(24, 128), nn.ReLU(), nn.Linear(128, 128))
    projector.load_state_dict(dict(zip(projector.state_dict(), head, strict=True)))
    optimiser = torch.optim.SGD([*student.parameters(), *projector.parameters()], LR, momentum=0.9)
    generator, predictions, losses = generator_of(3), [], []
    for step, inputs in enumerate(batches):
        view = Augment()(inputs, generator)
        seen, in_view = student[:-1](inputs), student[:-1](view)
        said, of_view = student[-1](seen), student[-1](in_view)
        with torch.no_grad():
            taught = teacher(inputs)
        loss = (symmetric(said, taught) / 2 + symmetric(of_view, taught) / 2).mean()
        loss = loss + contrast(prototypes, seen, in_view, projector)
        if source is not None:
            replayed, targets = source[step % len(source)]
            loss = loss + F.cross_entropy(student(replayed), targets)
        predictions.append((said.detach() + taught) / 2)
        losses.append(float(loss.detach()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.copy_(DECAY * old + (1 - DECAY) * new)
    return predictions, losses, student, teacher


@pytest.mark.parametrize("replay", [False, True])
def test_five_steps_go_as_by_hand(replay):
    model, batches, source = plain(), images(5), labelled() if replay else None
    adapter = RMT(model, LR, source=source, temperature=TEMPERATURE, decay=DECAY, prior=0, seed=3, **SGD)
    prototypes = model[-1].weight.detach()
    if replay:
        inputs, targets = (torch.cat(part) for part in zip(*source, strict=True))
        with torch.no_grad():
            seen = model[:-1](inputs)
        prototypes = torch.stack([seen[targets == label].mean(0) for label in range(10)])
    head = [value.clone() for value in adapter.projector.parameters()]
    predictions, losses, student, teacher = by_hand(model, batches, prototypes, head, source)
    for inputs, expected, loss in zip(batches, predictions, losses, strict=True):
        assert torch.allclose(adapter(inputs), expected, atol=2e-4)
        assert adapter.record["loss"] == pytest.approx(loss, rel=1e-4)
    for ours, theirs in ((adapter.model, student), (adapter.teacher, teacher)):
        for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(one, two, atol=1e-4)
    assert adapter.record["change"] > 0.1


def test_without_contrast_neither_features_nor_a_last_layer_are_needed():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(256, 4, generator=torch.Generator().manual_seed(0)) / 16)

        def forward(self, inputs):
            return inputs.flatten(1) @ self.weight

    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        RMT(Last())
    adapter = RMT(Last(), lr=0.1, contrast=0.0)
    adapter(images()[0])
    assert adapter.record["change"] > 0


def test_warm_up_moves_the_weights_before_the_first_batch_and_a_reset_returns_there():
    model, inputs, source = plain(), images()[0], labelled()
    adapter = RMT(model, lr=0.3, source=source, warm_up=3, decay=0.5, contrast=0.0, replay=0.0, **SGD)
    student, teacher = copy.deepcopy(model).train(), copy.deepcopy(model).train()
    optimiser = torch.optim.SGD(student.parameters(), 0.3, momentum=0.9)
    for step in range(3):
        optimiser.param_groups[0]["lr"] = 0.3 * (step + 1) / 3
        loss = symmetric(student(source[step % 2][0]), teacher(source[step % 2][0]).detach()).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.lerp_(new, 0.5)
    for one, two in zip(adapter.teacher.parameters(), teacher.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-4)
    first = adapter(inputs)
    adapter(inputs)
    adapter.reset()
    assert adapter.change() > 0.01
    assert torch.equal(adapter(inputs), first)


def test_replay_goes_on_where_a_saved_state_was(tmp_path):
    source = labelled(3)
    make = PeriodicReset(lambda model: RMT(model, lr=0.01, source=source), every=10)
    one, two = make(plain()), make(plain())
    one(images()[0])
    one.save_state(tmp_path / "state")
    two.load_state(tmp_path / "state")
    assert torch.equal(one(images()[1]), two(images()[1]))
    assert one.inner.memory["replayed"] == two.inner.memory["replayed"] == 2


def test_statistics_found_last_are_those_of_the_images():
    model, inputs = example_models()["batch"], example_batches()[0]
    adapter = RMT(model, lr=0.0, prior=0)
    adapter(inputs)
    adapter.frozen = True
    assert torch.allclose(adapter(inputs), BatchNorm(model, prior=0)(inputs), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"contrast": -1}, "contrast is -1; a weight"),
        ({"replay": "x"}, "replay is 'x'; a weight"),
        ({"temperature": 0}, "temperature is 0; a number above 0"),
        ({"warm_up": 2}, "warm_up is 2; it needs labelled source data"),
        ({"source": 3}, "source is int; labelled batches by position"),
        ({"momentun": 0.5}, "momentum"),
    ],
)
def test_wrong_settings_are_refused(settings, why):
    with pytest.raises(HapteraError, match=why):
        RMT(plain(), **settings)
