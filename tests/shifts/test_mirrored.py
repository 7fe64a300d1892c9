"""Margins in which images are mirrored, also images smaller than the margin."""

import numpy as np
import pytest
import torch

from haptera.shifts import ElasticTransform, GlassBlur
from haptera.shifts.mirrored import mirror


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (2, 2), (3, 1), (2, 9), (8, 9)], ids=str)
@pytest.mark.parametrize("margins", [(0, 0, 0, 0), (1, 1, 1, 1), (4, 3, 0, 7), (11, 12, 13, 2)], ids=str)
def test_margins_are_those_of_numpy(size, margins):
    images = torch.rand(2, 3, *size)
    left, right, top, bottom = margins
    wanted = np.pad(images.numpy(), ((0, 0), (0, 0), (top, bottom), (left, right)), mode="reflect")
    assert np.array_equal(mirror(images, margins).numpy(), wanted)


def test_glass_without_a_pixel_far_from_the_edges_only_blurs():
    flat = torch.full((2, 3, 1, 300), 0.25)
    assert torch.allclose(GlassBlur(3)(flat), flat)
    assert GlassBlur(5, table="cifar")(torch.rand(2, 1, 2, 2)).shape == (2, 1, 2, 2)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 40), (12, 2)], ids=str)
def test_a_weak_elastic_transform_hardly_moves_narrow_images(size):
    height, width = size
    ramp = torch.linspace(0.2, 0.8, height)[:, None] + torch.linspace(0, 0.2, width)
    images = ramp.expand(2, 3, height, width).contiguous()
    assert torch.allclose(ElasticTransform(0.01)(images), images, atol=0.02)
    whole = (images * 255).round().to(torch.uint8)
    assert (ElasticTransform(0.01)(whole).int() - whole.int()).abs().max() <= 6
