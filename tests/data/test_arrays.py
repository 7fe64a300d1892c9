"""Images in an array in memory."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from haptera.data import ArrayData
from haptera.errors import HapteraError

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 5, 6, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(0, 12))
def test_batches_do_not_depend_on_the_cut(positions: list[int], cut: int) -> None:
    data = ArrayData(IMAGES, channels=1)
    whole = data.images(np.array(positions, np.int64))
    parts = [data.images(np.array(part, np.int64)) for part in (positions[:cut], positions[cut:])]
    assert whole.shape == (len(positions), 1, 5, 6)
    assert torch.equal(whole, torch.cat(parts))


def test_bytes_and_floats_of_the_same_images_are_equal() -> None:
    everything = np.arange(7)
    floats = ArrayData(IMAGES.astype(np.float32) / np.float32(255))
    assert torch.equal(ArrayData(IMAGES).images(everything), floats.images(everything))


def test_bytes_are_held_as_bytes_and_not_copied() -> None:
    data = ArrayData(IMAGES)
    assert np.shares_memory(data._array(), IMAGES)


def test_a_batch_can_be_written_without_touching_the_data() -> None:
    data = ArrayData(IMAGES.astype(np.float32) / 255)
    before = data.images(np.arange(7))
    data.images(np.arange(7)).zero_()
    assert torch.equal(data.images(np.arange(7)), before)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16])
def test_tensors_are_read_like_arrays(dtype: torch.dtype) -> None:
    images = torch.zeros(2, 3, 4, 4, dtype=dtype)
    data = ArrayData(images, torch.tensor([1, 0]))
    assert data.images(np.array([1])).shape == (1, 3, 4, 4)
    assert data.targets is not None
    assert data.targets.tolist() == [1, 0]


def test_rows_targets_and_names_are_as_given() -> None:
    data = ArrayData(IMAGES, LABELS.astype(np.uint8), "pets", ["cat", "dog", "owl"], ids=np.arange(7) * 10)
    assert data.name == "pets"
    assert data.names == ("cat", "dog", "owl")
    assert data.rows.tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert data.targets is not None
    assert data.targets.dtype == data.rows.dtype == np.int64
    assert data.classes is None
    assert len(data) == 7


def test_without_labels_there_are_no_targets() -> None:
    data = ArrayData(IMAGES)
    assert data.targets is None
    assert data.names is None
    assert data.rows.tolist() == list(range(7))


def test_it_pickles_whole() -> None:
    data = ArrayData(IMAGES, LABELS)
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(again.images(np.arange(7)), data.images(np.arange(7)))
    assert again.fingerprint() == data.fingerprint()


def test_the_fingerprint_is_of_pixels_labels_and_settings_but_not_of_the_name() -> None:
    other = IMAGES.copy()
    other[3, 2, 1, 0] ^= 1
    prints = {
        ArrayData(IMAGES).fingerprint(),
        ArrayData(other).fingerprint(),
        ArrayData(IMAGES, LABELS).fingerprint(),
        ArrayData(IMAGES, LABELS[::-1]).fingerprint(),
        ArrayData(IMAGES, channels=1).fingerprint(),
        ArrayData(IMAGES, ids=np.arange(7) + 1).fingerprint(),
    }
    assert len(prints) == 6
    assert ArrayData(IMAGES, name="a").fingerprint() == ArrayData(IMAGES, name="b", channels=3).fingerprint()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS.astype(float), "labels are float64; integers were expected"),
        (LABELS.astype(bool), "labels are bool; integers"),
        (np.array(list("abcabca")), "labels are <U1; integers"),
        (LABELS[:, None], r"labels have shape \(7, 1\); one number per image, \(7,\)"),
        (LABELS[:5], "there are 5 labels for 7 images"),
        (np.where(np.arange(7) == 4, -3, LABELS), "labels must be 0 or more .*found -3 in row 4"),
        (np.full(7, 2**63, np.uint64), "labels must be 0 or more .*found 9223372036854775808 in row 0"),
    ],
)
def test_wrong_labels_are_refused(labels: np.ndarray, message: str) -> None:
    with pytest.raises(HapteraError, match=f"pets: {message}"):
        ArrayData(IMAGES, labels, "pets")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([0, 1, 2, 3, 1, 5, 6]), "ids of rows 1 and 4 are both 1; each may occur once"),
        (np.arange(6), "there are 6 ids for 7 images"),
        (np.arange(7) - 1, "ids must be 0 or more .*found -1 in row 0"),
        (np.arange(7.0), "ids are float64"),
    ],
)
def test_wrong_ids_are_refused(ids: np.ndarray, message: str) -> None:
    with pytest.raises(HapteraError, match=message):
        ArrayData(IMAGES, ids=ids)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["cat", "dog"], "the label in row 2 is 2, but classes names only 2, 0 to 1"),
        (["cat", "dog", "cat"], "classes names 'cat' twice"),
        ([1, 2, 3], "classes are int64 of shape .*a list of names was expected"),
        ([["cat", "dog", "owl"]], r"shape \(1, 3\)"),
    ],
)
def test_wrong_names_of_classes_are_refused(classes: list[str], message: str) -> None:
    with pytest.raises(HapteraError, match=message):
        ArrayData(IMAGES, LABELS, classes=classes)


def test_names_as_bytes_are_decoded() -> None:
    assert ArrayData(IMAGES, LABELS, classes=np.array([b"a", b"b", "ü".encode()])).names == ("a", "b", "ü")


def test_a_position_past_the_end_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        ArrayData(IMAGES).images(np.array([7]))
