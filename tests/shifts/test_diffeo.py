"""Deformations of maximum entropy: moments against exact sums, folds, one field for images, masks and keypoints."""

from math import log, pi

import numpy as np
import pytest
import torch

from haptera.errors import HapteraError
from haptera.shifts import Compose, Diffeo, GaussianNoise, SineFields, sphere_noise
from haptera.shifts.diffeo import centre_sum, displacement, gradient_norm, mode_temperature, modes
from haptera.shifts.sine_fields import sample

TABLE = {3: (4, 1.0000), 5: (15, 1.5111), 10: (69, 2.1393), 15: (162, 2.4394), 30: (675, 2.9995)}
REFERENCE = {3: (6, 1.4000), 5: (19, 1.6650), 15: (172, 2.4742), 30: (703, 3.0082)}
DRAWS = 4000


def slow_field(coefficients, u, v):
    """Equation (2), term by term: τ_u and τ_v at (u, v)."""
    waves = range(1, coefficients.shape[-1] + 1)
    terms = [coefficients[:, j - 1, i - 1] * np.sin(i * pi * u) * np.sin(j * pi * v) for i in waves for j in waves]
    return np.sum(terms, axis=0)


@pytest.mark.parametrize("cutoff", TABLE)
def test_modes_and_sums_are_those_of_the_table(cutoff):
    count, total = TABLE[cutoff]
    assert len(modes(cutoff)) == count
    assert 2 * centre_sum(cutoff) == pytest.approx(total, abs=5e-5)


@pytest.mark.parametrize("cutoff", REFERENCE)
def test_the_published_code_cuts_at_another_place(cutoff):
    count, total = REFERENCE[cutoff]
    assert len(modes(cutoff, "reference")) == count
    assert 2 * centre_sum(cutoff, "reference") == pytest.approx(total, abs=5e-5)


def test_what_the_print_calls_a_displacement_of_1_is_more():
    n, c = 32, 3
    printed = 1 / (pi / 4 * n**2 * log(c))  # T by equation (3)
    assert displacement(printed * n**2 / (n - 1) ** 2, n, n, c) == pytest.approx(1.08, abs=0.005)
    assert displacement(printed, n, n, c) == pytest.approx(1.04, abs=0.005)  # the grid has spacing 1 / (n - 1)


@pytest.mark.parametrize("rule", ["printed", "reference"])
@pytest.mark.parametrize(("cutoff", "height", "width"), [(3, 33, 33), (5, 17, 65)])
def test_moments_of_fields_are_the_exact_sums(rule, cutoff, height, width):
    shift = Diffeo(1.5, cutoff, rule=rule)
    fields = shift.fields(range(DRAWS), 0, height, width)
    centre = fields.pixels[:, :, height // 2, width // 2].square().sum(1)
    assert float(centre.mean()) == pytest.approx(1.5**2, abs=4 * float(centre.std()) / DRAWS**0.5)
    norms = fields.gradient_norms
    expected = gradient_norm(shift.heat(height, width), cutoff, rule)
    assert expected == pytest.approx(pi**2 / 2 * shift.heat(height, width) * len(modes(cutoff, rule)))
    assert float(norms.mean()) == pytest.approx(expected, abs=4 * float(norms.std()) / DRAWS**0.5)
    squares = (modes(cutoff, rule) ** 2).sum(1)
    drawn = fields.coefficients[:, :, modes(cutoff, rule)[:, 1] - 1, modes(cutoff, rule)[:, 0] - 1]
    heat = shift.heat(height, width)
    assert drawn.square().mean((0, 1)).numpy() * squares == pytest.approx(np.full(len(squares), heat), rel=0.1)
    assert abs(float(drawn.mean())) < 4 * heat**0.5 / (2 * DRAWS * len(squares)) ** 0.5
    correlation = np.corrcoef(drawn[:, :, 0].numpy().T)[0, 1]
    assert abs(correlation) < 4 / DRAWS**0.5


def test_a_field_is_the_sum_of_sines_and_zero_on_the_frame():
    fields = Diffeo(2, 5).fields([4, 5], 1, 9, 14)
    pixels = fields.pixels.numpy()
    for row in range(9):
        for column in range(14):
            here = slow_field(fields.coefficients[0].numpy().astype(float), column / 13, row / 8) * [13, 8]
            assert pixels[0, :, row, column] == pytest.approx(here, abs=1e-5)
    frame = np.ones((9, 14), bool)
    frame[1:-1, 1:-1] = False
    assert (pixels[:, :, frame] == 0).all()


def test_gradient_norm_is_the_integral_of_equation_1():
    fields = Diffeo(2, 5).fields([0], 0, 200, 200)
    down, across = np.gradient(fields.pixels[0].double().numpy(), axis=(1, 2))  # of pixels by pixels
    integral = ((down**2 + across**2).sum(0)).mean()
    assert float(fields.gradient_norms[0]) == pytest.approx(integral, rel=0.02)


@pytest.mark.parametrize("still", [Diffeo(0), Diffeo(temperature=0), Diffeo(0, interpolation="gaussian")])
def test_nothing_moves_at_a_temperature_of_0(still):
    images = torch.rand(3, 2, 11, 13)
    assert torch.equal(still(images), images)
    assert not still.fields([1, 2, 3], 0, 11, 13).pixels.any()


@pytest.mark.parametrize(("height", "width"), [(8, 8), (512, 512), (9, 40)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_images_are_read_at_the_displaced_positions(height, width, dtype):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(2, 1, height, width, generator=generator).to(dtype)
    shift = Diffeo(1.2, 3)
    moved, field = shift(images, ids=[5, 6], seed=3), shift.fields([5, 6], 3, height, width).pixels.double().numpy()
    assert moved.dtype == dtype
    exact = images.double().numpy()
    for row, column in np.random.default_rng(0).integers(0, (height, width), (40, 2)):
        x = np.clip(column - field[1, 0, row, column], 0, width - 1)
        y = np.clip(row - field[1, 1, row, column], 0, height - 1)
        left, top = int(x), int(y)
        right, bottom, a, b = min(left + 1, width - 1), min(top + 1, height - 1), x - left, y - top
        one = exact[1, 0]
        above = one[top, left] * (1 - a) + one[top, right] * a
        below = one[bottom, left] * (1 - a) + one[bottom, right] * a
        tolerance = 1e-3 if dtype == torch.float16 else 3e-4 * max(height, width) / 512 + 1e-5
        assert float(moved[1, 0, row, column]) == pytest.approx(above * (1 - b) + below * b, abs=tolerance)


def test_gaussian_weights_in_a_window_are_the_sum_over_all_pixels():
    images = torch.rand(2, 1, 16, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fields = Diffeo(1, 3).fields([0, 1], 0, 16, 12)
    field, moved = fields.pixels.double(), fields.move(images, "gaussian")
    y, x = torch.meshgrid(torch.arange(16.0).double(), torch.arange(12.0).double(), indexing="ij")
    x_at, y_at = (x - field[1, 0]).clamp(0, 11), (y - field[1, 1]).clamp(0, 15)
    weights = torch.exp(-((x_at[..., None, None] - x) ** 2 + (y_at[..., None, None] - y) ** 2) / (2 * 0.4715**2))
    expected = (weights / weights.sum((2, 3), keepdim=True) * images[1, 0]).sum((2, 3))
    assert float((moved[1, 0] - expected).abs().max()) < 2e-6


def test_gaussian_weights_change_noise_by_a_sixth_where_nothing_moves():
    noise = torch.rand(64, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    still = SineFields(torch.zeros(64, 2, 2, 2), 32, 32)
    change = (still.move(noise, "gaussian") - noise).norm() / noise.norm()
    assert float(change) == pytest.approx(0.17, abs=0.01)
    assert float((still.move(noise) - noise).abs().max()) < 1e-5


def test_the_determinant_is_that_of_finite_differences():
    fields = Diffeo(3, 5).fields([7], 2, 33, 33)
    coefficients = fields.coefficients[0].double().numpy()
    exact = fields.determinants(21)[0].numpy()
    step = 1e-5
    for row, column in [(0, 0), (3, 8), (10, 10), (20, 5), (14, 20)]:
        u, v = column / 20, row / 20
        by_u = (slow_field(coefficients, u + step, v) - slow_field(coefficients, u - step, v)) / (2 * step)
        by_v = (slow_field(coefficients, u, v + step) - slow_field(coefficients, u, v - step)) / (2 * step)
        expected = np.linalg.det(np.eye(2) - np.stack([by_u, by_v], 1))
        assert exact[row, column] == pytest.approx(expected, abs=1e-5)


def test_a_mask_moves_as_its_image():
    fields = Diffeo(3, 3).fields([1, 2], 0, 24, 30)
    blobs = torch.zeros(2, 24, 30)
    blobs[:, 6:18, 8:22] = 1
    labels = fields.move_masks(blobs.long())
    assert labels.dtype == torch.int64
    assert labels.shape == blobs.shape
    assert torch.equal(labels.float(), sample(blobs[:, None], fields._positions(), "nearest")[:, 0])
    smooth = fields.move(blobs[:, None])[:, 0]
    assert torch.equal(labels[(smooth < 0.01)], torch.zeros_like(labels[smooth < 0.01]))
    assert torch.equal(labels[(smooth > 0.99)], torch.ones_like(labels[smooth > 0.99]))
    many = torch.stack([blobs, 1 - blobs], 1)
    assert torch.equal(fields.move_masks(many)[:, 0], labels.float())


def test_keypoints_go_where_the_deformation_shows_them():
    shift = Diffeo(2, 3, resample=True)
    fields = shift.fields(range(50), 0, 40, 64)
    points = torch.rand(50, 9, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([63.0, 39.0])
    moved = fields.move_keypoints(points)
    assert moved.dtype == points.dtype
    back = np.array(
        [
            [
                slow_field(fields.coefficients[b].double().numpy(), x / 63, y / 39) * [63, 39]
                for x, y in moved[b].tolist()
            ]
            for b in range(50)
        ]
    )
    assert (moved.numpy() - back) == pytest.approx(points.numpy(), abs=2e-3)
    bright = torch.zeros(1, 1, 40, 64)
    y, x = torch.meshgrid(torch.arange(40.0), torch.arange(64.0), indexing="ij")
    bright[0, 0] = torch.exp(-((x - 30) ** 2 + (y - 18) ** 2) / 8)
    one = shift.fields([3], 0, 40, 64)
    seen = one.move(bright)[0, 0]
    centre = torch.stack([(seen * x).sum(), (seen * y).sum()]) / seen.sum()
    assert centre.numpy() == pytest.approx(one.move_keypoints(torch.tensor([[[30.0, 18.0]]]))[0, 0].numpy(), abs=0.25)


def test_keypoints_outside_the_picture_have_no_place():
    fields = Diffeo(1).fields([0], 0, 16, 16)
    assert fields.move_keypoints(torch.tensor([[[-3.0, 2.0], [4.0, 2.0]]])).isnan().tolist() == [
        [[True] * 2, [False] * 2]
    ]


def test_temperature_can_be_given_and_severity_scales_it():
    given = Diffeo(temperature=1e-3, cutoff=3)
    assert given.heat(32, 50) == 1e-3
    assert given.delta(32, 32) == pytest.approx(31 * 1e-3**0.5)
    assert given.at(2).delta(32, 32) == pytest.approx(2 * given.delta(32, 32))
    assert mode_temperature(given.delta(32, 50), 32, 50, 3) == pytest.approx(1e-3)
    images = torch.rand(3, 1, 32, 32)
    same = Diffeo(delta=given.delta(32, 32))
    assert float((given(images) - same(images)).abs().max()) < 1e-5


def test_delta_is_the_severity_and_keeps_its_settings():
    shift = Diffeo(delta=2, cutoff=5, rule="reference", interpolation="gaussian", resample=True)
    assert shift.severity == 2
    assert Diffeo(2) == Diffeo(severity=2.0) == Diffeo(delta=2)
    assert shift.at(7).at(2) == shift
    assert Compose([Diffeo(6), GaussianNoise(3)]).at(3).shifts[0] == Diffeo(3)


def test_as_augmentation_each_epoch_deforms_anew_and_each_worker_alike():
    image, shift = torch.rand(1, 3, 20, 20), Diffeo(2)
    first, again, next_epoch = shift(image, [17], 0), shift(image, [17], 0), shift(image, [17], 1)
    assert torch.equal(first, again)
    assert not torch.equal(first, next_epoch)
    batch = shift(torch.cat([torch.rand(1, 3, 20, 20), image]), [16, 17], 0)
    assert torch.equal(batch[1:], first)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diffeo(1, 1), r"cutoff 1 keeps no mode; it must be above 1.414"),
        (lambda: Diffeo(1, 0), "cutoff is 0; a number above 0"),
        (lambda: Diffeo(1, "3"), "cutoff is '3'"),
        (lambda: Diffeo(1, 7)(torch.rand(2, 1, 8, 20)), r"cutoff of diffeo is 7, on 8 x 20 pixels; .* here 6"),
        (
            lambda: Diffeo(1)((torch.rand(2, 1, 8, 8) * 255).int()),
            "floating point images in .0, 1. or uint8, found torch.int32",
        ),
        (lambda: Diffeo(1, temperature=0.1), "delta and temperature, which say the same"),
        (lambda: Diffeo(1, severity=1), "delta and severity, which say the same"),
        (lambda: Diffeo(temperature=-1), "temperature, is -1"),
        (lambda: Diffeo(1, rule="refrence"), "did you mean 'reference'"),
        (lambda: Diffeo(1, interpolation="bicubic"), "unknown interpolation of diffeo 'bicubic'"),
        (
            lambda: Diffeo(1).fields([0], 0, 8, 8).move(torch.rand(1, 1, 9, 8)),
            r"\(1, channels, 8, 8\), found \(1, 1, 9, 8\)",
        ),
        (lambda: Diffeo(1).fields([0], 0, 8, 8).move_keypoints(torch.rand(3, 2)), r"\(1, points, 2\) was expected"),
    ],
)
def test_what_cannot_be_is_said(make, message):
    with pytest.raises(HapteraError, match=message):
        make()


def test_one_mode_is_enough():
    assert modes(1, "reference").tolist() == [[1, 1]]
    assert Diffeo(1, 1, rule="reference")(torch.rand(1, 1, 8, 8)).shape == (1, 1, 8, 8)


def test_noise_lies_on_the_sphere_and_belongs_to_the_sample():
    images = torch.rand(5, 3, 8, 8, dtype=torch.float64)
    noise = sphere_noise(images, 2.5, torch.arange(5), 1)
    assert noise.flatten(1).norm(dim=1).numpy() == pytest.approx(np.full(5, 2.5), rel=1e-7)
    assert torch.equal(sphere_noise(images[3:4], 2.5, torch.tensor([3]), 1)[0], noise[3])
    assert not torch.equal(sphere_noise(images, 2.5, torch.arange(5), 2), noise)
    far = sphere_noise(torch.zeros(4000, 1, 1, 3), 1.0, torch.arange(4000))[:, 0, 0]
    assert float(far.mean(0).abs().max()) < 0.05
    assert (far[:, 0] * far[:, 1]).mean().abs() < 0.03
