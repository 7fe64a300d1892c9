"""Bytes in, bytes out; each kernel beside the same thing written slowly, and beside the library it stands for."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from torch.nn.functional import grid_sample

from haptera.catalog import entries, find
from haptera.shifts import (
    Brightness,
    Contrast,
    DefocusBlur,
    ElasticTransform,
    GaussianBlur,
    GaussianNoise,
    JpegCompression,
    Pixelate,
    SampleRandom,
)
from haptera.shifts import base as base_module
from haptera.shifts.blur import WIDEST, gaussian_bytes
from haptera.shifts.defocus import disk
from haptera.shifts.elastic import wrinkled_positions
from haptera.shifts.pixels import read_bytes

pytest.importorskip("numba")


def random_bytes(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def through_pillow(image, quality):
    stream = BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream))


@pytest.mark.parametrize(("height", "width"), [(32, 32), (17, 21), (8, 5), (5, 64), (2, 40), (50, 47)])
@pytest.mark.parametrize("severity", [1, 2.4, 5])
def test_jpeg_gives_the_very_bytes_of_pillow_at_any_size(height, width, severity):
    shift = JpegCompression(severity)
    quality = round(shift.constants()[0])
    colour, grey = random_bytes(2, height, width, 3), random_bytes(2, height, width, 1)
    assert (shift(colour) == [through_pillow(image, quality) for image in colour]).all()
    assert (shift(grey)[..., 0] == [through_pillow(image[..., 0], quality) for image in grey]).all()


@pytest.mark.long
def test_jpeg_of_smooth_images_is_that_of_pillow():
    smooth = np.asarray(Image.fromarray(random_bytes(5, 5, 3)).resize((70, 90)))
    assert (JpegCompression(1, table="cifar")(smooth[None])[0] == through_pillow(smooth, 80)).all()


def test_normal_blur_is_that_of_scipy():
    pixels = random_bytes(1, 40, 56, 3)
    sigma = 3 * 40 / 224
    wanted = gaussian_filter(pixels[0].astype(float), (sigma, sigma, 0), mode="nearest", truncate=4)
    assert np.abs(GaussianBlur(3)(pixels)[0] - wanted).max() <= 0.51


def test_normal_blur_keeps_every_shade_whatever_its_width():
    shades = np.arange(256, dtype=np.uint8)[:, None, None, None].repeat(6, 1).repeat(9, 2)
    for sigma in (0.05, 0.3, 0.5, 1.0, 3.0, 6.0, 20.0, WIDEST):  # of white, a sum too many would be black
        assert (gaussian_bytes(read_bytes(shades, "blur"), sigma).array == shades).all()


@pytest.mark.parametrize("sigma", [0.3, 0.7, 1.0, 3.0, 6.0, 20.0])
def test_normal_blur_of_black_and_white_is_that_of_scipy(sigma):
    pixels = random_bytes(1, 40, 56, 1) // 128 * 255
    wanted = gaussian_filter(pixels[0, ..., 0].astype(float), sigma, mode="nearest", truncate=4)
    assert np.abs(gaussian_bytes(read_bytes(pixels, "blur"), sigma).array[0, ..., 0] - wanted).max() <= 0.75


def test_disk_is_the_plain_sum_over_its_pixels():
    pixels = random_bytes(1, 64, 64, 1)
    kernel = disk(6 * 64 / 224).numpy()
    reach = len(kernel) // 2
    wide = np.pad(pixels[0, ..., 0].astype(float), reach, mode="reflect")
    wanted = sum(
        kernel[i, j] * wide[i : i + 64, j : j + 64] for i in range(2 * reach + 1) for j in range(2 * reach + 1)
    )  # softened by .14 pixels, which leaves nothing to a neighbour
    assert np.abs(DefocusBlur(3)(pixels)[0, ..., 0] - wanted).max() <= 0.51


def test_blocks_show_their_rounded_means():
    pixels = random_bytes(1, 32, 32, 3)
    blocks = Pixelate(2)(pixels)[0]
    for top, left in ((0, 0), (6, 30)):
        mean = pixels[0, top : top + 2, left : left + 2].astype(float).mean((0, 1))
        assert np.abs(blocks[top : top + 2, left : left + 2] - mean).max() <= 0.5


def test_contrast_of_one_image_by_hand():
    pixels = np.array([0, 100, 200, 60], np.uint8).reshape(1, 2, 2, 1)  # mean 90, factor .4
    assert Contrast(1)(pixels).ravel().tolist() == [54, 94, 134, 78]


def every_pair_of_value_and_colour():
    """Pixels (v, x, 0) in all three orders, `(3, 256, 256, 3)`; where x is larger, x is the value."""
    value, colour = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8), indexing="ij")
    pixels = np.stack([value, colour, np.zeros_like(value)], axis=-1)
    return np.stack([np.roll(pixels, turn, axis=-1) for turn in range(3)])


@pytest.mark.parametrize("severity", [0.01, 1, 2.3, 3, 5])
@pytest.mark.parametrize("table", ["imagenet", "cifar"])
def test_brightness_of_every_value_and_colour_is_within_one_grey_level(severity, table):
    shift, pixels = Brightness(severity, table=table), every_pair_of_value_and_colour()
    (added,) = shift.constants()
    value = pixels.max(axis=-1, keepdims=True).astype(float)
    wanted = np.where(value > 0, pixels * np.minimum(value + 255 * added, 255) / np.maximum(value, 1), 255 * added)
    found = shift(pixels).astype(float)
    assert np.abs(found - wanted).max() < 1
    assert np.abs(found - np.rint(wanted)).max() <= 1
    first = shift(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
    assert (first.transpose(0, 2, 3, 1) == found).all()


@pytest.mark.parametrize("sides", [(2, 1), (45, 46), (64, 64), (683, 3)])  # blocks are of 2,048
def test_brightness_of_a_pixel_depends_on_nothing_else(sides):
    pixels = random_bytes(3, *sides, 3)
    pixels[pixels < 20] = 0
    pixels[1, ::2] = 0
    found = Brightness(3)(pixels)
    alone = Brightness(3)(np.ascontiguousarray(pixels.reshape(-1, 3, 1, 1)))
    assert (found.reshape(-1, 3) == alone.reshape(-1, 3)).all()
    assert (found[1, ::2] == round(255 * 0.3)).all()


def test_kernels_draw_the_same_numbers_as_numpy():
    slow, fast = SampleRandom([3, 5, 8], seed=1), SampleRandom([3, 5, 8], seed=1).fast()
    for shape in ((), (7,), (2, 5)):
        assert torch.equal(slow.uniform(shape), fast.uniform(shape))
        assert torch.equal(slow.normal(shape), fast.normal(shape))


@pytest.mark.parametrize("name", [name for name in entries("shifts") if find("shifts", name).tables])
def test_layout_does_not_matter_and_comes_back(name):
    shift, first = find("shifts", name)(3), random_bytes(3, 3, 24, 30)
    last = np.ascontiguousarray(first.transpose(0, 2, 3, 1))
    ids = torch.tensor([4, 9, 2])
    one, two = shift(first, ids, 5), shift(last, ids, 5)
    assert one.shape == first.shape
    assert two.shape == last.shape
    assert np.abs(two.transpose(0, 3, 1, 2).astype(int) - one).max() <= 1
    assert (shift(torch.from_numpy(last), ids, 5).numpy() == two).all()


def test_channels_are_found_by_their_number():
    assert read_bytes(random_bytes(2, 8, 9, 3), "fog").shape == (2, 3, 8, 9)
    assert read_bytes(random_bytes(2, 3, 8, 9), "fog").shape == (2, 3, 8, 9)
    assert read_bytes(random_bytes(2, 8, 9, 1), "fog").last
    assert not read_bytes(random_bytes(2, 3, 8, 3), "fog").last


def test_views_and_severity_zero_give_fresh_bytes():
    pixels = random_bytes(2, 16, 16, 3)
    mirrored = pixels[:, :, ::-1]
    assert (GaussianNoise(2)(mirrored) == GaussianNoise(2)(np.ascontiguousarray(mirrored))).all()
    same = GaussianNoise(0)(pixels)
    assert (same == pixels).all()
    assert not np.shares_memory(same, pixels)
    assert GaussianNoise(2)(pixels[:0]).shape == (0, 16, 16, 3)


@pytest.mark.parametrize("name", ["fog", "frost", "gaussian_noise", "jpeg_compression", "snow", "zoom_blur"])
def test_without_numba_bytes_go_through_floats(name, monkeypatch):
    shift, pixels = find("shifts", name)(3), random_bytes(2, 24, 24, 3)
    by_kernels = shift(pixels).astype(int)
    monkeypatch.setattr(base_module, "compiles", lambda: False)
    monkeypatch.setattr(type(shift), "apply_bytes", None)
    assert np.abs(shift(pixels) - by_kernels).max() <= 1


@pytest.mark.parametrize("name", ["gaussian_noise", "glass_blur", "impulse_noise", "jpeg_compression", "spatter"])
def test_arrays_that_are_read_only_are_read_without_a_warning(name):
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    shift, ids = find("shifts", name)(3), torch.arange(2)
    wanted = shift(images, ids, 0)
    images.flags.writeable = False
    torch.set_warn_always(True)  # torch warns of such an array once in a process
    try:
        found = shift(images, ids, 0)
    finally:
        torch.set_warn_always(False)
    assert np.array_equal(found, wanted)
    assert found.flags.writeable


@pytest.mark.parametrize("channels", [1, 3])
def test_an_elastic_image_of_one_shade_keeps_it(channels):
    shades = np.arange(256, dtype=np.uint8)[:, None, None, None].repeat(9, 1).repeat(14, 2).repeat(channels, 3)
    assert (ElasticTransform(4)(shades) == shades).all()


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("sides", [(24, 40), (2, 30), (30, 2)])
def test_sampling_between_pixels_is_that_of_the_library(last, sides):
    from haptera.shifts.kernels.sampling import sample_moved

    height, width = sides
    pixels = read_bytes(random_bytes(2, *sides, 3) if last else random_bytes(2, 3, *sides), "elastic")
    places = torch.rand(2, 2, height, width, generator=torch.Generator().manual_seed(0)) * 4 - 2
    planes = pixels.planes()
    moved = np.empty_like(planes)
    sample_moved(planes, moved, pixels.step, places.numpy(), 1.5)
    grid = wrinkled_positions(places * 1.5)
    wanted = grid_sample(pixels.values(), grid, padding_mode="reflection", align_corners=False) * 255
    found = pixels.like(moved).values() * 255
    assert (found - wanted).abs().max() < 0.6  # half a grey level, and a tenth for weights of 13 bits
