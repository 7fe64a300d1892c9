"""Views of images against loops over pixels, and what they may never do."""

from dataclasses import fields, replace
from math import cos, floor, radians, sin

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter1d

from haptera.adapters import Augment
from haptera.adapters.augment import blur, move, recolour
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError

OFF = Augment(**{field.name: 0.0 for field in fields(Augment)})


def images(n=3, channels=3, height=12, width=9, seed=0):
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(seed))


def still(n, **changed):
    """What `moved` needs to change nothing, but for what is given."""
    parts = {"degrees": 0.0, "right": 0.0, "down": 0.0, "scale": 1.0, "mirrored": False} | changed
    return {name: torch.full((n,), value) for name, value in parts.items()}


def pixel(image, row, column):
    """Bilinear, the edge repeated outside."""
    height, width = image.shape
    row, column = min(max(row, 0.0), height - 1.0), min(max(column, 0.0), width - 1.0)
    top, left = min(floor(row), height - 2), min(floor(column), width - 2)
    down, right = row - top, column - left
    upper = image[top, left] * (1 - right) + image[top, left + 1] * right
    lower = image[top + 1, left] * (1 - right) + image[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


def test_moving_follows_a_loop_over_pixels():
    given = images(channels=1)
    degrees, right, down = [20.0, -70.0, 0.0], [0.1, 0.0, -0.2], [-0.1, 0.3, 0.0]
    scale, mirrored = [1.3, 0.8, 1.0], [True, False, True]
    found = move(given, *map(torch.tensor, (degrees, right, down, scale, mirrored)))
    height, width = given.shape[2:]
    for i in range(3):
        angle, image = radians(degrees[i]), given[i, 0].double().numpy()
        for row in range(height):
            for column in range(width):
                x = column + 0.5 - width / 2 - right[i] * width
                y = row + 0.5 - height / 2 - down[i] * height
                back_x = (cos(angle) * x + sin(angle) * y) / scale[i] * (-1 if mirrored[i] else 1)
                back_y = (-sin(angle) * x + cos(angle) * y) / scale[i]
                expected = pixel(image, back_y + height / 2 - 0.5, back_x + width / 2 - 0.5)
                assert found[i, 0, row, column] == pytest.approx(expected, abs=1e-4)


def test_a_mirror_image_a_quarter_turn_and_a_whole_pixel():
    given = images(height=8, width=8)
    assert torch.allclose(move(given, **still(3, mirrored=True)), given.flip(3), atol=1e-5)
    assert torch.allclose(move(given, **still(3, degrees=90.0)), torch.rot90(given, -1, (2, 3)), atol=1e-5)
    expected = torch.cat([given[..., :1], given[..., :-1]], 3)
    assert torch.allclose(move(given, **still(3, right=1 / 8)), expected, atol=1e-5)


def test_colours_follow_their_definition():
    given = images()
    factors = torch.tensor([[0.6, 1.4, 1.1], [0.7, 1.3, 1.0], [0.5, 1.0, 1.5]])
    found = recolour(given, *factors)
    for i, (brightness, contrast, saturation) in enumerate(factors.T.tolist()):
        bright = given[i].double().numpy() * brightness
        grey = np.tensordot([0.299, 0.587, 0.114], bright, 1)
        strong = grey.mean() + contrast * (bright - grey.mean())
        grey = np.tensordot([0.299, 0.587, 0.114], strong, 1)
        assert np.allclose(found[i], grey + saturation * (strong - grey), atol=1e-5)


def test_saturation_leaves_grey_images_alone():
    given = images(channels=1)
    ones = torch.ones(3)
    assert torch.equal(recolour(given, ones, ones, 0.5 * ones), given)


def test_blur_agrees_with_scipy():
    given, sigma = images(), torch.tensor([0.4, 1.0, 2.0])
    found = blur(given, sigma, radius=6)
    for i in range(3):
        rows = gaussian_filter1d(given[i].double().numpy(), float(sigma[i]), axis=1, mode="nearest", radius=6)
        expected = gaussian_filter1d(rows, float(sigma[i]), axis=2, mode="nearest", radius=6)
        assert np.allclose(found[i], expected, atol=1e-5)


def test_all_parts_off_is_the_identity():
    given = images()
    assert torch.equal(OFF(given, generator_of(0)), given)


@pytest.mark.parametrize("part", [field.name for field in fields(Augment)])
def test_each_part_changes_the_images(part):
    given = images()
    view = replace(OFF, **{part: 0.8})(given, generator_of(3))
    assert not torch.allclose(view, given, atol=1e-4)


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 8, 8), (3, 5, 17), (4, 2, 3), (3, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_dtype_and_range_are_kept(channels, height, width, dtype):
    given = images(5, channels, height, width).round().to(dtype)  # black and white, so that a limit is needed
    view = Augment(noise=0.2, brightness=1.0)(given, generator_of(0))
    assert view.shape == given.shape
    assert view.dtype == dtype
    assert view.min() >= 0
    assert view.max() <= 1


def test_values_outside_of_zero_and_one_keep_their_own_range():
    given = 4 * images() - 2
    view = Augment()(given, generator_of(0))
    assert view.min() >= given.min()
    assert view.max() <= given.max()
    assert view.max() > 1


def test_each_image_has_a_view_of_its_own_and_the_generator_decides_it():
    given = images(1).expand(4, -1, -1, -1)
    views = Augment()(given, generator_of(0))
    assert all(not torch.allclose(views[0], view, atol=1e-3) for view in views[1:])
    assert torch.equal(views, Augment()(given, generator_of(0)))
    assert not torch.equal(views, Augment()(given, generator_of(1)))


def test_the_global_generator_is_neither_read_nor_written():
    given, before = images(), torch.get_rng_state()
    one = Augment()(given, generator_of(0))
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        assert torch.equal(Augment()(given, generator_of(0)), one)


def test_half_of_the_images_are_mirrored():
    given = images(1, 1, 4, 4).expand(2000, -1, -1, -1)
    mirrored = (replace(OFF, flip=0.5)(given, generator_of(0)) - given.flip(3)).abs().amax((1, 2, 3)) < 1e-4
    assert abs(float(mirrored.float().mean()) - 0.5) < 5 * 0.5 / 2000**0.5


def test_generators_differ_with_every_number_of_the_key():
    first = {
        torch.rand(1, generator=generator_of(*key)).item() for key in [(0,), (0, 1), (1, 0), (2**40, 1), (0, 1, 1)]
    }
    assert len(first) == 5


@pytest.mark.parametrize("settings", [{"flip": 1.5}, {"rotation": -1}, {"noise": float("nan")}, {"scale": 2}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"{next(iter(settings))} of the views is"):
        Augment(**settings)


@pytest.mark.parametrize("given", [torch.rand(4, 10), torch.zeros(2, 3, 4, 4, dtype=torch.uint8)])
def test_other_inputs_are_refused(given):
    with pytest.raises(HapteraError, match="views need images"):
        Augment()(given, generator_of(0))
