"""Blurs against slow, obvious references and the published constants."""

import math
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
import torch
from scipy import ndimage

from blur_references import motion_reference, random_images, zoomed_reference
from haptera.shifts import DefocusBlur, GlassBlur, MotionBlur, SampleRandom, ZoomBlur
from haptera.shifts.blur import _noticed_weights, gaussian_filter, gaussian_kernel, motion_filter, zoom
from haptera.shifts.defocus import disk, disk_filter
from haptera.shifts.glass import _schedule, pull

BLURS = (DefocusBlur, GlassBlur, MotionBlur, ZoomBlur)
PUBLISHED = {
    (DefocusBlur, "imagenet"): [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    (DefocusBlur, "cifar"): [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    (GlassBlur, "imagenet"): [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    (GlassBlur, "cifar"): [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
    (MotionBlur, "imagenet"): [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    (MotionBlur, "cifar"): [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    (ZoomBlur, "imagenet"): [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    (ZoomBlur, "cifar"): [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
}


def smooth_image(side, seed=0):
    noise = np.random.default_rng(seed).random((side, side))
    image = ndimage.gaussian_filter(noise, 1.5)
    return (image - image.min()) / np.ptp(image)


@pytest.mark.parametrize(("shift", "table"), PUBLISHED, ids=lambda value: getattr(value, "name", value))
def test_constants_are_the_published_ones(shift, table):
    assert [shift(severity, table=table).constants() for severity in (1, 2, 3, 4, 5)] == PUBLISHED[shift, table]


@pytest.mark.parametrize("shift", BLURS, ids=lambda shift: shift.name)
@pytest.mark.parametrize("severity", [0.3, 1, 2.5, 5])
@pytest.mark.parametrize("table", ["imagenet", "cifar"])
def test_blur_keeps_a_grey_image(shift, severity, table):
    images = torch.full((2, 3, 40, 33), 0.3)
    assert torch.allclose(shift(severity, table=table)(images), images, atol=2e-6)


@pytest.mark.parametrize("shift", BLURS, ids=lambda shift: shift.name)
def test_batches_do_not_matter_at_larger_sides(shift):
    images = random_images(3, 1, 100, 129)
    whole = shift(4)(images)
    alone = torch.cat([shift(4)(images[i : i + 1], ids=[i]) for i in range(3)])
    assert torch.equal(whole, alone)


@pytest.mark.parametrize("shift", BLURS, ids=lambda shift: shift.name)
@pytest.mark.parametrize("size", [(8, 8), (8, 1024), (300, 64)])
def test_blur_takes_any_size_and_half_precision(shift, size):
    for table in ("imagenet", "cifar"):
        blurred = shift(5, table=table)(random_images(1, 1, *size).to(torch.bfloat16))
        assert blurred.dtype == torch.bfloat16


@pytest.mark.parametrize("radius", [1, math.sqrt(2), 2, 3, 4, 6, 8, 10])
def test_disk_is_the_peers_where_a_pixel_is_added(radius):
    across = np.arange(-math.ceil(radius), math.ceil(radius) + 1)
    inside = (across[:, None] ** 2 + across**2 <= radius**2 + 1e-9).astype(float)
    assert np.allclose(disk(radius).numpy(), inside / inside.sum(), atol=1e-7)


def test_disk_is_continuous_in_its_radius_and_keeps_its_sum():
    def at(radius):
        kernel, wide = disk(radius), torch.zeros(13, 13, dtype=torch.float64)
        margin = 6 - len(kernel) // 2
        wide[margin : 13 - margin, margin : 13 - margin] = kernel
        return wide

    radii = np.linspace(0, 5, 2001)
    steps = [float((at(b) - at(a)).abs().sum()) for a, b in pairwise(radii)]
    assert max(steps) < 0.05
    assert all(abs(float(disk(radius).sum()) - 1) < 1e-12 for radius in radii[::50])


@pytest.mark.parametrize(
    ("radius", "softening", "reach"), [(3, 0.1, 1), (4, 0.5, 1), (10, 0.5, 2), (1, 0.2, 1), (0.4, 0.5, 1)]
)
def test_defocus_equals_a_correlation_with_the_softened_disk(radius, softening, reach):
    image = random_images(1, 1, 60, 50)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / softening) ** 2)
    wide = np.pad(disk(radius).numpy(), reach)
    kernel = ndimage.convolve(wide, np.outer(taps, taps) / taps.sum() ** 2, mode="constant")
    expected = ndimage.correlate(image[0, 0].double().numpy(), kernel, mode="mirror")
    assert np.allclose(disk_filter(image, radius, softening, reach)[0, 0].numpy(), expected, atol=5e-6)


def test_many_and_few_taps_agree(monkeypatch):
    image = random_images(2, 3, 40, 30)
    expected = disk_filter(image, 4, 0.5, 1)
    monkeypatch.setattr("haptera.shifts.defocus._MOST_TAPS", 1000)
    assert torch.allclose(disk_filter(image, 4, 0.5, 1), expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("delta", "iterations"), [(1, 2), (2, 3), (3, 2), (4, 1)])
def test_copies_of_one_time_give_the_sequential_loop(delta, iterations):
    height, width = 22, 19
    offsets = np.random.default_rng(0).integers(-delta, delta, (iterations, height, width, 2))
    expected = np.arange(height * width).reshape(height, width)
    order = []
    for i in range(iterations):
        for h in range(height - delta, delta, -1):
            for w in range(width - delta, delta, -1):
                dy, dx = offsets[i, h, w]
                expected[h, w] = expected[h + dy, w + dx]
                order.append((4 * delta**2 * i + 2 * delta * (height - delta - h) + width - delta - w, i, h, w))
    order.sort(key=lambda entry: entry[0])  # stable, as the schedule is
    places, _ = _schedule(height, width, delta, iterations)
    assert places.tolist() == [h * width + w for _, _, h, w in order]
    partners = np.array([(h + offsets[i, h, w, 0]) * width + w + offsets[i, h, w, 1] for _, i, h, w in order])
    assert np.array_equal(pull(partners[:, None], height, width, delta, iterations)[0], expected.ravel())


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_glass_changes_as_much_as_the_loop(severity):
    side, random = 224, np.random.default_rng(1)
    image = smooth_image(side)
    sigma, delta, iterations = (
        number if i == 0 else int(number) for i, number in enumerate(GlassBlur(severity).constants())
    )
    changed = ndimage.gaussian_filter(image, sigma, mode="nearest")
    for _ in range(iterations):
        for h in range(side - delta, delta, -1):
            for w, (dy, dx) in zip(
                range(side - delta, delta, -1), random.integers(-delta, delta, (side, 2)), strict=False
            ):
                changed[h, w] = changed[h + dy, w + dx]
    changed = ndimage.gaussian_filter(changed, sigma, mode="nearest")
    ours = GlassBlur(severity)(torch.from_numpy(image)[None, None]).numpy()[0, 0]
    assert abs(np.abs(ours - image).mean() / np.abs(changed - image).mean() - 1) < 0.03
    assert abs(ours.mean() - image.mean()) < 5e-3  # copies repeat some pixels and lose others


@pytest.mark.parametrize(("radius", "sigma"), [(10, 3), (15, 8), (20, 15)])
def test_motion_equals_shifted_copies(radius, sigma):
    images = random_images(4, 2, 50, 60)
    angles = torch.tensor([-45.0, -10.0, 31.0, -100.0])
    blurred = motion_filter(images, angles, radius, sigma)
    for image, ours, angle in zip(images, blurred, angles.tolist(), strict=True):
        for channel in range(2):
            expected = motion_reference(image[channel].double().numpy(), angle, radius, sigma)
            assert np.allclose(ours[channel].numpy(), expected, atol=1e-5)


def test_motion_is_continuous_in_its_radius():
    images, angles = random_images(2, 1, 30, 30), torch.tensor([12.0, -30.0])
    for radius in (1.0, 1.5, 4.0):
        before, after = (motion_filter(images, angles, r, 3.0) for r in (radius - 1e-4, radius + 1e-4))
        assert torch.allclose(before, after, atol=1e-3)


def test_motion_uses_an_angle_of_its_own_for_each_sample():
    images = random_images(1, 1, 224, 224).expand(2, -1, -1, -1)
    one, two = MotionBlur(3)(images, ids=[0, 1])
    assert not torch.equal(one, two)
    random = SampleRandom([0, 1], 0, salt=crc32(b"motion_blur"))
    angles = random.uniform().mul(90).sub(45)
    assert torch.equal(torch.stack([one, two]), motion_filter(images, angles, 15, 8).clamp(0, 1))


@pytest.mark.parametrize("factor", [1.01, 1.06, 1.25, 1.9])
@pytest.mark.parametrize("size", [(32, 32), (41, 90), (224, 8)])
def test_zoom_equals_scipys(factor, size):
    image = random_images(1, 1, *size)
    expected = zoomed_reference(image[0, 0].double().numpy(), factor)
    assert np.allclose(zoom(image, factor)[0, 0].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("severity", [0.1, 1, 2.5, 5])
def test_zoom_blur_is_the_mean_of_image_and_copies(severity):
    image = random_images(1, 1, 64, 48)
    plain = image[0, 0].double().numpy()
    factors = np.arange(1, *ZoomBlur(severity).constants())
    expected = (plain + sum(zoomed_reference(plain, factor) for factor in factors)) / (len(factors) + 1)
    assert np.allclose(ZoomBlur(severity)(image)[0, 0].numpy(), expected, atol=1e-5)


def test_filter_of_wide_images_agrees_with_scipy_on_both_axes():
    image = random_images(1, 1, 130, 90)
    expected = ndimage.gaussian_filter(image[0, 0].double().numpy(), 2.3, mode="nearest")
    assert np.allclose(gaussian_filter(image, 2.3)[0, 0].numpy(), expected, atol=2e-6)


def test_weights_left_out_of_a_blur_of_bytes_are_less_than_a_tenth_of_a_grey_level():
    for sigma in (0.4, 1.0, 3.0, 6.0):
        radius = int(4 * sigma + 0.5)
        whole, kept = gaussian_kernel(sigma, radius)[radius:].double().numpy(), _noticed_weights(sigma)
        assert 2 * kept.sum() - kept[0] == pytest.approx(1, abs=1e-6)
        assert 255 * 2 * whole[len(kept) :].sum() < 0.1
    assert len(_noticed_weights(6.0)) < 25  # 4 standard deviations and the centre
