"""A pickle in an HDF5 file is read only if it holds plain values; what would run code is refused, and does not run."""

import os
import pickle
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import tables

from haptera.errors import HapteraError
from haptera.files.deeplabcut import read_deeplabcut
from haptera.files.hdf5 import check_plain
from haptera.recordings.reading import read_recording


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def path(tmp_path):
    columns = pd.MultiIndex.from_product([["net"], ["nose"], ["x", "y"]], names=["scorer", "bodyparts", "coords"])
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=columns)
    frame.to_hdf(tmp_path / "tracks.h5", key="df_with_missing", format="table")
    return tmp_path / "tracks.h5"


def in_attribute(path, content):
    with h5py.File(path, "a") as file:
        file["df_with_missing"].attrs["non_index_axes"] = np.bytes_(content)


def in_text_of_variable_length(path, content):
    with h5py.File(path, "a") as file:
        file["df_with_missing"].attrs["non_index_axes"] = np.array(content, h5py.string_dtype("ascii"))


def in_the_root(path, content):
    with h5py.File(path, "a") as file:
        file.attrs["TITLE"] = np.bytes_(content)


def in_a_row(path, content):
    with tables.open_file(path, "a") as file:
        rows = file.create_vlarray("/df_with_missing", "names", tables.UInt8Atom())
        rows.append(np.frombuffer(content, np.uint8))
        rows.attrs.PSEUDOATOM = "object"


def after_text_of_python_2(content):
    """Text that is not ASCII, which PyTables takes for Latin-1 in a second try."""
    return b"S'\xe9'\n0" + content


HIDING = [in_attribute, in_text_of_variable_length, in_the_root, in_a_row]


@pytest.mark.parametrize("changed", [bytes, after_text_of_python_2])
@pytest.mark.parametrize("hide", HIDING)
def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(hide, changed, path):
    target = path.parent / "was here"
    hide(path, changed(pickle.dumps(Attack(target), protocol=0)))
    for read in (check_plain, read_deeplabcut, read_recording):
        with pytest.raises(HapteraError, match=r"tracks.h5: .* asks for (posix|nt).mkdir, and could run code"):
            read(path)
    assert not target.exists()


def test_the_attack_would_have_worked(path):
    target = path.parent / "was here"
    in_attribute(path, pickle.dumps(Attack(target), protocol=0))
    with suppress(Exception):
        pd.read_hdf(path)
    assert target.is_dir()


def test_plain_values_and_text_that_is_no_pickle_pass(path):
    with h5py.File(path, "a") as file:
        group = file["df_with_missing"]
        group.attrs["remark"] = "cage 3, as before."
        group.attrs["numbers"] = np.arange(3)
        group.attrs["plain"] = np.bytes_(pickle.dumps({"a": [1, 2.5, None, ("b", True)]}, protocol=0))
        group.attrs["nothing"] = h5py.Empty("S1")
    check_plain(path)
    assert read_deeplabcut(path).keypoints.tolist() == [[[0, 1]], [[2, 3]], [[4, 5]]]


def test_what_is_no_hdf5_file_is_named(tmp_path):
    (tmp_path / "a.h5").write_text("what is this?")
    with pytest.raises(HapteraError, match=r"cannot read .*a.h5: it is not an HDF5 file"):
        check_plain(tmp_path / "a.h5")
