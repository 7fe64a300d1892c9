"""Images that were decoded once come from memory, and are the same."""

import pickle
import threading

import numpy as np
import pytest
import torch

from haptera.data import ArrayData, FolderData
from haptera.data.kept import KeptPixels
from haptera.data.mapping import MappedData


class Counted(FolderData):
    """Remembers which images were decoded."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.decoded = []

    def decode(self, position):
        self.decoded.append(position)
        return super().decode(position)


@pytest.fixture
def data(tmp_path, put_image):
    for number in range(6):
        put_image(tmp_path / f"class {number % 2}" / f"{number}.png", seed=number)
    return Counted(tmp_path)


@pytest.fixture
def again(tmp_path):
    """The same files, read as they always are."""
    return FolderData(tmp_path)


def draws(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 6, 40)


def test_every_image_is_decoded_once_and_is_what_the_data_gives(data, again):
    kept = KeptPixels(data)
    for seed in range(3):
        assert torch.equal(kept(draws(seed)), again.pixels(draws(seed)))
    assert sorted(data.decoded) == sorted(set(draws(0)) | set(draws(1)) | set(draws(2)))


def test_who_changes_what_was_given_does_not_change_what_is_kept(data, again):
    kept = KeptPixels(data)
    for _ in range(2):
        kept(np.arange(6)).fill_(7)
    assert torch.equal(kept(np.arange(6)), again.pixels(np.arange(6)))


def test_no_more_is_kept_than_there_is_room_for(data, again):
    kept = KeptPixels(data, room=2 * 8 * 8 * 3)
    for _ in range(2):
        assert torch.equal(kept(np.arange(6)), again.pixels(np.arange(6)))
    assert len(data.decoded) == 6 + 4


def test_a_copy_for_another_process_begins_empty(data, again):
    kept = KeptPixels(data)
    kept(np.arange(6))
    size = len(pickle.dumps(KeptPixels(data)))
    assert len(pickle.dumps(kept)) == size
    copy = pickle.loads(pickle.dumps(kept))
    assert torch.equal(copy(draws(0)), again.pixels(draws(0)))


def test_threads_get_their_own_images(data, again):
    kept, right = KeptPixels(data), []

    def read(seed):
        right.append(all(torch.equal(kept(draws(seed + k)), again.pixels(draws(seed + k))) for k in range(5)))

    threads = [threading.Thread(target=read, args=(10 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4


def test_nothing_is_kept_of_data_that_is_in_memory_or_has_no_bytes():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 4, 4, 3), dtype=np.uint8)
    in_memory = KeptPixels(ArrayData(pixels, np.zeros(6, int)))
    assert torch.equal(in_memory(np.array([2])), torch.from_numpy(pixels[2:3]).permute(0, 3, 1, 2))
    assert not in_memory._kept
    assert KeptPixels(ArrayData(pixels / np.float32(255), np.zeros(6, int)))(np.array([2])) is None


def test_data_with_mapped_classes_gives_the_bytes_of_its_source(data, again):
    mapped = MappedData(data, {"class 1": (3,)})
    assert torch.equal(KeptPixels(mapped)(np.array([2, 0])), again.pixels(np.array([5, 3])))


def test_a_subclass_that_makes_images_in_its_own_way_has_no_bytes(data, tmp_path):
    class Darker(FolderData):
        def images(self, positions):
            return super().images(positions) / 2

    darker = Darker(tmp_path)
    assert torch.equal(darker.images(np.arange(6)), data.images(np.arange(6)) / 2)
    assert KeptPixels(darker)(np.arange(6)) is None
