"""Images in folders."""

import logging
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from haptera.data import FolderData, open_data
from haptera.errors import HapteraError

Put = Callable[..., np.ndarray]


def test_class_folders_give_sorted_files_and_classes(class_folder: Path) -> None:
    data = open_data(class_folder)
    assert isinstance(data, FolderData)
    assert data.name == "pets"
    assert data.names == ("cat", "dog")
    assert data._files == ("cat/10.png", "cat/2.png", "cat/more/1.PNG", "dog/a.png", "dog/b.png", "dog/c.png")
    assert data.targets is not None
    assert data.targets.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.rows.tolist() == list(range(6))
    assert data.targets.dtype == data.rows.dtype == np.int64


def test_images_are_those_of_the_files_however_they_are_cut(class_folder: Path) -> None:
    data = FolderData(class_folder)
    order = np.array([5, 0, 3, 3, 1])
    whole = data.images(order)
    assert whole.shape == (5, 3, 8, 8)
    assert whole.dtype == torch.float32
    assert whole.is_contiguous()
    assert torch.equal(whole, torch.cat([data.images(order[:2]), data.images(order[2:]), data.images(order[:0])]))
    pixels = np.asarray(Image.open(class_folder / "dog/c.png"), np.float32) / np.float32(255)
    assert np.array_equal(whole[0].numpy(), pixels.transpose(2, 0, 1))


def test_a_flat_folder_has_no_labels(tmp_path: Path, put_image: Put) -> None:
    for name in ("b.JPG", "a.jpeg", "c.Png", ".hidden.png"):
        put_image(tmp_path / name)
    (tmp_path / "notes.png.txt").write_text("no image")
    data = FolderData(tmp_path)
    assert data._files == ("a.jpeg", "b.JPG", "c.Png")
    assert data.targets is None
    assert data.names is None


def test_colour_is_the_default_and_grey_can_be_asked_for(tmp_path: Path, put_image: Put) -> None:
    put_image(tmp_path / "x.png", (8, 8))
    assert FolderData(tmp_path).images(np.array([0])).shape == (1, 3, 8, 8)
    assert open_data(tmp_path, channels=1).images(np.array([0])).shape == (1, 1, 8, 8)


def test_it_pickles_and_reads_on(class_folder: Path) -> None:
    data = FolderData(class_folder, size=14)
    data.images(np.arange(6))
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(again.images(np.arange(6)), data.images(np.arange(6)))
    assert again.fingerprint() == data.fingerprint()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_it_reads_on_after_a_fork(class_folder: Path) -> None:
    data = FolderData(class_folder)
    data.images(np.arange(6))
    loader = torch.utils.data.DataLoader(
        [0, 1, 2], batch_size=None, num_workers=1, multiprocessing_context="fork", collate_fn=_Read(data)
    )
    assert torch.equal(torch.cat(list(loader)), data.images(np.arange(3)))


class _Read:
    def __init__(self, data: FolderData) -> None:
        self.data = data

    def __call__(self, position: int) -> torch.Tensor:
        return self.data.images(np.array([position]))


def test_the_fingerprint_sees_names_sizes_times_and_settings(class_folder: Path, tmp_path: Path) -> None:
    first = FolderData(class_folder).fingerprint()
    assert FolderData(class_folder, channels=3).fingerprint() == first
    assert FolderData(class_folder, channels=1).fingerprint() != first
    assert FolderData(class_folder, size=8).fingerprint() != first
    moved = tmp_path / "moved"
    shutil.copytree(class_folder, moved)
    assert FolderData(moved).fingerprint() == first
    os.utime(moved / "cat/2.png", ns=(1, 1))
    second = FolderData(moved).fingerprint()
    (moved / "cat/2.png").rename(moved / "cat/3.png")
    third = FolderData(moved).fingerprint()
    (moved / "bird").mkdir()
    fourth = FolderData(moved).fingerprint()
    assert len({first, second, third, fourth}) == 4


def test_an_empty_class_folder_is_kept_as_a_class_and_warned_of(
    class_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (class_folder / "cow").mkdir()
    with caplog.at_level(logging.WARNING, "haptera"):
        data = FolderData(class_folder)
    assert data.names == ("cat", "cow", "dog")
    assert data.targets is not None
    assert data.targets.tolist() == [0, 0, 0, 2, 2, 2]
    assert "the class folder 'cow' holds no images; it is kept as a class" in caplog.text


def test_different_sizes_name_two_files_and_the_remedy(class_folder: Path, put_image: Put) -> None:
    put_image(class_folder / "dog/b.png", (8, 10, 3))
    with pytest.raises(
        HapteraError, match=r"dog/b\.png is 10 x 8 and .*cat/10\.png is 8 x 8 .*give size, such as size=224"
    ):
        FolderData(class_folder)
    assert FolderData(class_folder, size=14).images(np.arange(6)).shape == (6, 3, 14, 14)


def test_a_size_that_no_header_showed_is_found_when_it_is_decoded(class_folder: Path, put_image: Put) -> None:
    data = FolderData(class_folder)
    put_image(class_folder / "dog/b.png", (4, 4, 3))
    with pytest.raises(HapteraError, match=r"dog/b\.png is 4 x 4 and .*cat/10\.png is 8 x 8"):
        data.images(np.arange(6))


def test_a_damaged_image_in_the_middle_is_named(class_folder: Path, put_image: Put) -> None:
    path = class_folder / "dog/b.png"
    put_image(path, (64, 64, 3))
    path.write_bytes(path.read_bytes()[:2000])
    data = FolderData(class_folder, size=8)
    assert len(data.images(np.array([0, 1]))) == 2
    with pytest.raises(HapteraError, match=r"cannot read the image .*dog/b\.png"):
        data.images(np.arange(6))


def test_a_folder_that_is_called_by_a_number_is_named_with_the_one_around_it(tmp_path: Path, put_image: Put) -> None:
    put_image(tmp_path / "contrast" / "2" / "cat" / "1.png")
    assert FolderData(tmp_path / "contrast" / "2").name == "contrast/2"
    assert FolderData(tmp_path / "contrast" / "2" / "cat").name == "cat"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match=r"no images in .*: it holds no files; \.jpg, \.jpeg, \.png, .* are read"):
        open_data(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(HapteraError, match="it holds no files"):
        open_data(tmp_path)


def test_a_folder_without_images_says_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    for name in ("a.psd", "cat/b.PSD", "cat/README"):
        (tmp_path / name).write_text("")
    with pytest.raises(HapteraError, match=r"found 2 of \.psd, 1 of no suffix"):
        open_data(tmp_path)


def test_images_beside_class_folders_are_refused(class_folder: Path, put_image: Put) -> None:
    put_image(class_folder / "stray.png")
    with pytest.raises(HapteraError, match=r"pets holds images \(stray\.png, \.\.\.\) beside folders of images \(cat/"):
        open_data(class_folder)


def test_a_folder_without_images_beside_flat_images_does_no_harm(tmp_path: Path, put_image: Put) -> None:
    put_image(tmp_path / "a.png")
    (tmp_path / "notes").mkdir()
    assert FolderData(tmp_path).targets is None


def test_the_parts_of_a_data_set_are_not_taken_for_its_classes(tmp_path: Path, put_image: Put) -> None:
    for name in ("train/cat/a.png", "test/cat/a.png"):
        put_image(tmp_path / name)
    with pytest.raises(HapteraError, match=r"the parts of a data set \(test, train\).*such as .*/test"):
        open_data(tmp_path)


def test_hidden_folders_are_not_seen(class_folder: Path, put_image: Put) -> None:
    put_image(class_folder / ".cache/a.png")
    put_image(class_folder / "cat/.cache/a.png")
    data = FolderData(class_folder)
    assert data.names == ("cat", "dog")
    assert len(data) == 6


def test_links_are_followed_and_broken_ones_named(class_folder: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "cat").symlink_to(class_folder / "cat")
    assert len(FolderData(linked)) == 3
    (linked / "gone.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(HapteraError, match=r"cannot read .*gone\.png: No such file"):
        FolderData(linked)


def test_a_folder_that_links_to_itself_is_refused(class_folder: Path) -> None:
    (class_folder / "cat/loop").symlink_to(class_folder / "cat")
    with pytest.raises(HapteraError, match=r"cat/loop is a link to a folder that it is in"):
        FolderData(class_folder)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match=r"cannot list the folder .*nowhere: No such file"):
        FolderData(tmp_path / "nowhere")
