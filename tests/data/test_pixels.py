"""Shapes, values and channels of arrays of images."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from haptera.data.pixels import Layout, check_channels, check_values, read_layout, to_images
from haptera.errors import HapteraError

sides = st.integers(4, 9) | st.just(2)


@given(st.integers(1, 4), sides, sides)
def test_three_axes_are_grey_images(samples: int, height: int, width: int) -> None:
    assert read_layout((samples, height, width), "x") == Layout("NHW", 1, height, width)


@given(st.integers(1, 4), sides, sides, st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_the_same_images_are_read_whichever_end_the_channels_are_at(
    samples: int, height: int, width: int, channels: int, seed: int
) -> None:
    last = np.random.default_rng(seed).integers(0, 256, (samples, height, width, channels), dtype=np.uint8)
    first = last.transpose(0, 3, 1, 2)
    one = to_images(last, read_layout(last.shape, "x"), channels)
    other = to_images(first, read_layout(first.shape, "x"), channels)
    assert one.shape == (samples, channels, height, width)
    assert one.is_contiguous()
    assert one.dtype == torch.float32
    assert torch.equal(one, other)
    assert np.array_equal(one.numpy(), first.astype(np.float32) / np.float32(255))


@pytest.mark.parametrize("shape", [(5, 3, 8, 3), (5, 1, 8, 3), (2, 1, 1, 1), (2, 3, 3, 3)])
def test_a_shape_that_reads_in_two_ways_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(HapteraError, match="first or last; save them with the channels at the other end"):
        read_layout(shape, "x.npz")


def test_the_advice_for_an_ambiguous_shape_helps() -> None:
    assert read_layout((5, 8, 3, 3), "x") == Layout("NHWC", 3, 8, 3)
    assert read_layout((5, 3, 3, 8), "x") == Layout("NCHW", 3, 3, 8)


@pytest.mark.parametrize("shape", [(), (5,), (5, 8), (5, 8, 8, 4), (5, 4, 8, 8), (5, 2, 8, 8, 3)])
def test_other_shapes_are_refused_with_those_that_can_be_read(shape: tuple[int, ...]) -> None:
    with pytest.raises(HapteraError, match=r"x\.npz: images have shape .*\(N, H, W, 1 or 3\)"):
        read_layout(shape, "x.npz")


def test_no_images_and_no_pixels_are_refused() -> None:
    with pytest.raises(HapteraError, match=r"x\.npz holds no images: the shape is \(0, 8, 8\)"):
        read_layout((0, 8, 8), "x.npz")
    with pytest.raises(HapteraError, match="images without pixels"):
        read_layout((3, 0, 8), "x.npz")


@pytest.mark.parametrize("dtype", [bool, np.int16, np.int64, np.uint16, np.complex64])
def test_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(HapteraError, match=r"x\.npz: images are .*uint8 \(0 to 255\) or floats"):
        check_values(np.ones((2, 4, 4), dtype), "x.npz")


def test_pixels_that_are_not_finite_are_counted_and_placed() -> None:
    images = np.zeros((3000, 2, 2), np.float32)
    images[2500, 0, 0] = np.inf
    images[1700, 1] = np.nan
    with pytest.raises(HapteraError, match="3 pixels are NaN or infinite, the first in row 1700"):
        check_values(images, "x")


def test_floats_outside_the_unit_interval_are_refused_with_advice() -> None:
    with pytest.raises(HapteraError, match=r"reach 255, floats must lie within \[0, 1\]; divide them by 255"):
        check_values(np.full((2, 4, 4), 255.0), "x")
    with pytest.raises(HapteraError, match=r"go down to -0\.5.*undo the normalisation"):
        check_values(np.full((2, 4, 4), -0.5, np.float16), "x")


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", np.longdouble])
def test_any_float_becomes_float32(dtype: str) -> None:
    images = np.linspace(0, 1, 32).reshape(2, 4, 4).astype(dtype)
    check_values(images, "x")
    result = to_images(images, read_layout(images.shape, "x"), 1)
    assert result.dtype == torch.float32
    assert np.allclose(result[:, 0].numpy(), images.astype(np.float64), atol=1e-3)
    assert result.min() == 0
    assert result.max() == 1


def test_grey_repeats_as_colour() -> None:
    images = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    colour = to_images(images, read_layout(images.shape, "x"), 3)
    assert colour.is_contiguous()
    assert torch.equal(colour, to_images(images, read_layout(images.shape, "x"), 1).repeat(1, 3, 1, 1))


def test_colour_becomes_the_grey_of_pillow_exactly() -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    grey = to_images(images, read_layout(images.shape, "x"), 1)
    expected = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in images])
    assert np.array_equal((grey[:, 0] * 255).round().numpy(), expected)
    floats = to_images(images.astype(np.float32) / 255, read_layout(images.shape, "x"), 1)
    assert (floats - grey).abs().max() <= 0.5 / 255 + 1e-4


def test_white_stays_white_in_grey() -> None:
    images = np.ones((1, 4, 4, 3), np.float32)
    assert to_images(images, read_layout(images.shape, "x"), 1).max() == 1


@pytest.mark.parametrize("channels", [0, 2, 4, "3", True])
def test_other_channels_are_refused(channels: int) -> None:
    with pytest.raises(HapteraError, match=r"channels is .*1 \(grey\), 3 \(colour\)"):
        check_channels(channels)
