"""Ensemble: weights after every update against the average by hand, also of a teacher and with several batches."""

from functools import partial

import pytest
import torch
from torch import nn

from haptera.adapters import BatchNorm, CoTTA, Ensemble, PeriodicReset, PriorCorrection, Tent
from haptera.errors import HapteraError


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


def batches(n):
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(6, 5, generator=generator) for _ in range(n)]


def weights(adapter):
    return torch.cat([value.detach().flatten() for value in adapter.innermost.masters.values])


def test_weights_are_averaged_with_the_sources_after_each_step():
    model, inputs = network(), batches(1)[0]
    plain, ensemble = Tent(model, lr=0.1), Ensemble(Tent, momentum=0.7)(model, lr=0.1)
    first = weights(ensemble).clone()
    assert torch.equal(plain(inputs), ensemble(inputs))
    learnt = torch.cat([value.detach().flatten() for value in plain.masters.values])
    assert torch.allclose(weights(ensemble), 0.7 * learnt + 0.3 * first, atol=1e-7)
    assert not torch.equal(learnt, first)


def test_with_several_batches_per_update_the_average_is_taken_once_for_each_update():
    adapter = Ensemble(partial(Tent, lr=0.1, accumulate=2), momentum=0.0)(network())
    first = weights(adapter).clone()
    with torch.no_grad():
        adapter.innermost.masters.values[0].add_(1.0)
    moved = weights(adapter).clone()
    adapter(batches(2)[0])
    assert torch.equal(weights(adapter), moved)
    adapter(batches(2)[1])
    assert torch.equal(weights(adapter), first)


def test_a_teacher_follows_the_averaged_student():
    adapter = Ensemble(partial(CoTTA, lr=0.1, augmentations=0, restore=0.0, decay=0.0), momentum=0.5)(network())
    for inputs in batches(3):
        adapter(inputs)
    teacher = torch.cat([value.detach().flatten() for value in adapter.innermost.taught.values])
    assert torch.equal(teacher, weights(adapter))


def test_it_reaches_a_learner_inside_other_wrappers_and_works_in_half_precision():
    adapter = Ensemble(PriorCorrection(PeriodicReset(Tent, every=2)), momentum=0.9)(network().half(), lr=0.1)
    for inputs in batches(5):
        assert torch.isfinite(adapter(inputs.half())).all()
    assert 0 < adapter.innermost.change() < 1


def test_an_adapter_that_does_not_learn_is_refused():
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    with pytest.raises(HapteraError, match=r"WeightEnsemble takes part in the updates .*; BatchNorm does not learn"):
        Ensemble(BatchNorm)(model)
