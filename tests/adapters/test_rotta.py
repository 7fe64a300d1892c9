"""RoTTA: the rules of the bank against a slow version with lists, an update against one by hand."""

import copy
from math import exp, log

import pytest
import torch
from torch import nn

from haptera.adapters import Augment, NoAdaptation, RoTTA
from haptera.adapters.generator import generator_of
from haptera.adapters.norm import blends_of
from haptera.adapters.rotta import place
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


class SlowBank:
    """A list for each class, as the paper describes it."""

    def __init__(self, capacity, classes, timeliness=1.0, uncertainty=1.0):
        self.capacity, self.classes, self.weights = capacity, classes, (timeliness, uncertainty)
        self.lists = [[] for _ in range(classes)]

    def badness(self, item):
        old, unsure = self.weights
        return old / (1 + exp(-item["age"] / self.capacity)) + unsure * item["entropy"] / log(self.classes)

    def offer(self, name, label, entropy):
        new = {"name": name, "entropy": entropy, "age": 0}
        counts = [len(items) for items in self.lists]
        rivals = [label] if counts[label] >= self.capacity / self.classes else None
        if rivals is None and sum(counts) >= self.capacity:
            rivals = [c for c in range(self.classes) if counts[c] == max(counts)]
        if rivals is None:
            self.lists[label].append(new)
        else:
            worst, among = max(((item, c) for c in rivals for item in self.lists[c]), key=lambda x: self.badness(x[0]))
            if self.badness(worst) > self.badness(new):
                self.lists[among].remove(worst)
                self.lists[label].append(new)
        for items in self.lists:
            for item in items:
                item["age"] += 1

    def content(self):
        return {item["name"]: (label, item["age"]) for label, items in enumerate(self.lists) for item in items}


def flat_model(classes=4):
    """One linear layer behind a LayerNorm; images are 1 x 2 x 2."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, classes))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("capacity", "classes"), [(6, 3), (5, 3), (4, 8), (1, 2)])
def test_the_bank_holds_what_a_slow_one_holds(capacity, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    adapter = RoTTA(flat_model(classes), capacity=capacity, frequency=1000, timeliness=1.5, uncertainty=0.7)
    slow = SlowBank(capacity, classes, 1.5, 0.7)
    favourite = torch.softmax(2 * torch.randn(classes, generator=generator), 0)
    for name in range(60):
        label = int(torch.multinomial(favourite, 1, generator=generator))
        entropy = float(torch.rand(1, generator=generator)) * log(classes)
        adapter._offer(torch.full((1, 2, 2), float(name)), label, entropy, classes)
        slow.offer(name, label, entropy)
        memory = adapter.memory
        names = memory["images"][: len(memory["labels"]), 0, 0, 0].long().tolist()
        found = dict(zip(names, zip(memory["labels"].tolist(), memory["ages"].tolist(), strict=True), strict=True))
        assert found == slow.content()
        assert len(memory["labels"]) <= capacity


def test_a_run_of_one_class_does_not_fill_the_bank():
    adapter = RoTTA(flat_model(), capacity=8, frequency=1000)
    for label in [0] * 20 + [1] * 3:
        adapter._offer(torch.rand(1, 2, 2), label, 0.1, 4)
    assert torch.bincount(adapter.memory["labels"]).tolist() == [2, 2]


def test_an_unsure_image_does_not_replace_a_sure_one_and_nan_goes_nowhere():
    labels, scores = torch.tensor([0, 0]), torch.tensor([0.6, 0.5])
    assert place(labels, scores, 0, 0.9, capacity=4, classes=2) is None
    assert place(labels, scores, 0, 0.55, capacity=4, classes=2) == 0
    assert place(labels, scores, 1, float("nan"), capacity=4, classes=2) is None


def test_an_update_goes_as_by_hand():
    model, inputs = flat_model(), torch.rand(4, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    adapter = RoTTA(model, lr=0.05, capacity=64, frequency=4, decay=0.8, seed=5, parameters="all")
    outputs = adapter(inputs)
    assert torch.allclose(outputs, model(inputs), atol=1e-5)

    student = copy.deepcopy(model)
    optimiser = torch.optim.Adam(student.parameters(), 0.05)
    with torch.no_grad():
        target = model(inputs).softmax(1)
    view = Augment()(inputs, generator_of(5))
    ages = torch.tensor([4.0, 3.0, 2.0, 1.0]) / 64
    loss = (-(target * student(view).log_softmax(1)).sum(1) * torch.exp(-ages) / (1 + torch.exp(-ages))).mean()
    loss.backward()
    optimiser.step()
    assert adapter.record["loss"] == pytest.approx(loss.item(), abs=1e-5)
    for found, expected, source, teacher in zip(
        adapter.model.parameters(), student.parameters(), model.parameters(), adapter.teacher.parameters(), strict=True
    ):
        assert torch.allclose(found, expected, atol=1e-4)
        assert torch.allclose(teacher, 0.8 * source + 0.2 * expected, atol=1e-4)


def test_updates_come_after_every_so_many_images_within_and_across_batches(monkeypatch):
    adapter, losses, updates = RoTTA(flat_model(), lr=0.1, capacity=8, frequency=5), [], []
    monkeypatch.setattr(adapter, "learn", losses.append)
    for size in (3, 1, 1, 11, 4):
        adapter(torch.rand(size, 1, 2, 2))
        updates.append(len(losses))
    assert updates == [0, 0, 1, 3, 4]
    assert "loss" in adapter.record
    assert 0 <= adapter.record["kept"] <= 1


def test_statistics_move_towards_the_bank_at_an_update_and_only_then():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(2)
    norm.running_mean.copy_(torch.tensor([0.5, -0.5]))
    model = nn.Sequential(norm, nn.Flatten(), nn.Linear(8, 3)).eval()
    inputs = torch.rand(6, 2, 2, 2)
    adapter = RoTTA(model, capacity=64, frequency=6, share=0.2)
    (teacher,), (student,) = blends_of(adapter.teacher), blends_of(adapter.model)
    before = [blend.mean.clone() for blend in (teacher, student)]
    adapter(inputs[:5])
    assert torch.equal(teacher.mean, before[0])
    adapter(inputs[5:])
    expected = 0.8 * norm.running_mean + 0.2 * inputs.mean((0, 2, 3))
    spread = 0.8 * norm.running_var + 0.2 * inputs.var((0, 2, 3), correction=0)
    assert torch.allclose(teacher.mean, expected, atol=1e-5)
    assert torch.allclose(teacher.var, spread, atol=1e-5)
    view = Augment()(inputs, generator_of(0))
    assert torch.allclose(student.mean, 0.8 * norm.running_mean + 0.2 * view.mean((0, 2, 3)), atol=1e-5)


def test_predictions_after_the_update_are_those_of_the_new_teacher():
    settings = {"lr": 0.1, "capacity": 8, "frequency": 6, "decay": 0.2}
    model, inputs = example_models()["batch"], example_batches()[0]
    after, before = RoTTA(model, predictions="after", **settings), RoTTA(model, **settings)
    outputs = after(inputs)
    assert torch.allclose(before(inputs), NoAdaptation(model)(inputs), atol=1e-5)
    assert torch.equal(outputs, before.predict(before._arrange(inputs)))


def test_another_shape_of_images_is_refused():
    net = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 3))
    adapter = RoTTA(net)
    adapter(torch.rand(2, 1, 4, 4))
    with pytest.raises(HapteraError, match=r"shape \(1, 6, 6\) came after some of \(1, 4, 4\)"):
        adapter(torch.rand(2, 1, 6, 6))


def test_the_parent_moves_statistics_or_is_the_model_as_it_is():
    models = example_models()
    assert RoTTA(models["batch"]).parent_label == "rotta:lr=0"
    assert isinstance(RoTTA(models["layer"]).parent(models["layer"]), NoAdaptation)


@pytest.mark.parametrize(
    "settings", [{"capacity": 0}, {"frequency": 1.5}, {"share": 2}, {"timeliness": -1}, {"uncertainty": float("nan")}]
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=next(iter(settings))):
        RoTTA(example_models()["layer"], **settings)
