"""load_data and load_deeplabcut read the array that is meant, and no pickle."""

import pickle

import numpy as np
import pytest

import haptera.compat.cebra as cebra
from haptera.errors import HapteraError

VALUES = np.arange(12.0).reshape(6, 2) + 0.5


def test_arrays_are_found_by_their_key_and_the_first_is_said(tmp_path, caplog):
    np.savez(tmp_path / "a.npz", neural=VALUES, place=np.arange(6))
    np.save(tmp_path / "a.npy", VALUES)
    assert cebra.load_data(tmp_path / "a.npz", key="place").tolist() == list(range(6))
    assert cebra.load_data(file=str(tmp_path / "a.npy")).tolist() == VALUES.tolist()
    assert not caplog.records
    assert cebra.load_data(tmp_path / "a.npz").tolist() == VALUES.tolist()
    assert "neural, place; the first is taken" in caplog.text
    with pytest.raises(HapteraError, match="did you mean 'place'"):
        cebra.load_data(tmp_path / "a.npz", key="plac")


def test_a_header_is_not_data(tmp_path, caplog):
    rows = "\n".join(",".join(map(str, row)) for row in VALUES.tolist())
    (tmp_path / "named.csv").write_text(f"x,y\n{rows}\n")
    (tmp_path / "plain.csv").write_text(rows)
    assert cebra.load_data(tmp_path / "named.csv").tolist() == VALUES.tolist()
    assert cebra.load_data(tmp_path / "plain.csv").tolist() == VALUES.tolist()
    assert cebra.load_data(tmp_path / "named.csv", columns=["y"]).ravel().tolist() == VALUES[:, 1].tolist()
    assert not caplog.records
    (tmp_path / "pandas.csv").write_text(f"0,1\n{rows}\n")
    assert len(cebra.load_data(tmp_path / "pandas.csv")) == 7
    assert "as pandas names columns" in caplog.text


def test_a_pickle_is_not_read(tmp_path):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(VALUES))
    with pytest.raises(HapteraError, match="haptera reads none"):
        cebra.load_data(tmp_path / "a.pkl")


def test_keypoints_of_a_tracking_table_stand_side_by_side(tmp_path):
    head = "scorer,me,me,me,me,me,me\nbodyparts,nose,nose,nose,tail,tail,tail\ncoords,x,y,likelihood,x,y,likelihood\n"
    rows = [f"{at},{at},{2 * at},0.9,{3 * at},{4 * at},0.9" for at in range(5)]
    (tmp_path / "dlc.csv").write_text(head + "\n".join(rows))
    places = cebra.load_deeplabcut(tmp_path / "dlc.csv", keypoints=["tail"])
    assert places.tolist() == [[3 * at, 4 * at] for at in range(5)]
    assert cebra.load_deeplabcut(tmp_path / "dlc.csv").shape == (5, 4)
    with pytest.raises(HapteraError, match="keypoint"):
        cebra.load_deeplabcut(tmp_path / "dlc.csv", keypoints=["ear"])
