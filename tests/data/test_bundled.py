"""The digits of scikit-learn."""

import numpy as np
import pytest
import torch

from haptera.data import ArrayData, digits, open_data
from haptera.errors import HapteraError


def test_open_data_gives_the_test_half_at_32_pixels() -> None:
    data = open_data("digits")
    assert isinstance(data, ArrayData)
    assert data.name == "digits"
    assert data.names == tuple("0123456789")
    images = data.images(np.arange(len(data)))
    assert images.shape == (len(data), 1, 32, 32)
    assert images.min() == 0
    assert images.max() == 1
    assert data.fingerprint() == digits().fingerprint()


def test_the_halves_are_disjoint_stratified_and_fixed() -> None:
    train, test, everything = digits("train"), digits("test"), digits("all")
    assert len(everything) == 1797
    assert sorted([*train.rows, *test.rows]) == everything.rows.tolist()
    for split in (train, test):
        assert split.targets is not None
        assert everything.targets is not None
        counts = np.bincount(split.targets)
        assert (abs(2 * counts - np.bincount(everything.targets)) <= 1).all()
        assert np.array_equal(split.targets, everything.targets[split.rows])
        assert torch.equal(split.images(np.arange(5)), everything.images(split.rows[:5]))
    assert train.rows[:8].tolist() == digits("train").rows[:8].tolist()


def test_the_global_generators_are_left_alone() -> None:
    state, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    digits()
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numbers)  # noqa: NPY002


def test_eight_pixels_are_the_originals() -> None:
    from sklearn.datasets import load_digits

    data = digits("all", size=8)
    assert np.array_equal(data.images(np.arange(10))[:, 0].numpy() * 16, load_digits().images[:10])


def test_size_and_channels_are_taken() -> None:
    assert open_data("digits", size=16, channels=3).images(np.arange(2)).shape == (2, 3, 16, 16)


def test_another_split_names_the_nearest() -> None:
    with pytest.raises(HapteraError, match="unknown split of digits 'tests'; did you mean 'test'"):
        digits("tests")
