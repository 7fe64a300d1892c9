"""The quick way through `.npz` files gives what NumPy gives, and leaves everything unusual to it."""

import io

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.files import archive
from haptera.files.archive import stored_arrays
from haptera.files.npz import read_npz

ARRAYS = {
    "logits": np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32),
    "columns": np.asfortranarray(np.arange(12, dtype=">i4").reshape(3, 4)),
    "context/shift/values": np.array(["fog", "snow é"]),
    "flags": np.array([True, False]),
    "scalar": np.array(2.5),
    "empty": np.empty((0, 7), np.float16),
    "provenance": np.frombuffer(b'{"a": 1}', np.uint8),
}


def content_of(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def test_arrays_are_those_that_numpy_reads_and_may_be_written_to():
    found = stored_arrays(content_of(**ARRAYS))
    assert list(found) == list(ARRAYS)
    for key, array in ARRAYS.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype
        assert found[key].flags.writeable
        assert found[key].flags.f_contiguous == array.flags.f_contiguous


@pytest.mark.parametrize(
    "content",
    [
        content_of(np.savez_compressed, a=np.zeros(100)),
        content_of(a=np.array([{}], dtype=object)),
        content_of(a=np.zeros(3)) + b"more",
        content_of(a=np.zeros(3))[:-1],
        b"PK\x05\x06",
        b"",
    ],
)
def test_what_is_unusual_is_left_to_others(content):
    assert stored_arrays(content) is None


def test_a_flipped_bit_never_gives_other_numbers(tmp_path):
    content = content_of(a=np.arange(3), b=np.array(["x"]))
    for place in range(len(content)):
        spoilt = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        found = stored_arrays(spoilt)
        assert found is None or (set(found) <= {"a", "b"} and all(found["a"] == np.arange(3)) and found["b"] == ["x"])
    (tmp_path / "x.npz").write_bytes(content[:150] + b"?" + content[151:])
    with pytest.raises(HapteraError, match=r"x\.npz"):
        read_npz(tmp_path / "x.npz")


def test_an_archive_laid_out_like_an_earlier_one_has_its_own_numbers():
    for number in range(5):
        arrays = {"a": np.arange(6.0).reshape(2, 3) + number, "b": np.array([number]), "c": np.empty(0)}
        found = stored_arrays(content_of(**arrays))
        assert found is not None
        assert {key: value.tolist() for key, value in found.items()} == {k: v.tolist() for k, v in arrays.items()}


@pytest.mark.parametrize(
    "arrays",
    [
        {"a": np.arange(6.0).reshape(3, 2), "b": np.array([1])},
        {"a": np.arange(6).reshape(2, 3), "b": np.array([1])},
        {"a": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "b": np.array([1])},
        {"x": np.arange(6.0).reshape(2, 3), "b": np.array([1])},
        {"b": np.array([1]), "a": np.arange(6.0).reshape(2, 3)},
    ],
    ids=str,
)
def test_an_archive_of_the_same_size_with_another_layout_is_read_anew(arrays):
    content = content_of(a=np.arange(6.0).reshape(2, 3), b=np.array([1]))
    assert stored_arrays(content)
    assert len(content_of(**arrays)) == len(content)
    found = stored_arrays(content_of(**arrays))
    assert list(found) == list(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array, strict=True)
        assert found[key].flags.f_contiguous == array.flags.f_contiguous


def test_a_flipped_bit_is_found_in_a_layout_that_is_known():
    content = content_of(a=np.arange(3), b=np.array(["x"]))
    for place in range(len(content)):
        assert stored_arrays(content)
        spoilt = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        found = stored_arrays(spoilt)
        assert found is None or (set(found) <= {"a", "b"} and all(found["a"] == np.arange(3)) and found["b"] == ["x"])


def test_layouts_that_are_remembered_are_bounded():
    for number in range(archive.LAYOUTS + 10):
        assert stored_arrays(content_of(a=np.zeros(number)))["a"].shape == (number,)
    assert len(archive._seen) <= archive.LAYOUTS
