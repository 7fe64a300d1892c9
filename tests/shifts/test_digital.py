"""Colour, blocks, JPEG and rubber against slow references."""

import colorsys
from io import BytesIO
from zlib import crc32

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates

from haptera.shifts import Brightness, ElasticTransform, JpegCompression, Pixelate, SampleRandom, Saturate
from haptera.shifts.elastic import affine_positions, smooth, wrinkled_positions
from haptera.testing.shifts import ROUNDING

PUBLISHED = {
    (Brightness, "imagenet"): [0, 0.1, 0.2, 0.3, 0.4, 0.5],
    (Brightness, "cifar"): [0, 0.05, 0.1, 0.15, 0.2, 0.3],
    (Saturate, "imagenet"): [(1, 0), (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)],
    (Saturate, "cifar"): [(1, 0), (0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
    (Pixelate, "imagenet"): [1, 0.6, 0.5, 0.4, 0.3, 0.25],
    (Pixelate, "cifar"): [1, 0.95, 0.9, 0.85, 0.75, 0.65],
    (JpegCompression, "imagenet"): [85, 25, 18, 15, 10, 7],
    (JpegCompression, "cifar"): [85, 80, 65, 58, 50, 40],
    (ElasticTransform, "imagenet"): [(0, 244 * 0.7, 0)] + [
        (244 * alpha, 244 * sigma, 244 * affine)
        for alpha, sigma, affine in
        [(2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)]
    ],
    (ElasticTransform, "cifar"): [(0, 0, 0)] + [
        (32 * alpha, 32 * sigma, 32 * affine)
        for alpha, sigma, affine in
        [(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)]
    ],
}  # fmt: skip


def eight_bit_images(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0)) / 255


def as_pillow(image: torch.Tensor) -> Image.Image:
    pixels = (image * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    return Image.fromarray(pixels if len(image) == 3 else pixels[..., 0])


def from_pillow(image: Image.Image) -> torch.Tensor:
    pixels = torch.from_numpy(np.array(image))
    return (pixels if pixels.ndim == 3 else pixels[..., None]).permute(2, 0, 1) / 255


def in_hsv(images: torch.Tensor, change) -> torch.Tensor:
    """Pixel by pixel through colorsys."""
    pixels = images.double().permute(0, 2, 3, 1).reshape(-1, 3).tolist()
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in pixels]
    batch, _, height, width = images.shape
    return torch.tensor(changed).reshape(batch, height, width, 3).permute(0, 3, 1, 2)


@pytest.mark.parametrize(("shift", "table"), PUBLISHED, ids=lambda value: getattr(value, "name", value))
def test_constants_are_the_published_ones(shift, table):
    for severity, wanted in enumerate(PUBLISHED[shift, table]):
        assert shift(severity, table=table).constants() == pytest.approx(wanted if type(wanted) is tuple else (wanted,))


@pytest.fixture
def colours() -> torch.Tensor:
    images = torch.rand(2, 3, 12, 10, generator=torch.Generator().manual_seed(1))
    images[0, :, 0] = 0.0  # black
    images[0, :, 1] = 1.0  # white
    images[0, :, 2] = 0.3  # grey
    images[0, :2, 3] = 0.7  # two largest channels
    images[0, 1:, 4] = 0.0  # pure red
    images[1] = (images[1] * 4).round() / 4  # many ties
    return images


@pytest.mark.parametrize("severity", [0.5, 1, 2, 3, 4, 5])
def test_brightness_adds_to_the_value_of_hsv(colours, severity):
    expected = in_hsv(colours, lambda h, s, v: (h, s, min(v + 0.1 * severity, 1)))
    assert torch.allclose(Brightness(severity)(colours), expected, atol=1e-6)


def test_brightness_of_the_darkest_float_is_finite():
    images = torch.zeros(1, 3, 8, 8)
    images[:, 0] = 1e-40
    assert Brightness(1)(images).isfinite().all()


def test_brightness_of_grey_images_is_a_sum():
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(Brightness(3)(images), (images + 0.3).clamp(max=1))


@pytest.mark.parametrize("severity", [1, 2, 3, 3.5, 4, 5])
def test_saturate_changes_the_saturation_of_hsv(colours, severity):
    factor, added = Saturate(severity).constants()
    expected = in_hsv(colours, lambda h, s, v: (h, min(max(s * factor + added, 0), 1), v))
    assert torch.allclose(Saturate(severity)(colours), expected, atol=2e-6)


def test_saturate_has_nothing_to_do_on_grey_images():
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    assert torch.equal(Saturate(5)(images), images)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 31), (32, 32), (57, 40), (224, 224)])
@pytest.mark.parametrize("severity", [0.1, 0.5, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("table", ["imagenet", "cifar"])
def test_pixelate_equals_pillows_box_filter(channels, height, width, severity, table):
    images = eight_bit_images(1, channels, height, width)
    (share,) = Pixelate(severity, table=table).constants()
    small = as_pillow(images[0]).resize((int(width * share), int(height * share)), Image.Resampling.BOX)
    expected = from_pillow(small.resize((width, height), Image.Resampling.BOX))
    assert (Pixelate(severity, table=table)(images)[0] - expected).abs().max() <= 1.01 / 255


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (33, 17), (140, 130)])
@pytest.mark.parametrize(("severity", "quality"), [(1, 25), (3, 15), (5, 7), (0.5, 55), (1.5, 22)])
def test_jpeg_equals_pillow_bit_by_bit(channels, height, width, severity, quality):
    images = eight_bit_images(5, channels, height, width)
    for image, found in zip(images, JpegCompression(severity)(images), strict=True):
        stream = BytesIO()
        as_pillow(image).save(stream, "JPEG", quality=quality)
        assert torch.equal(found, from_pillow(Image.open(stream)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_jpeg_takes_any_precision_and_layout(dtype, layout):
    images = eight_bit_images(3, 3, 24, 40).to(dtype).contiguous(memory_format=layout)
    for image, found in zip(images, JpegCompression(3)(images), strict=True):
        stream = BytesIO()
        as_pillow(image).save(stream, "JPEG", quality=15)
        levels = (from_pillow(Image.open(stream)) * 255).round()
        assert torch.equal(found, (levels.to(torch.promote_types(dtype, torch.float32)) / 255).to(dtype))


@pytest.mark.parametrize("channels", [2, 4])
def test_jpeg_takes_other_channels_as_grey_images(channels):
    images = eight_bit_images(3, channels, 16, 24)
    expected = torch.cat([JpegCompression(3)(images[:, i : i + 1]) for i in range(channels)], 1)
    assert torch.equal(JpegCompression(3)(images), expected)


def test_jpeg_leaves_its_input_and_many_threads_change_nothing():
    images = eight_bit_images(4, 3, 130, 140)
    before, threads = images.clone(), torch.get_num_threads()
    alone = JpegCompression(3)(images)
    try:
        torch.set_num_threads(3)
        assert torch.equal(JpegCompression(3)(images), alone)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(images, before)


@pytest.mark.parametrize("shift", [Pixelate, JpegCompression, ElasticTransform], ids=lambda shift: shift.name)
@pytest.mark.parametrize(("height", "width"), [(8, 300), (10, 11), (129, 100)])
def test_batches_do_not_matter_at_any_side(shift, height, width):
    for channels in (1, 3):
        images = torch.rand(9, channels, height, width, generator=torch.Generator().manual_seed(9))
        for severity in (1.3, 2.87, 5):
            together = shift(severity)(images)
            alone = torch.cat([shift(severity)(images[i : i + 1], ids=[i]) for i in range(9)])
            assert torch.allclose(together, alone, rtol=0, atol=ROUNDING)


def test_jpeg_rounds_to_eight_bits_first():
    images = eight_bit_images(2, 3, 16, 16)
    nudged = (images + 0.4 / 255).clamp(0, 1)
    assert torch.equal(JpegCompression(3)(nudged), JpegCompression(3)(images))


@pytest.mark.parametrize("sigma", [0.0, 0.35, 2.44, 19.52, 170.8])
def test_field_is_smoothed_as_by_scipy(sigma):
    field = torch.rand(1, 2, 20, 33, generator=torch.Generator().manual_seed(3)) * 2 - 1
    expected = [gaussian_filter(part.double().numpy(), sigma, mode="reflect", truncate=3) for part in field[0]]
    assert np.allclose(smooth(field, sigma)[0].numpy(), np.stack(expected), atol=2e-6)


def test_affine_positions_take_the_moved_points_back():
    moves = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(4)).double() * 8 - 4
    positions = affine_positions(moves.round(), 30, 42)  # whole pixels, so that the points are on the grid
    points = torch.tensor([[31, 25], [31, 5], [11, 5]])
    for image, (place, move) in enumerate(zip(positions, moves.round(), strict=True)):
        for point, (x, y) in zip(points, (points + move).long().tolist(), strict=True):
            found = (place[y, x].double() + 1) / 2 * torch.tensor([41, 29])
            assert torch.allclose(found, point.double(), atol=1e-4), image


def test_affine_positions_stay_finite_when_the_triangle_collapses():
    moves = torch.zeros(1, 3, 2, dtype=torch.float64)
    moves[0, 1] = torch.tensor([-10.0, 10.0])  # the middle point onto the line between the others
    assert affine_positions(moves, 30, 30).isfinite().all()


def test_no_move_is_no_change():
    images = torch.rand(2, 3, 15, 22, generator=torch.Generator().manual_seed(5))
    still = affine_positions(torch.zeros(2, 3, 2, dtype=torch.float64), 15, 22)
    assert torch.allclose(torch.nn.functional.grid_sample(images, still, align_corners=True), images, atol=2e-5)
    still = wrinkled_positions(torch.zeros(2, 2, 15, 22))
    assert torch.allclose(torch.nn.functional.grid_sample(images, still, align_corners=False), images, atol=2e-5)


@pytest.mark.parametrize("severity", [1, 2, 3, 5])
def test_elastic_equals_two_steps_by_scipy(severity):
    height, width = 48, 56
    image = torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(6))
    alpha, sigma, amplitude = ElasticTransform(severity).constants()
    scale = 48 / 224
    random = SampleRandom([9], 1, salt=crc32(b"elastic_transform"))
    moves = (random.uniform((3, 2)).double().numpy()[0] * 2 - 1) * amplitude * scale
    fields = random.uniform((2, height, width)).double().numpy()[0] * 2 - 1
    points = np.array([[28 + 16, 24 + 16], [28 + 16, 24 - 16], [28 - 16, 24 - 16]], float)
    back = np.linalg.solve(np.column_stack([points + moves, np.ones(3)]), points)  # (x, y, 1) @ back = (x, y)
    y, x = np.mgrid[:height, :width].astype(float)
    there = np.stack([x, y, np.ones_like(x)], -1) @ back
    dx, dy = (gaussian_filter(field, sigma * scale, mode="reflect", truncate=3) * alpha * scale**2 for field in fields)
    found = ElasticTransform(severity)(image, ids=[9], seed=1)[0].numpy()
    for channel in range(3):
        pulled = map_coordinates(
            image[0, channel].double().numpy(), [there[..., 1], there[..., 0]], order=1, mode="mirror"
        )
        expected = map_coordinates(pulled, [y + dy, x + dx], order=1, mode="reflect")
        assert abs(found[channel] - expected).max() < 2e-3


def test_elastic_moves_all_channels_together():
    grey = torch.rand(2, 1, 24, 24, generator=torch.Generator().manual_seed(7))
    moved = ElasticTransform(4)(grey.expand(-1, 3, -1, -1).contiguous())
    assert torch.equal(moved[:, 0], moved[:, 2])
    assert torch.equal(moved[:, :1], ElasticTransform(4)(grey))


def test_elastic_is_smoothly_near_the_identity_at_small_severities():
    coarse = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(8))
    images = torch.nn.functional.interpolate(coarse, (64, 64), mode="bicubic").clamp(0, 1)
    assert (ElasticTransform(0.01)(images) - images).abs().max() < 0.05
