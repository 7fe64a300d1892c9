"""Gradual adaptation step by step, with source data and without."""

import copy
import math

import pytest
import torch
from torch.nn import functional as F

from haptera.adapters import GTTA
from haptera.errors import HapteraError
from haptera.testing.networks import images, plain

SGD = {"optimiser": "sgd", "momentum": 0.9}


def sure_network():
    """A network whose confidence differs between images."""
    model = plain()
    with torch.no_grad():
        model[-1].weight.mul_(12)
    return model


def labelled():
    generator = torch.Generator().manual_seed(5)
    return [(torch.rand(n, 1, 16, 16, generator=generator), torch.arange(n) % 10) for n in (8, 4)]


def by_hand(model, batches, source, mix, lr, inertia):
    student = copy.deepcopy(model).train()
    optimiser = torch.optim.SGD(student.parameters(), lr, momentum=0.9)
    average, predictions, kept, steps, before = 0.9, [], [], 0, None
    for step, inputs in enumerate(batches):
        with torch.no_grad():
            p = student(inputs).softmax(1)
        average = inertia * average + (1 - inertia) * float(p.max(1).values.mean())
        sure = [i for i in range(len(inputs)) if float(p[i].max()) >= math.sqrt(average)]
        if (some := source[step % len(source)] if source else before) is not None:
            theirs, targets = some[0][: len(inputs)], some[1][: len(inputs)]
            with torch.no_grad():
                q = student(theirs).softmax(1)
            partners = [max(range(len(inputs)), key=lambda j, row=row: float((row * p[j]).sum())) for row in q]
            mixed = torch.stack([mix * inputs[j] + (1 - mix) * x for x, j in zip(theirs, partners, strict=True)])
            optimiser.zero_grad()
            F.cross_entropy(student(mixed), targets).backward()
            optimiser.step()
            steps += 1
        logits = student(inputs)
        predictions.append(logits.detach().clone())
        if sure:
            optimiser.zero_grad()
            F.cross_entropy(logits[sure], p.argmax(1)[sure]).backward()
            optimiser.step()
            before = inputs[sure], p.argmax(1)[sure]
            steps += 1
        kept.append(len(sure) / len(inputs))
    return predictions, kept, student, steps


@pytest.mark.parametrize("with_source", [True, False])
def test_five_steps_go_as_by_hand(with_source):
    model, batches, source = sure_network(), images(5), labelled() if with_source else None
    settings = {"mix": 0.4, "lr": 0.02, "inertia": 0.5}
    predictions, kept, student, steps = by_hand(model, batches, source, **settings)
    assert 0 < sum(kept) < len(kept)
    assert steps > 5
    adapter = GTTA(model, source=source, prior=0, **settings, **SGD)
    for inputs, expected, share in zip(batches, predictions, kept, strict=True):
        assert torch.allclose(adapter(inputs), expected, atol=2e-3)
        assert adapter.record["kept"] == pytest.approx(share)
    for one, two in zip(adapter.model.parameters(), student.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-3)


def test_unsure_batches_without_source_data_teach_nothing():
    adapter = GTTA(plain(), lr=0.1)
    adapter(images()[0])
    assert adapter.record["kept"] == 0
    assert adapter.record["change"] == 0
    assert "loss" not in adapter.record


def test_source_data_goes_on_where_a_saved_state_was(tmp_path):
    one, two = (GTTA(plain(), lr=0.01, source=labelled()) for _ in range(2))
    one(images()[0])
    one.save_state(tmp_path / "state")
    two.load_state(tmp_path / "state")
    assert torch.equal(one(images()[1]), two(images()[1]))
    assert two.memory["replayed"] == 2


def test_source_images_of_another_shape_are_refused():
    adapter = GTTA(plain(), source=[(torch.rand(2, 1, 20, 20), torch.arange(2))])
    with pytest.raises(HapteraError, match=r"source has images of shape \(1, 20, 20\), the stream of \(1, 16, 16\)"):
        adapter(images()[0])


@pytest.mark.parametrize("settings", [{"mix": 1.5}, {"inertia": -1}, {"source": []}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"^{next(iter(settings))} is"):
        GTTA(plain(), **settings)
