"""Data sets that are corrupted already, in the layouts of ImageNet-C and CIFAR-10-C."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from haptera.data import CorruptedImages, FolderData, NpyData, open_data
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

Put = Callable[..., np.ndarray]


def opened(path: Path, **settings: int) -> CorruptedImages:
    data = open_data(path, **settings)
    assert isinstance(data, CorruptedImages)
    return data


def test_imagenet_c_has_one_part_per_corruption_and_severity(imagenet_c: Path) -> None:
    data = opened(imagenet_c)
    assert data.name == "imagenet-c"
    assert [(part.shift, part.severity) for part in data.parts] == [
        ("blur", 1.0), ("blur", 3.0), ("fog", 1.0), ("fog", 3.0),
    ]  # fmt: skip
    for part in data.parts:
        assert isinstance(part.data, FolderData)
        assert part.data.rows.tolist() == [0, 1, 2]
        assert part.data.targets is not None
        assert part.data.targets.tolist() == [0, 1, 1]
        assert part.data.names == ("n01", "n02")
    assert data.parts[1].data.name == "imagenet-c/blur/3"
    image = np.asarray(Image.open(imagenet_c / "fog/3/n02/b.png"), np.float32) / np.float32(255)
    assert np.array_equal(data.parts[3].data.images(np.array([1]))[0].numpy(), image.transpose(2, 0, 1))


def test_imagenet_c_may_be_grouped(imagenet_c: Path) -> None:
    flat = opened(imagenet_c)
    (imagenet_c / "weather").mkdir()
    shutil.move(imagenet_c / "fog", imagenet_c / "weather/fog")
    (imagenet_c / "README.txt").write_text("no image")
    grouped = opened(imagenet_c)
    assert [(p.shift, p.severity, p.data.fingerprint()) for p in grouped.parts] == [
        (p.shift, p.severity, p.data.fingerprint()) for p in flat.parts
    ]


def test_size_and_channels_reach_every_part(imagenet_c: Path, cifar_c: Path) -> None:
    for part in opened(imagenet_c, size=14, channels=1).parts:
        assert part.data.images(np.arange(2)).shape == (2, 1, 14, 14)
    for part in opened(cifar_c, size=8, channels=1).parts:
        assert part.data.images(np.arange(2)).shape == (2, 1, 8, 8)


def test_a_corruption_that_is_there_twice_is_refused(imagenet_c: Path) -> None:
    shutil.copytree(imagenet_c / "fog", imagenet_c / "weather/fog")
    with pytest.raises(HapteraError, match=r"holds the corruption 'fog' twice: .* and .*"):
        open_data(imagenet_c)


def test_parts_with_other_files_are_refused(imagenet_c: Path) -> None:
    (imagenet_c / "fog/3/n02/b.png").unlink()
    with pytest.raises(HapteraError, match=r"fog/3 holds 2 images and .*blur/1 holds 3; .*n02/b\.png is in one"):
        open_data(imagenet_c)


def test_parts_with_other_classes_are_refused(imagenet_c: Path, caplog: pytest.LogCaptureFixture) -> None:
    (imagenet_c / "fog/3/n00").mkdir()
    with pytest.raises(HapteraError, match="n00 is in one of them only"):
        open_data(imagenet_c)


def test_an_empty_severity_is_refused(imagenet_c: Path) -> None:
    (imagenet_c / "fog/5").mkdir()
    with pytest.raises(HapteraError, match=r"no images in .*fog/5"):
        open_data(imagenet_c)


@pytest.mark.parametrize("name", ["a/0001/x.png", "a/0/x.png", "a/6/x.png", "a/1/x.png"])
def test_classes_with_numbered_folders_are_not_taken_for_corruptions(tmp_path: Path, put_image: Put, name: str) -> None:
    put_image(tmp_path / name)
    put_image(tmp_path / "b/y.png")
    assert isinstance(open_data(tmp_path), FolderData)


def test_a_corruption_with_images_beside_its_severities_is_a_class(tmp_path: Path, put_image: Put) -> None:
    put_image(tmp_path / "a/1/x.png")
    put_image(tmp_path / "a/y.png")
    assert isinstance(open_data(tmp_path), FolderData)


def test_cifar_c_has_five_blocks_per_file(cifar_c: Path) -> None:
    data = opened(cifar_c)
    assert data.name == "cifar-c"
    assert [(part.shift, part.severity) for part in data.parts] == [
        (shift, float(severity)) for shift in ("contrast", "fog") for severity in range(1, 6)
    ]
    raw = np.load(cifar_c / "fog.npy")
    for block, part in enumerate(data.parts[5:]):
        assert isinstance(part.data, NpyData)
        assert part.data.rows.tolist() == [0, 1, 2, 3]
        assert part.data.targets is not None
        assert part.data.targets.tolist() == [0, 2, 1, 2]
        images = part.data.images(np.array([2, 0, 3]))
        expected = raw[4 * block + np.array([2, 0, 3])].transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
        assert np.array_equal(images.numpy(), expected)
        assert torch.equal(images, torch.cat([part.data.images(np.array([i])) for i in (2, 0, 3)]))
    with pytest.raises(IndexError):
        data.parts[0].data.images(np.array([4]))


def test_cifar_c_is_mapped_into_memory_and_pickles_small(cifar_c: Path) -> None:
    part = opened(cifar_c).parts[2].data
    assert isinstance(part, NpyData)
    before = part.images(np.arange(4))
    assert isinstance(part._pixels, np.memmap)
    again = pickle.loads(pickle.dumps(part))
    assert again._pixels is None
    assert torch.equal(again.images(np.arange(4)), before)
    assert again.fingerprint() == part.fingerprint()


@pytest.mark.parametrize("layout", ["cifar_c", "imagenet_c"])
def test_every_part_has_a_fingerprint_of_its_own(layout: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(layout)
    data = opened(path)
    prints = [part.data.fingerprint() for part in data.parts]
    assert len(set(prints)) == len(prints)
    assert fingerprint(data) == fingerprint(opened(path))
    changed = next(file for file in sorted(path.rglob("*")) if file.is_file())
    os.utime(changed, ns=(1, 1))
    assert fingerprint(data) != fingerprint(opened(path))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(18, int), r"labels\.npy holds 18 labels; 5 blocks of one length"),
        (np.zeros(25, int), r"contrast\.npy holds 20 images and labels\.npy holds 25 labels"),
        (np.zeros(20), r"labels\.npy: labels are float64"),
        (np.zeros((20, 1), int), r"labels\.npy: labels have shape \(20, 1\)"),
        (np.int64(3), r"labels\.npy: labels have shape \(\)"),
        (
            np.arange(20),
            r"labels\.npy: the label in row 4 is 4, that of the same image at severity 1 \(row 0\) is 0",
        ),
        (np.tile([0, 1, -1, 0], 5), r"labels\.npy: labels must be 0 or more .*found -1 in row 2"),
        (np.array([{}] * 20, dtype=object), r"labels\.npy cannot be read: it holds Python objects"),
    ],
)
def test_wrong_labels_of_cifar_c_are_refused(cifar_c: Path, labels: np.ndarray, message: str) -> None:
    np.save(cifar_c / "labels.npy", labels)
    with pytest.raises(HapteraError, match=message):
        open_data(cifar_c)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((16, 8, 8, 3), np.uint8), r"fog\.npy holds 16 images and labels\.npy holds 20 labels"),
        (np.zeros((20, 8, 8, 3)), r"fog\.npy: images are float64; uint8"),
        (np.zeros((20, 8, 8, 4), np.uint8), r"fog\.npy: images have shape"),
    ],
)
def test_wrong_images_of_cifar_c_are_refused(cifar_c: Path, images: np.ndarray, message: str) -> None:
    np.save(cifar_c / "fog.npy", images)
    with pytest.raises(HapteraError, match=message):
        open_data(cifar_c)


def test_a_damaged_or_missing_file_of_cifar_c_is_named(cifar_c: Path) -> None:
    path = cifar_c / "fog.npy"
    content = path.read_bytes()
    for damaged in (b"", b"hello", content[:500]):
        path.write_bytes(damaged)
        with pytest.raises(HapteraError, match=r"fog\.npy (cannot be read: |says that it is )"):
            open_data(cifar_c)
    path.write_bytes(content)
    part = opened(cifar_c).parts[5].data
    path.unlink()
    with pytest.raises(HapteraError, match=r"there is no file .*fog\.npy"):
        part.images(np.array([0]))


def test_an_archive_among_the_files_of_cifar_c_is_refused(cifar_c: Path) -> None:
    with (cifar_c / "fog.npy").open("wb") as file:
        np.savez(file, images=np.zeros(3))
    with pytest.raises(HapteraError, match=r"fog\.npy: it is an \.npz archive"):
        open_data(cifar_c)


def test_labels_alone_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.zeros(10, int))
    with pytest.raises(HapteraError, match=r"labels\.npy but no other \.npy file; one per corruption"):
        open_data(tmp_path)


def test_a_size_that_is_not_that_of_cifar_c_is_refused(cifar_c: Path) -> None:
    with pytest.raises(HapteraError, match=r"contrast\.npy holds images of 8 x 8 .*size is 32"):
        open_data(cifar_c, size=32)
