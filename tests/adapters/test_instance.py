"""Normalisation of each image by statistics of its own, against torch's operations one by one."""

import pytest
import torch

from haptera.adapters.instance import normalise_each

SHAPES = [(4, 3), (4, 3, 7), (4, 3, 5, 6), (4, 3, 2, 3, 4)]


def halfway(mean, var):
    """Half of the way to statistics that all images share."""
    return 0.5 * mean + 0.5 * mean.mean(0), 0.5 * var + 0.5 * (var.mean(0) + mean.var(0, correction=0))


def slow(inputs, weight, bias, eps, rule):
    dims = list(range(2, inputs.ndim))
    mean = inputs.mean(dims) if dims else inputs
    var = inputs.var(dims, correction=0) if dims else torch.zeros_like(inputs)
    shape = [*inputs.shape[:2], *[1] * len(dims)]
    mean, var = (value.reshape(shape) for value in rule(mean, var))
    out = (inputs - mean) / (var + eps).sqrt()
    channels = [1, -1, *[1] * len(dims)]
    return out if weight is None else out * weight.view(channels) + bias.view(channels)


def example(shape, last, dtype=torch.float64):
    torch.manual_seed(0)
    inputs = 3 + torch.randn(shape, dtype=dtype)
    if last and len(shape) == 4:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    return inputs, torch.rand(3, dtype=dtype) + 0.5, torch.rand(3, dtype=dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_outputs_and_gradients_are_those_of_the_operations_one_by_one(shape, last, affine):
    inputs, *both = example(shape, last)
    both = both if affine else [None, None]
    leaves = [value.requires_grad_() for value in (inputs, *both) if value is not None]
    theirs = slow(inputs, *both, 1e-3, halfway)
    ours = normalise_each(inputs, *both, 1e-3, inputs.dtype, halfway)
    with torch.no_grad():
        without = normalise_each(inputs, *both, 1e-3, inputs.dtype, halfway)
    assert torch.allclose(ours, theirs)
    assert torch.allclose(without, theirs)
    assert ours.stride() == inputs.stride()
    given = torch.randn(shape, dtype=inputs.dtype)
    found, expected = (torch.autograd.grad(out, leaves, given, retain_graph=True) for out in (ours, theirs))
    again = torch.autograd.grad(ours, leaves, given)
    for one, two, three in zip(found, expected, again, strict=True):
        assert torch.allclose(one, two)
        assert torch.equal(one, three)


def test_gradients_are_those_of_finite_differences():
    inputs, weight, bias = example((4, 3, 2, 3), True)
    leaves = [value.requires_grad_() for value in (inputs, weight, bias)]
    assert torch.autograd.gradcheck(lambda *values: normalise_each(*values, 1e-3, inputs.dtype, halfway), leaves)


def test_a_rule_is_asked_once_and_images_of_half_precision_stay_so():
    inputs, weight, bias = example((4, 3, 5, 6), False, torch.float32)
    asked = []

    def rule(mean, var):
        asked.append(mean.dtype)
        return mean, var

    out = normalise_each(inputs.bfloat16(), weight.requires_grad_(), bias, 1e-3, torch.float32, rule)
    out.float().square().sum().backward()
    assert (out.dtype, asked, weight.grad.dtype) == (torch.bfloat16, [torch.float32], torch.float32)
    assert torch.allclose(out.float(), slow(inputs, weight, bias, 1e-3, rule), atol=0.05)
