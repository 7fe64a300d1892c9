"""Shifts against their definitions and the constants of ImageNet-C."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter as reference_filter

from haptera.errors import HapteraError
from haptera.shifts import Contrast, GaussianBlur, GaussianNoise
from haptera.shifts.blur import gaussian_filter


@pytest.mark.parametrize(("severity", "sigma"), [(1, 0.08), (2, 0.12), (3, 0.18), (4, 0.26), (5, 0.38), (2.5, 0.15)])
def test_noise_has_the_published_width(severity, sigma):
    grey = torch.full((64, 3, 32, 32), 0.5)
    noise = (GaussianNoise(severity)(grey, seed=1) - 0.5).double()
    inside = noise.abs() < 0.5 - 1e-6  # clamped values tell nothing about the width
    expected = sigma * 1.0
    from scipy.stats import truncnorm

    width = truncnorm(-0.5 / expected, 0.5 / expected, scale=expected).std()
    assert abs(float(noise[inside].std()) - width) < 0.005 * width + 2e-4


@pytest.mark.parametrize(("severity", "factor"), [(1, 0.4), (2, 0.3), (3, 0.2), (4, 0.1), (5, 0.05), (0.5, 0.7)])
def test_contrast_follows_its_formula(severity, factor):
    images = torch.rand(3, 3, 16, 20, generator=torch.Generator().manual_seed(2))
    mean = images.mean((2, 3), keepdim=True)
    expected = ((images - mean) * factor + mean).clamp(0, 1)
    assert torch.allclose(Contrast(severity)(images), expected, atol=1e-6)


@pytest.mark.parametrize(("severity", "sigma"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6)])
def test_blur_equals_scipys_filter_at_224_pixels(severity, sigma):
    image = torch.rand(1, 1, 224, 224, generator=torch.Generator().manual_seed(3))
    expected = reference_filter(image[0, 0].double().numpy(), sigma, mode="nearest")
    assert np.allclose(GaussianBlur(severity)(image)[0, 0].numpy(), expected, atol=2e-6)


def test_blur_width_scales_with_the_shorter_side():
    image = torch.rand(1, 1, 56, 80, generator=torch.Generator().manual_seed(4))
    expected = reference_filter(image[0, 0].double().numpy(), 6 * 56 / 224, mode="nearest")
    assert np.allclose(GaussianBlur(5)(image)[0, 0].numpy(), expected, atol=2e-6)


def test_filter_wider_than_the_image_still_keeps_a_constant():
    assert torch.allclose(gaussian_filter(torch.full((1, 1, 8, 8), 0.3), 20.0), torch.tensor(0.3), atol=1e-6)


def test_constants_meet_their_knots_and_the_middle():
    assert [GaussianBlur(s).constants() for s in range(6)] == [(0,), (1,), (2,), (3,), (4,), (6,)]
    assert GaussianBlur(4.5).constants() == (5,)


def test_a_second_table_goes_by_name():
    assert GaussianNoise(5, table="cifar").constants() == (0.10,)
    with pytest.raises(HapteraError, match="unknown table of gaussian_noise 'cifra'; did you mean 'cifar'"):
        GaussianNoise(5, table="cifra")
