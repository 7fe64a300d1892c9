"""Weather against slow, obvious references and the published constants."""

from zlib import crc32

import numpy as np
import pytest
import torch
from scipy import ndimage

from blur_references import motion_reference, random_images, zoomed_reference
from haptera.shifts import Fog, Frost, SampleRandom, Snow, Spatter
from haptera.shifts.weather import frost_texture, plasma

WEATHERS = (Snow, Frost, Fog, Spatter)
PUBLISHED = {
    (Snow, "imagenet"): [
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ],
    (Snow, "cifar"): [
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ],
    (Frost, "imagenet"): [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    (Frost, "cifar"): [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
    (Fog, "imagenet"): [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    (Fog, "cifar"): [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    (Spatter, "imagenet"): [
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ],
    (Spatter, "cifar"): [
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ],
}


def same_random(shift, ids=(0,), seed=0):
    """The numbers that a shift draws for these samples."""
    return SampleRandom(list(ids), seed, salt=crc32(shift.name.encode()))


@pytest.mark.parametrize(("shift", "table"), PUBLISHED, ids=lambda value: getattr(value, "name", value))
def test_constants_are_the_published_ones(shift, table):
    assert [shift(severity, table=table).constants() for severity in (1, 2, 3, 4, 5)] == PUBLISHED[shift, table]


@pytest.mark.parametrize("shift", WEATHERS, ids=lambda shift: shift.name)
@pytest.mark.parametrize("table", ["imagenet", "cifar"])
def test_change_fades_towards_severity_zero(shift, table):
    images = random_images(2, 3, 64, 64)
    changes = [float((shift(s, table=table)(images) - images).abs().mean()) for s in (1e-3, 0.1, 1)]
    assert changes[0] < 0.01
    assert changes[0] <= changes[1] < changes[2]


@pytest.mark.parametrize("shift", WEATHERS, ids=lambda shift: shift.name)
def test_batches_do_not_matter_at_larger_sides(shift):
    images = random_images(3, 1, 100, 129)
    whole = shift(3)(images)
    alone = torch.cat([shift(3)(images[i : i + 1], ids=[i]) for i in range(3)])
    assert torch.equal(whole, alone)


@pytest.mark.parametrize("shift", WEATHERS, ids=lambda shift: shift.name)
@pytest.mark.parametrize("size", [(8, 8), (8, 1024), (300, 64)])
def test_weather_takes_any_size_and_half_precision(shift, size):
    for table in ("imagenet", "cifar"):
        for severity in (3, 3.5, 5):
            changed = shift(severity, table=table)(random_images(1, 3, *size).to(torch.bfloat16))
            assert changed.dtype == torch.bfloat16
            assert bool(changed.isfinite().all())


def plasma_reference(noise, size, decay):
    """Diamond-square in place on a torus, point by point."""
    heights = np.zeros((size, size))
    step, strength, used = size, 1.0, 0
    while step >= 2:
        half, count = step // 2, size // step
        fresh = noise[used : used + 3 * count**2].reshape(3, count, count) * strength
        used += 3 * count**2
        for kind, (dy, dx) in enumerate([(half, half), (0, half), (half, 0)]):
            around = [(a, b) for a in (-half, half) for b in (-half, half)]
            around = around if kind == 0 else [(-half, 0), (half, 0), (0, -half), (0, half)]
            for i in range(count):
                for j in range(count):
                    y, x = i * step + dy, j * step + dx
                    corners = [heights[(y + a) % size, (x + b) % size] for a, b in around]
                    heights[y, x] = np.mean(corners) + fresh[kind, i, j]
        step, strength = half, strength / decay**2
    return (heights - heights.min()) / (heights.max() - heights.min())


@pytest.mark.parametrize(("size", "decay"), [(2, 2), (16, 1.4), (32, 3)])
def test_plasma_is_diamond_square(size, decay):
    noise = SampleRandom([4, 5], 1).uniform((size**2 - 1,)).double().numpy() * 2 - 1
    ours = plasma(SampleRandom([4, 5], 1), size, decay)
    for one, values in zip(ours, noise, strict=True):
        assert np.allclose(one.numpy(), plasma_reference(values, size, decay), atol=1e-5)


@pytest.mark.parametrize("size", [2, 9, 64])
def test_plasma_of_kernels_is_the_same(size):
    plain, compiled = SampleRandom([4, 5, 6], 1), SampleRandom([4, 5, 6], 1).fast()
    assert torch.allclose(plasma(compiled, size, 1.4), plasma(plain, size, 1.4), atol=1e-6)


def test_plasma_has_the_next_power_of_two():
    assert [plasma(SampleRandom([0]), side, 2).shape[-1] for side in (8, 9, 224, 256)] == [8, 16, 256, 256]


@pytest.mark.parametrize("severity", [1, 3.5, 5])
def test_fog_follows_its_formula(severity):
    images = random_images(2, 3, 24, 40) * 0.8
    strength, decay = Fog(severity).constants()
    cloud = plasma(same_random(Fog, (0, 1)), 40, decay)[:, None, :24, :40]
    largest = images.amax((1, 2, 3), keepdim=True)
    expected = ((images + strength * cloud) * largest / (largest + strength)).clamp(0, 1)
    assert torch.allclose(Fog(severity)(images), expected, atol=1e-6)


def test_frost_weighs_image_and_texture():
    images = random_images(2, 3, 32, 32)
    ice = frost_texture(same_random(Frost, (0, 1)), 32, 32)
    dark, bright = (torch.tensor(c).view(1, 3, 1, 1) for c in ((0.27, 0.39, 0.45), (0.93, 0.97, 1.0)))
    expected = (0.7 * images + 0.7 * torch.lerp(dark, bright, ice)).clamp(0, 1)
    assert torch.allclose(Frost(3)(images), expected, atol=1e-6)


def test_frost_has_the_mean_colour_of_the_published_photographs():
    texture = Frost(5)(torch.zeros(16, 3, 224, 224)) / 0.75
    # Crops of the five photographs that the public implementation draws from.
    assert texture.mean((0, 2, 3)).tolist() == pytest.approx([0.563, 0.646, 0.693], abs=0.02)
    assert float(texture.std((1, 2, 3)).mean()) > 0.115


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_snow_follows_its_recipe(severity):
    image = random_images(1, 3, 224, 224)
    mean, width, size, threshold, radius, sigma, mix = Snow(severity).constants()
    random = same_random(Snow)
    angle = float(random.uniform()[0]) * 90 - 135
    seen = int(np.ceil(224 / size))
    layer, top = np.zeros((224, 224)), (224 - seen) // 2
    layer[top : top + seen, top : top + seen] = random.normal((seen, seen))[0].double() * width + mean
    flakes = zoomed_reference(layer, size).clip(None, 1)
    flakes[flakes < threshold] = 0
    flakes = motion_reference(flakes, angle, int(radius), sigma)
    plain = image[0].double().numpy()
    grey = np.tensordot([0.299, 0.587, 0.114], plain, 1)
    whitened = mix * plain + (1 - mix) * np.maximum(plain, grey * 1.5 + 0.5)
    expected = (whitened + flakes + np.rot90(flakes, 2)).clip(0, 1)
    off = np.abs(Snow(severity)(image)[0].numpy() - expected)
    assert off.mean() < 1e-4  # a value at the threshold may fall on either side
    assert np.quantile(off, 0.99) < 1e-3


def liquid_reference(severity, side=224):
    mean, width, sigma, threshold, mix, _ = Spatter(severity).constants()
    noise = same_random(Spatter).normal((side, side))[0].double().numpy()
    return ndimage.gaussian_filter(noise, sigma, mode="nearest") * width + mean, threshold, mix


@pytest.mark.parametrize("severity", [4, 5])
def test_mud_follows_its_recipe(severity):
    image = random_images(1, 3, 224, 224)
    liquid, threshold, mix = liquid_reference(severity)
    mud = ndimage.gaussian_filter((liquid > threshold).astype(float), mix, mode="nearest")
    mud[mud < 0.8] = 0
    colour = np.array([63, 42, 20])[:, None, None] / 255
    expected = image[0].double().numpy() * (1 - mud) + colour * mud
    assert np.abs(Spatter(severity)(image)[0].numpy() - expected).mean() < 1e-4


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_water_is_close_to_the_recipe_with_true_distances(severity):
    liquid, threshold, mix = liquid_reference(severity)
    wet = liquid >= threshold
    edges = wet & ~ndimage.binary_erosion(wet, border_value=1)
    distance = ndimage.distance_transform_edt(~edges).clip(0, 20)
    levels = ndimage.uniform_filter(distance, 3, mode="mirror").astype(int)
    below = np.bincount(levels.ravel(), minlength=21).cumsum()
    lowest = below[below > 0].min()
    relief = ((below - lowest).clip(0) / (below[-1] - lowest))[levels]
    lit = ndimage.correlate(relief, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], float), mode="mirror").clip(0, 1)
    shine = np.where(wet, liquid, 0) * ndimage.uniform_filter(lit, 3, mode="mirror")
    expected = shine / shine.max() * mix * 238 / 255
    ours = Spatter(severity)(torch.zeros(1, 3, 224, 224))[0, 2].double().numpy()
    assert abs((ours > 0).mean() / (expected > 0).mean() - 1) < 0.1
    assert abs(ours.mean() / expected.mean() - 1) < 0.2
    assert np.corrcoef(ours[wet], expected[wet])[0, 1] > 0.7


def test_water_is_pale_turquoise_and_added():
    added = Spatter(3)(torch.zeros(4, 3, 64, 64))
    assert torch.allclose(added[:, 0] * 238, added[:, 1] * 175, atol=1e-4)
    assert torch.equal(added[:, 1], added[:, 2])
    assert float(added.max()) == pytest.approx(0.5 * 238 / 255, abs=1e-5)


def test_between_water_and_mud_both_are_seen():
    images = torch.full((4, 3, 64, 64), 0.5)
    between = Spatter(3.5)(images)
    assert bool((between > 0.55).any())
    assert bool((between < 0.45).any())


def test_wet_area_does_not_depend_on_the_side():
    for severity in (2, 3):
        areas = [float((Spatter(severity)(torch.zeros(64, 1, s, s)) > 0).float().mean()) for s in (32, 64, 224)]
        assert max(areas) < 1.35 * min(areas)
