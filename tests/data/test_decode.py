"""One image file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from haptera.data import open_data
from haptera.data.decode import Resize, check_size, decode, header_size
from haptera.errors import HapteraError

Put = Callable[..., np.ndarray]


def test_a_png_comes_back_as_it_was_written(tmp_path: Path, put_image: Put) -> None:
    pixels = put_image(tmp_path / "x.png", (6, 9, 3))
    assert np.array_equal(decode(tmp_path / "x.png", 3), pixels)
    assert header_size(tmp_path / "x.png") == (6, 9)


def test_grey_and_colour_turn_into_each_other(tmp_path: Path, put_image: Put) -> None:
    colour = put_image(tmp_path / "colour.png", (6, 9, 3))
    grey = put_image(tmp_path / "grey.png", (6, 9))
    assert np.array_equal(decode(tmp_path / "grey.png", 3), np.repeat(grey[:, :, None], 3, 2))
    expected = np.asarray(Image.fromarray(colour).convert("L"))[:, :, None]
    assert np.array_equal(decode(tmp_path / "colour.png", 1), expected)


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    wide = np.linspace(0, 65535, 64).round().astype(np.uint16).reshape(8, 8)
    Image.fromarray(wide).save(tmp_path / "x.png")
    assert np.array_equal(decode(tmp_path / "x.png", 1)[:, :, 0], (wide / 257).round())


def test_transparency_is_dropped(tmp_path: Path, put_image: Put) -> None:
    pixels = put_image(tmp_path / "x.png", (8, 8, 4))
    assert np.array_equal(decode(tmp_path / "x.png", 3), pixels[:, :, :3])
    Image.fromarray(pixels[:, :, :2]).save(tmp_path / "grey.png")
    assert np.array_equal(decode(tmp_path / "grey.png", 1), pixels[:, :, :1])


@pytest.mark.parametrize("transparency", [None, 0, bytes([0, 128, 255])])
def test_palettes_are_looked_up(tmp_path: Path, transparency: int | bytes | None) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([10, 20, 30, 200, 100, 50, 1, 2, 3])
    image.save(tmp_path / "x.png", **({} if transparency is None else {"transparency": transparency}))
    assert (decode(tmp_path / "x.png", 3) == [200, 100, 50]).all()


def test_one_bit_is_black_and_white(tmp_path: Path) -> None:
    Image.fromarray(np.eye(4, dtype=bool)).save(tmp_path / "x.png")
    assert np.array_equal(decode(tmp_path / "x.png", 1)[:, :, 0], np.eye(4) * 255)


def test_the_orientation_in_exif_is_not_applied(tmp_path: Path, put_image: Put) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    put_image(tmp_path / "x.jpg", (8, 16, 3), exif=exif)
    assert decode(tmp_path / "x.jpg", 3).shape == (8, 16, 3)


def test_an_image_of_the_right_size_is_left_alone(tmp_path: Path, put_image: Put) -> None:
    pixels = put_image(tmp_path / "x.png", (14, 14, 3))
    assert np.array_equal(decode(tmp_path / "x.png", 3, Resize(14)), pixels)


@pytest.mark.parametrize("shape", [(40, 30, 3), (30, 40, 3), (28, 28, 3), (5, 9, 3), (14, 15, 3), (1, 50, 3)])
def test_any_other_is_resized_and_cut_in_the_centre(tmp_path: Path, put_image: Put, shape: tuple[int, ...]) -> None:
    pixels = put_image(tmp_path / "x.png", shape)
    height, width = (int(16 * side / min(shape[:2])) for side in shape[:2])
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
    top, left = round((height - 14) / 2), round((width - 14) / 2)
    expected = np.asarray(resized)[top : top + 14, left : left + 14]
    assert np.array_equal(decode(tmp_path / "x.png", 3, Resize(14)), expected)


def test_a_truncated_file_is_named(tmp_path: Path, put_image: Put) -> None:
    for name in ("x.png", "x.jpg"):
        path = tmp_path / name
        put_image(path, (64, 64, 3))
        path.write_bytes(path.read_bytes()[:800])
        with pytest.raises(HapteraError, match=rf"cannot read the image .*{name}: "):
            decode(path, 3)


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    for content in (b"", b"hello", b"\x89PNG\r\n\x1a\n" + b"\0" * 30):
        path.write_bytes(content)
        for read in (header_size, lambda path: decode(path, 3)):
            with pytest.raises(HapteraError, match=r"cannot read (the image )?.*x\.jpg"):
                read(path)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match=r"there is no file .*gone\.png"):
        decode(tmp_path / "gone.png", 3)


def test_an_image_of_more_pixels_than_memory_holds_is_refused(
    tmp_path: Path, put_image: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_image(tmp_path / "x.png", (64, 64, 3))
    monkeypatch.setattr("haptera.data.decode.LARGEST", 4095)
    with pytest.raises(HapteraError, match=r"x\.png: it says that it has 64 x 64 pixels; 4,095 in all"):
        decode(tmp_path / "x.png", 3)


def test_pixels_of_32_bits_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.ones((4, 4), np.float32)).save(tmp_path / "x.png", format="TIFF")
    with pytest.raises(HapteraError, match=r"x\.png: its pixels are of Pillow's mode 'F'; 8 or 16 bits"):
        decode(tmp_path / "x.png", 3)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "32"])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(HapteraError, match=r"size is .*a whole number of at least 1"):
        check_size(size)


@pytest.mark.parametrize("crop", [0.5, 0.875, 1.0, "squash"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_a_crop_and_an_interpolation_do_what_pillow_does_step_by_step(tmp_path, crop, interpolation):

    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    how = getattr(Image.Resampling, interpolation.upper())
    if crop == "squash":
        expected = Image.fromarray(pixels).resize((16, 16), how)
    else:
        short = round(16 / crop)
        width = int(short * 60 / 40)
        left, top = round((width - 16) / 2), round((short - 16) / 2)
        expected = Image.fromarray(pixels).resize((width, short), how).crop((left, top, left + 16, top + 16))
    expected = torch.from_numpy(np.asarray(expected).copy()).permute(2, 0, 1) / 255
    given = open_data(tmp_path, size=16, crop=crop, interpolation=interpolation)
    default = open_data(tmp_path, default=Resize(16, crop, interpolation))
    for data in (given, default):
        assert torch.equal(data.images(np.array([0]))[0], expected)
    assert given.fingerprint() == default.fingerprint()


def test_a_crop_without_a_size_is_refused(tmp_path):

    with pytest.raises(HapteraError, match="crop is given and size is not"):
        open_data(tmp_path, crop=0.9)


@pytest.mark.parametrize(("orientation", "turn"), [(3, Image.Transpose.ROTATE_180), (6, Image.Transpose.ROTATE_270)])
def test_upright_turns_an_image_as_exif_says(tmp_path, orientation, turn, caplog):
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)).resize((18, 12))
    picture.save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(decode(tmp_path / "a.png", 3, Resize(upright=True)), np.asarray(picture.transpose(turn)))
    (tmp_path / "photos").mkdir()
    picture.save(tmp_path / "photos" / "a.jpg", exif=exif, quality=95)
    upright = open_data(tmp_path / "photos", upright=True).images(np.array([0]))
    assert "EXIF" not in caplog.text
    lying = open_data(tmp_path / "photos").images(np.array([0]))
    assert "EXIF says of 1 of the 1 images" in caplog.text
    turned = np.asarray(Image.fromarray((lying[0] * 255).round().byte().permute(1, 2, 0).numpy()).transpose(turn))
    assert np.array_equal((upright[0] * 255).round().byte().permute(1, 2, 0).numpy(), turned)


def test_cmyk_becomes_the_colours_that_a_browser_shows(tmp_path):
    red = Image.new("RGB", (8, 8), (250, 10, 20))
    red.convert("CMYK").save(tmp_path / "x.jpg", quality=100)
    assert np.abs(decode(tmp_path / "x.jpg", 3).astype(int) - [250, 10, 20]).max() <= 6


@pytest.mark.parametrize("suffix", ["png", "webp", "tiff"])
def test_an_image_that_moves_is_refused_by_name(tmp_path, suffix):
    frames = [Image.new("RGB", (8, 8), (value, 0, 0)) for value in (0, 200)]
    frames[0].save(tmp_path / f"x.{suffix}", save_all=True, append_images=frames[1:])
    with pytest.raises(HapteraError, match=rf"x\.{suffix}: it has 2 frames"):
        decode(tmp_path / f"x.{suffix}", 3)
