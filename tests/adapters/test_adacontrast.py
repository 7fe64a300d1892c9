"""Contrastive adaptation step by step, votes of neighbours, and what bank and queue hold."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import AdaContrast, Augment
from haptera.adapters.adacontrast import WEAK, vote
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.networks import images, plain

LR, DECAY, TEMPERATURE = 0.05, 0.6, 0.3


def cosine(one, two):
    return F.cosine_similarity(one, two, dim=0)


def by_hand(model, batches, neighbours, places, patience):
    """Predictions after each update, losses, and both networks; batch statistics are those of train mode."""
    student, teacher = copy.deepcopy(model).train(), copy.deepcopy(model).train()
    optimiser = torch.optim.SGD(student.parameters(), LR, momentum=0.9, nesterov=True, weight_decay=1e-4)
    generator, queue, bank, predictions, losses = generator_of(2), [], [], [], []
    for inputs in batches:
        weak, first, second = WEAK(inputs, generator), Augment()(inputs, generator), Augment()(inputs, generator)
        with torch.no_grad():
            seen, said = student[:-1](weak), student(weak)
            kept, told, keys = teacher[:-1](weak), teacher(weak).softmax(1), teacher[:-1](second)
        labels = []
        for row, own in zip(seen, said, strict=True):
            nearest = sorted(bank, key=lambda entry: -float(cosine(row, entry[0])))[:neighbours]
            votes = sum(entry[1] for entry in nearest) if len(bank) >= patience else own
            labels.append(int(votes.argmax()))
        queries = student[:-1](first)
        logits = student[-1](queries)
        p = logits.softmax(1)
        loss = sum(-p[i, label].log() for i, label in enumerate(labels)) / len(labels)
        mean = p.mean(0)
        loss = loss + (mean * mean.log()).sum() + math.log(len(mean))
        for query, key, label in zip(queries, keys, labels, strict=True):
            own = torch.exp(cosine(query, key) / TEMPERATURE)
            rivals = [torch.exp(cosine(query, entry) / TEMPERATURE) for entry, other in queue if other != label]
            loss = loss - (own / (own + sum(rivals))).log() / len(labels)
        queue = [*queue, *zip(keys, labels, strict=True)][-places:]
        bank = [*bank, *zip(kept, told, strict=True)][-places:]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.lerp_(new, 1 - DECAY)
            predictions.append(student(inputs))
        losses.append(float(loss.detach()))
    return predictions, losses, student, teacher


def test_five_steps_go_as_by_hand():
    model, batches = plain(), images(5)
    settings = {"neighbours": 3, "places": 14, "patience": 10}
    predictions, losses, student, teacher = by_hand(model, batches, **settings)
    adapter = AdaContrast(model, LR, temperature=TEMPERATURE, decay=DECAY, prior=0, seed=2, **settings)
    for inputs, expected, loss in zip(batches, predictions, losses, strict=True):
        assert torch.allclose(adapter(inputs), expected, atol=1e-3)
        assert adapter.record["loss"] == pytest.approx(loss, rel=1e-3)
    for ours, theirs in ((adapter.model, student), (adapter.teacher, teacher)):
        for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(one, two, atol=1e-3)
    assert "refined" in adapter.record
    assert adapter.record["change"] > 0.05


def test_neighbours_vote_with_their_mean_prediction():
    bank = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [-1.0, 0.0]])
    probabilities = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    seen = torch.tensor([[5.0, 0.0], [-0.1, 3.0]])
    assert vote(seen, bank, probabilities, 1).tolist() == [0, 2]
    assert vote(seen[:1], bank, probabilities, 2).tolist() == [0]
    assert vote(seen[:1], bank, probabilities, 3).tolist() == [2]
    assert vote(seen[:1], bank, probabilities, 10).tolist() == [2]


def test_bank_and_queue_hold_the_newest_images_and_go_with_the_state(tmp_path):
    one, two = (AdaContrast(plain(), lr=0.01, places=8, patience=4) for _ in range(2))
    for inputs in images(2):
        one(inputs)
    assert {len(one.memory[name]) for name in ("keys", "labels", "bank", "probabilities")} == {8}
    one.save_state(tmp_path / "state")
    two.load_state(tmp_path / "state")
    assert torch.equal(one(images()[0]), two(images()[0]))
    one.reset()
    assert one.memory["bank"] is None


def test_labels_are_the_students_own_until_the_bank_is_large_enough():
    adapter = AdaContrast(plain(), lr=0.01, patience=7)
    records = []
    for inputs in images(3):
        adapter(inputs)
        records.append("refined" in adapter.record)
    assert records == [False, False, True]


def test_the_student_predicts_and_is_released():
    model, inputs = plain(), images()[0]
    adapter = AdaContrast(model, lr=0.05, prior=float("inf"))
    for batch in images(2):
        adapter(batch)
    adapter.frozen = True
    with torch.no_grad():
        assert torch.allclose(adapter(inputs), adapter.model(inputs), atol=1e-5)
        assert torch.allclose(adapter(inputs), adapter.release()(inputs), atol=1e-5)
        assert not torch.allclose(adapter(inputs), adapter.teacher(inputs), atol=1e-3)


def test_models_without_a_last_layer_are_refused():
    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        AdaContrast(nn.Sequential(nn.Flatten(), nn.LayerNorm(256)))


@pytest.mark.parametrize(
    "settings", [{"neighbours": 0}, {"places": 1.5}, {"patience": 0}, {"contrast": -1}, {"temperature": 0}]
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"^{next(iter(settings))} is"):
        AdaContrast(plain(), **settings)
