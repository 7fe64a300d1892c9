"""Corrected BatchNorm against a loop over images, the reservoir against its stated balance, steps as by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import NOTE
from haptera.adapters.generator import generator_of
from haptera.adapters.note import InstanceBlend, place
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models
from haptera.testing.networks import images, plain


def corrected(image, mean, var, k, eps):
    """Equations (3) to (6) of the paper, one channel after the other."""
    out = torch.empty_like(image)
    for c, values in enumerate(image):
        size = values.numel()
        m, s = values.mean(), values.var()
        widths = k * math.sqrt((var[c] + eps) / size), k * float(var[c] + eps) * math.sqrt(2 / (size - 1))
        moved = []
        for own, base, width in ((m, mean[c], widths[0]), (s, var[c], widths[1])):
            away = float(own - base)
            moved.append(float(base) + (math.copysign(max(abs(away) - width, 0.0), away)))
        out[c] = (values - moved[0]) / math.sqrt(max(moved[1], 0.0) + eps)
    return out


def norm(channels=3):
    generator = torch.Generator().manual_seed(0)
    made = nn.BatchNorm2d(channels)
    for tensor, low in ((made.running_mean, -1), (made.running_var, 0.5), (made.weight, 0.5), (made.bias, -1)):
        tensor.data.uniform_(low, low + 2, generator=generator)
    return made.eval()


def draw(n=6, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, 4, 5, generator=generator) * torch.rand(n, 3, 1, 1, generator=generator) * 3


@pytest.mark.parametrize("k", [0.0, 1.0, 4.0])
def test_images_are_corrected_as_by_hand_with_running_and_with_batch_statistics(k):
    layer, inputs = norm(), draw()
    blend = InstanceBlend(layer, k, share=0.2)
    own = inputs.mean((0, 2, 3)), inputs.var((0, 2, 3), correction=0)
    with torch.no_grad():
        for use, mean, var in (("last", layer.running_mean, layer.running_var), ("running", *own)):
            found = blend.normalise(inputs, layer.weight, layer.bias, layer.eps, use)
            expected = torch.stack([corrected(image, mean, var, k, layer.eps) for image in inputs])
            scaled = expected * layer.weight[:, None, None] + layer.bias[:, None, None]
            assert torch.allclose(found, scaled, atol=1e-4)
    assert torch.allclose(blend.mean, 0.8 * layer.running_mean + 0.2 * own[0], atol=1e-6)
    assert torch.allclose(blend.var, 0.8 * layer.running_var + 0.2 * own[1], atol=1e-6)


def test_wide_tolerance_is_plain_batchnorm_in_evaluation_and_in_train_mode():
    layer, inputs = norm(), draw()
    blend = InstanceBlend(layer, math.inf, share=0.0)
    weight, bias = layer.weight, layer.bias
    with torch.no_grad():
        assert torch.allclose(blend.normalise(inputs, weight, bias, 1e-5, "last"), layer(inputs), atol=1e-5)
        trained = F.batch_norm(inputs, None, None, weight, bias, True)
        assert torch.allclose(blend.normalise(inputs, weight, bias, 1e-5, "running"), trained, atol=1e-5)


def test_the_gradient_through_corrected_layers_is_that_of_finite_differences():
    layer = norm().double()
    blend = InstanceBlend(layer, 0.7, share=0.0)
    inputs = draw(3).double().requires_grad_()
    weight, bias = layer.weight.detach().requires_grad_(), layer.bias.detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda *each: blend.normalise(*each, 1e-5, "running"), (inputs, weight, bias))


def test_layers_with_one_value_per_channel_are_not_corrected():
    layer = nn.BatchNorm1d(3).eval()
    layer.running_mean.fill_(0.5)
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    found = InstanceBlend(layer, 0.0, 0.1).normalise(inputs, layer.weight, layer.bias, layer.eps, "last")
    assert torch.allclose(found, layer(inputs), atol=1e-6)


def fill(stream, capacity, seed=0, classes=4):
    """The bank after a stream of labels: the classes there, and the positions in the stream."""
    generator, counts = generator_of(seed), torch.zeros(classes, dtype=torch.int64)
    labels, positions = torch.zeros(0, dtype=torch.int64), []
    for position, label in enumerate(stream):
        counts[label] += 1
        at = place(labels, counts, label, capacity, generator)
        if at == len(labels):
            labels = torch.cat([labels, torch.tensor([label])])
            positions.append(position)
        elif at is not None:
            labels[at], positions[at] = label, position
    return labels, positions


@pytest.mark.parametrize("stream", [[0] * 50 + [1] * 50 + [2] * 50 + [3] * 50, [0] * 180 + [1, 2, 3] * 10])
def test_the_bank_is_balanced_over_classes_however_they_come(stream):
    held = torch.bincount(fill(stream, 12)[0], minlength=4)
    assert held.sum() == 12
    assert held.max() - held.min() <= 1


def test_a_rare_class_keeps_all_its_images():
    labels, positions = fill([0] * 60 + [1, 1] + [0] * 60 + [2] * 60, 9)
    assert {60, 61} <= set(positions)
    assert torch.bincount(labels).max() <= 4


def test_within_a_class_every_image_is_as_likely_to_be_kept():
    n, capacity, seeds = 12, 3, 300
    kept = torch.zeros(n)
    for seed in range(seeds):
        kept[fill([2] * n, capacity, seed)[1]] += 1
    share, error = kept / seeds, math.sqrt(0.25 * 0.75 / seeds)
    assert float(kept.sum()) == capacity * seeds
    assert float((share - capacity / n).abs().max()) < 4 * error


def test_steps_go_as_by_hand():
    model, batches = example_models()["layer"], example_batches()
    adapter = NOTE(model, lr=0.01, capacity=100, frequency=6)
    student = example_models()["layer"]
    chosen = [student.get_parameter(name) for name in adapter.adapted]
    optimiser, seen = torch.optim.Adam(chosen, 0.01), []
    for inputs in batches:
        with torch.no_grad():
            expected = student(inputs)
        assert torch.allclose(adapter(inputs), expected, atol=1e-4)
        seen.append(inputs)
        p = student(torch.cat(seen)).softmax(1)
        loss = -(p * p.log()).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        assert adapter.record["loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert adapter.record["change"] > 0.01


def test_predictions_do_not_depend_on_how_the_stream_is_cut_into_batches():
    whole = torch.cat(images(4))
    runs = []
    for size in (24, 7, 1):
        adapter = NOTE(plain(), lr=0.01, capacity=6, frequency=5)
        runs.append(torch.cat([adapter(part) for part in whole.split(size)]))
    assert torch.allclose(runs[0], runs[1], atol=1e-4)
    assert torch.allclose(runs[0], runs[2], atol=1e-4)


def test_without_correction_it_learns_all_the_same():
    adapter = NOTE(plain(), lr=0.01, capacity=6, frequency=6, width=math.inf)
    adapter(images()[0])
    assert adapter.record["change"] > 0
    assert "skipped" not in adapter.record


def test_images_of_another_shape_are_refused_by_name():
    adapter = NOTE(plain(), capacity=8)
    adapter(images()[0])
    with pytest.raises(HapteraError, match="the bank holds one shape only"):
        adapter(torch.rand(2, 1, 20, 20))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"capacity": 0}, "capacity is 0; a number of images"),
        ({"frequency": 2.5}, "frequency is 2.5"),
        ({"width": -1}, "width is -1"),
        ({"share": 2}, "share is 2"),
        ({"window": 3}, "window"),
    ],
)
def test_wrong_settings_are_refused(settings, why):
    with pytest.raises(HapteraError, match=why):
        NOTE(plain(), **settings)
