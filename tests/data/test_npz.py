"""Images in an .npz file."""

import logging
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from haptera.data import ArrayData, NpzData, open_data
from haptera.errors import HapteraError

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
LABELS = np.arange(40) % 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "pets.npz"
    np.savez_compressed(target, images=IMAGES, labels=LABELS, classes=np.array(list("abcd")), ids=np.arange(40) + 5)
    return target


def test_a_file_gives_images_labels_names_and_ids(path: Path) -> None:
    data = open_data(path)
    assert isinstance(data, NpzData)
    assert data.name == "pets"
    assert data.names == ("a", "b", "c", "d")
    assert np.array_equal(data.rows, np.arange(40) + 5)
    assert data.targets is not None
    assert np.array_equal(data.targets, LABELS)
    expected = torch.from_numpy(IMAGES[[3, 1]].transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))
    assert torch.equal(data.images(np.array([3, 1])), expected)


def test_the_test_part_is_read_beside_a_training_part(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        train_images=IMAGES[:30], train_labels=LABELS[:30], test_images=IMAGES[30:], test_labels=LABELS[30:],
    )  # fmt: skip
    data = NpzData(tmp_path / "x.npz")
    assert len(data) == 10
    assert data.targets is not None
    assert np.array_equal(data.targets, LABELS[30:])
    assert torch.equal(data.images(np.arange(10)), ArrayData(IMAGES[30:]).images(np.arange(10)))


def test_labels_are_optional(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=IMAGES)
    data = NpzData(tmp_path / "x.npz")
    assert data.targets is None
    assert data.names is None


def test_it_pickles_without_its_pixels_and_reads_them_again(path: Path) -> None:
    data = NpzData(path, channels=1)
    content = pickle.dumps(data)
    assert len(content) < IMAGES.nbytes / 10
    again = pickle.loads(content)
    assert again.fingerprint() == data.fingerprint()
    assert torch.equal(again.images(np.arange(40)), data.images(np.arange(40)))
    assert pickle.loads(pickle.dumps(again)).images(np.array([0])).shape == (1, 1, 16, 16)


def test_a_file_given_by_a_relative_path_is_found_from_another_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    data = pickle.loads(pickle.dumps(open_data("pets.npz")))
    monkeypatch.chdir("/")
    assert len(data.images(np.array([0]))) == 1


def test_a_file_that_is_gone_or_changed_when_it_is_read_again_is_named(path: Path) -> None:
    data = pickle.loads(pickle.dumps(NpzData(path)))
    np.savez(path, other=IMAGES)
    with pytest.raises(HapteraError, match=r"pets\.npz has no array 'images' any more"):
        data.images(np.array([0]))
    path.unlink()
    with pytest.raises(HapteraError, match=r"there is no file .*pets\.npz"):
        data.images(np.array([0]))


def test_the_fingerprint_is_of_the_content_and_the_channels(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.npz"
    copy.write_bytes(path.read_bytes())
    data = NpzData(path)
    assert NpzData(copy).fingerprint() == data.fingerprint() == NpzData(path, channels=3).fingerprint()
    assert NpzData(path, channels=1).fingerprint() != data.fingerprint()
    np.savez(copy, images=IMAGES ^ 1, labels=LABELS)
    assert NpzData(copy).fingerprint() != data.fingerprint()


def test_channels_are_converted(path: Path) -> None:
    assert open_data(path, channels=1).images(np.arange(2)).shape == (2, 1, 16, 16)


def test_a_size_that_is_not_that_of_the_arrays_is_refused(path: Path) -> None:
    assert len(open_data(path, size=16)) == 40
    with pytest.raises(HapteraError, match=r"pets\.npz holds images of 16 x 16 .*size is 32"):
        open_data(path, size=32)


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_text("hello")
    with pytest.raises(HapteraError, match=r"bad\.npz is not an \.npz file"):
        open_data(bad)
    with bad.open("wb") as file:
        np.save(file, IMAGES)
    with pytest.raises(HapteraError, match=r"bad\.npz is not an \.npz file"):
        open_data(bad)


def test_a_missing_key_names_the_nearest(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=IMAGES, labels=LABELS)
    with pytest.raises(HapteraError, match=r"no array 'images' .*did you mean 'image'\? found: image, labels"):
        open_data(tmp_path / "x.npz")


def test_an_archive_without_arrays_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w"):
        pass
    with pytest.raises(HapteraError, match="found: nothing"):
        open_data(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("images", "text")
    with pytest.raises(HapteraError, match="the array 'images' cannot be read: EOF"):
        open_data(tmp_path / "x.npz")


def test_a_misspelt_key_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.savez(tmp_path / "x.npz", images=IMAGES, label=LABELS, source=np.array("camera"))
    with caplog.at_level(logging.WARNING, "haptera"):
        assert open_data(tmp_path / "x.npz").targets is None
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "the array 'label' is not read; did you mean 'labels'?"
    ]


def test_python_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=IMAGES, labels=np.array([{}] * 40, dtype=object))
    with pytest.raises(HapteraError, match=r"x\.npz: the array 'labels' cannot be read: it holds Python objects"):
        open_data(tmp_path / "x.npz")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, images=IMAGES)
    content = bytearray(path.read_bytes())
    content[5000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(HapteraError, match=r"x\.npz: cannot read the array 'images', the file is damaged"):
        open_data(path)
    path.write_bytes(content[:5000])
    with pytest.raises(HapteraError, match=r"x\.npz is not an \.npz file"):
        open_data(path)


def test_what_is_wrong_with_the_arrays_names_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=IMAGES.astype(np.float32))
    with pytest.raises(HapteraError, match=r"/x\.npz: images reach 255"):
        open_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", images=IMAGES[:0])
    with pytest.raises(HapteraError, match=r"/x\.npz holds no images"):
        open_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", images=IMAGES, labels=LABELS[:3])
    with pytest.raises(HapteraError, match=r"/x\.npz: there are 3 labels for 40 images"):
        open_data(tmp_path / "x.npz")
