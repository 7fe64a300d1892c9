"""Views as public code makes them: hue against colorsys, AugMix against Pillow, and that a word chooses them."""

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from haptera.adapters import MEMO, SANTA, CoTTA, RoTTA, WeightedSLR
from haptera.adapters.augment import STRONG, Augment
from haptera.adapters.generator import generator_of
from haptera.adapters.published import OPERATIONS, AugMix, CoTTAViews, turn_hue
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


def images(n=4, channels=3, side=16, seed=0):
    return torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(seed))


def test_hue_turns_as_colorsys_turns_it():
    given = torch.cat([images(1, 3, 4), torch.full((1, 3, 4, 4), 0.3)])
    found = turn_hue(given, 0.17).permute(0, 2, 3, 1).reshape(-1, 3)
    for before, after in zip(given.permute(0, 2, 3, 1).reshape(-1, 3).tolist(), found.tolist(), strict=True):
        h, s, v = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb((h + 0.17) % 1, s, v), abs=1e-5)


@pytest.mark.parametrize("make", [CoTTAViews(), AugMix()], ids=["cotta", "augmix"])
@pytest.mark.parametrize(("channels", "side"), [(1, 16), (3, 17), (3, 70)])
def test_views_are_images_of_the_same_shape_and_come_from_the_generator_alone(make, channels, side):
    given = images(3, channels, side)
    one, again, other = make(given, generator_of(1)), make(given, generator_of(1)), make(given, generator_of(2))
    assert one.shape == given.shape
    assert 0 <= float(one.min()) <= float(one.max()) <= 1
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert make(given.double(), generator_of(1)).dtype == torch.float64


def test_cottas_views_are_the_same_for_all_images_of_a_batch():
    one = images(1).repeat(3, 1, 1, 1)
    views, own = CoTTAViews()(one, generator_of(3)), Augment()(one, generator_of(3))
    assert (views[0] - views[1]).abs().max() < 0.05  # but for the noise of .005
    assert (own[0] - own[1]).abs().max() > 0.1


def test_cottas_views_stay_near_the_image_on_average():
    smooth = torch.nn.functional.interpolate(images(1, 3, 3), 32, mode="bicubic").clamp(0, 1)
    generator = generator_of(0)
    views = torch.cat([CoTTAViews()(smooth, generator) for _ in range(200)])
    even = (smooth + smooth.flip(3)) / 2  # half of them are mirrored
    assert (views.mean(0) - even).abs().mean() < 0.06
    assert views.std(0).mean() > 0.05


def test_augmix_without_operations_is_a_crop_or_its_mirror_image():
    given = (images(1, 3, 12) * 255).round() / 255
    wide = torch.nn.functional.pad(given, (4, 4, 4, 4))
    crops = [wide[0, :, top : top + 12, left : left + 12] for top in range(9) for left in range(9)]
    crops = torch.stack([*crops, *(crop.flip(2) for crop in crops)])
    for seed in range(5):
        view = AugMix(operations=())(given, generator_of(seed))
        assert float((crops - view).abs().amax((1, 2, 3)).min()) < 1e-5


def test_augmix_mixes_chains_with_the_crop_in_even_shares():
    flat, mix = torch.full((1, 1, 20, 20), 1.0), AugMix(operations=("solarize",), small=0)
    views = [mix(flat, generator_of(seed)) for seed in range(200)]
    assert all(float(view.max() - view.min()) < 1e-5 for view in views)
    values = [float(view.mean()) for view in views]  # every chain makes 0 of it, so this is the share of the crop
    assert np.mean(values) == pytest.approx(0.5, abs=0.06)
    assert np.std(values) == pytest.approx(12**-0.5, abs=0.04)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_operations_are_pillows_at_a_tenth_of_their_range(mode):
    data = np.random.default_rng(0).integers(0, 256, (30, 30, 3)[: 3 if mode == "RGB" else 2], dtype=np.uint8)
    image = Image.fromarray(data)
    for seed in range(8):
        found = {name: OPERATIONS[name](image, generator_of(seed)) for name in OPERATIONS}
        assert found["autocontrast"].tobytes() == ImageOps.autocontrast(image).tobytes()
        assert found["equalize"].tobytes() == ImageOps.equalize(image).tobytes()
        assert found["posterize"].tobytes() == ImageOps.posterize(image, 4).tobytes()
        assert found["solarize"].tobytes() in [ImageOps.solarize(image, level).tobytes() for level in range(231, 255)]
        turned = [image.rotate(a, resample=Image.Resampling.BILINEAR).tobytes() for a in range(-3, 4)]
        assert found["rotate"].tobytes() in turned
        for name, axis in (("translate_x", 1), ("translate_y", 0)):
            shifted = [np.roll(data, shift, axis)[2:-2, 2:-2] for shift in (-1, 0, 1)]
            assert any(np.array_equal(np.asarray(found[name])[2:-2, 2:-2], one) for one in shifted)
        for name in ("shear_x", "shear_y"):
            assert np.asarray(found[name]).shape == data.shape


def test_large_images_are_cropped_at_random_sizes():
    ramp = torch.linspace(0, 1, 80).expand(1, 1, 80, 80).contiguous()
    views = [AugMix(operations=())(ramp, generator_of(seed)) for seed in range(60)]
    widths = [float(view.max() - view.min()) for view in views]
    assert min(widths) < 0.5
    assert max(widths) > 0.9


@pytest.mark.parametrize(
    ("method", "kind"), [(CoTTA, CoTTAViews), (RoTTA, CoTTAViews), (MEMO, AugMix), (SANTA, CoTTAViews)]
)
def test_a_word_chooses_the_published_views(method, kind):
    model = example_models()["layer"]
    assert isinstance(method(model, augment="published").augment, kind)
    assert method(model).augment == method(model, augment="own").augment == STRONG
    assert method(model, augment=Augment(noise=0.2)).augment.noise == 0.2
    with pytest.raises(HapteraError, match="published"):
        method(model, augment="publishd")


def test_roids_views_have_neither_noise_nor_blur_and_reflect_the_edge():
    adapter = WeightedSLR(example_models()["layer"], augment="published")
    assert adapter.augment == CoTTAViews(blur=0.0, noise=0.0, edge="reflect")
    assert WeightedSLR(example_models()["layer"]).augment == Augment(noise=0.0, blur=0.0)
    flat = adapter.augment(torch.full((1, 1, 8, 8), 0.5), generator_of(0))
    assert float(flat.max() - flat.min()) < 1e-6  # not so with noise
    with pytest.raises(HapteraError, match="edge of the views"):
        CoTTAViews(edge="wrap")


@pytest.mark.parametrize("method", [CoTTA, MEMO])
def test_methods_learn_from_the_published_views(method):
    settings = {"threshold": 1.0} if method is CoTTA else {}
    adapter = method(example_models()["layer"], lr=0.1, augmentations=2, augment="published", **settings)
    assert torch.isfinite(adapter(example_batches()[0][:2])).all()
    assert adapter.record["change"] > 0


def test_other_channels_and_unknown_operations_are_refused():
    with pytest.raises(HapteraError, match="one or three channels, found 2"):
        AugMix()(images(1, 2), generator_of(0))
    with pytest.raises(HapteraError, match="rotate"):
        AugMix(operations=("rotat",))
