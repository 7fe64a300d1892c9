"""Self-distillation against the equations written out."""

import copy

import pytest
import torch
from torch import nn

from haptera.adapters import DINO, Augment, BatchNorm
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


def features(model, images):
    """Of the small transformer."""
    tokens = model.patches(model.normalise(images)).flatten(2).transpose(1, 2)
    return model.encoder(tokens + model.positions).mean(1)


def by_hand(model, batches, lr, views, temperatures, centring, decay, seed, head=None):
    """Loss of every step, the centre and both networks at the end."""
    student, teacher = copy.deepcopy(model), copy.deepcopy(model)
    optimiser = torch.optim.Adam(student.parameters(), lr)
    centre, losses = 0.0, []
    project = (lambda net, x: net(x)) if head is None else (lambda net, x: head(features(net, x)))
    generator = generator_of(seed)
    for inputs in batches:
        seen = [Augment()(inputs, generator) for _ in range(views)]
        with torch.no_grad():
            taught = [project(teacher, view) for view in seen[:2]]
        terms = []
        for a in range(2):
            target = ((taught[a] - centre) / temperatures[1]).softmax(1)
            for b in range(views):
                if a != b:
                    said = (project(student, seen[b]) / temperatures[0]).log_softmax(1)
                    terms.append(-(target * said).sum(1).mean())
        loss = sum(terms) / len(terms)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        centre = centring * centre + (1 - centring) * torch.cat(taught).mean(0)
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.copy_(decay * old + (1 - decay) * new)
        losses.append(float(loss.detach()))
    return losses, centre, student, teacher


@pytest.mark.parametrize(("views", "with_head"), [(2, False), (4, False), (3, True)])
def test_steps_go_as_by_hand(views, with_head):
    torch.manual_seed(0)
    model, batches = example_models()["layer"], example_batches()
    head = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 20)) if with_head else None
    settings = {"lr": 0.01, "views": views, "centring": 0.7, "decay": 0.6, "seed": 2}
    losses, centre, student, teacher = by_hand(model, batches, temperatures=(0.5, 0.2), head=head, **settings)
    adapter = DINO(model, student_temperature=0.5, teacher_temperature=0.2, head=head, **settings)
    for inputs, loss in zip(batches, losses, strict=True):
        adapter(inputs)
        assert adapter.record["loss"] == pytest.approx(loss, rel=1e-3)
    assert torch.allclose(adapter.memory["centre"], centre, atol=1e-3)
    still = {"head.weight", "head.bias"} if with_head else set()
    for (name, found), expected in zip(adapter.teacher.named_parameters(), teacher.parameters(), strict=True):
        assert torch.allclose(found, expected, atol=2e-3)
        assert torch.equal(found, model.get_parameter(name)) == (name in still)
    assert adapter.record["change"] > 0.01
    assert adapter.change() == pytest.approx(
        sum(((a - b) ** 2).sum().item() for a, b in zip(student.parameters(), model.parameters(), strict=True)) ** 0.5,
        rel=0.05,
    )


def test_the_teacher_predicts_the_images_as_they_are():
    model, inputs = example_models()["layer"], example_batches()[0]
    adapter = DINO(model, lr=0.1, decay=0.5)
    assert torch.allclose(adapter(inputs), model(inputs), atol=1e-5)
    again = adapter(inputs)
    assert not torch.allclose(again, model(inputs), atol=1e-3)


def test_statistics_found_last_are_those_of_the_images_not_of_a_view():
    model, inputs = example_models()["batch"], example_batches()[0]
    adapter = DINO(model, prior=0, lr=0.0)
    adapter(inputs)
    adapter.frozen = True
    assert torch.allclose(adapter(inputs), BatchNorm(model, prior=0)(inputs), atol=1e-4)


def test_the_words_of_the_table_choose_these_weights():
    model = example_models()["layer"]
    chosen = {what: set(DINO(model, parameters=what).adapted) for what in ("all", "norm", "*linear*+*proj*")}
    assert chosen["all"] == {name for name, _ in model.named_parameters()}
    assert all("norm" in name for name in chosen["norm"])
    inside = {name for name in chosen["all"] if name.startswith("encoder.layers") and "norm" not in name}
    assert chosen["*linear*+*proj*"] == inside


def test_a_head_stays_the_callers_and_as_it_was():
    head = nn.Linear(16, 6)
    before = copy.deepcopy(head.state_dict())
    adapter = DINO(example_models()["layer"], lr=0.1, head=head)
    for inputs in example_batches():
        adapter(inputs)
    assert all(torch.equal(value, before[key]) for key, value in head.state_dict().items())
    assert head.weight.grad is None
    assert head.weight.requires_grad


def test_a_head_needs_a_last_layer():
    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        DINO(nn.Sequential(nn.Flatten(), nn.LayerNorm(16)), head=nn.Linear(16, 4))


@pytest.mark.parametrize(
    "settings",
    [{"views": 1}, {"views": 2.0}, {"centring": 1.5}, {"student_temperature": 0}, {"teacher_temperature": -1}],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"^{next(iter(settings))} is"):
        DINO(example_models()["layer"], **settings)
