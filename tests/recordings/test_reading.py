"""Every kind of file gives the same recording, and a mistake in the name or the content says what to fix."""

import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from haptera.errors import HapteraError
from haptera.recordings.reading import read_recording

GENERATOR = np.random.default_rng(0)
SPIKES = GENERATOR.poisson(2, (50, 4)).astype(float)
PLACE = np.linspace(0, 1, 50)
TRIAL = np.repeat([1, 2], 25)


def write_npz(path):
    np.savez(path, spikes=SPIKES, place=PLACE, trial=TRIAL)


def write_mat(path):
    savemat(path, {"spikes": SPIKES, "place": PLACE, "trial": TRIAL})


def write_new_mat(path):
    with h5py.File(path, "w") as file:
        file["spikes"], file["place"], file["trial"] = SPIKES.T, PLACE[:, None], TRIAL[:, None]


def write_h5(path):
    with h5py.File(path, "w") as file:
        file["spikes"], file["place"], file["trial"] = SPIKES, PLACE, TRIAL


def write_csv(path):
    pd.DataFrame({f"unit{k}": SPIKES[:, k] for k in range(4)} | {"place": PLACE, "trial": TRIAL}).to_csv(
        path, index=False
    )


FILES = {
    "a.npz": (write_npz, "spikes"),
    "a.mat": (write_mat, "spikes"),
    "b.mat": (write_new_mat, "spikes"),
    "a.h5": (write_h5, "spikes"),
    "a.csv": (write_csv, "unit*"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_recording(name, tmp_path):
    write, signal = FILES[name]
    write(tmp_path / name)
    for asked in (signal, None):
        found = read_recording(tmp_path / name, asked, ["place"], trials="trial")
        assert np.array_equal(found.signal(), SPIKES)
        assert np.allclose(found.label("place").values, PLACE)
        assert found.label("place").kind == "continuous"
        assert np.array_equal(found.trials, TRIAL)


def test_an_npy_file_is_one_signal_that_stays_on_disk(tmp_path):
    np.save(tmp_path / "a.npy", SPIKES)
    signal = read_recording(tmp_path / "a.npy").signal()
    assert isinstance(signal, np.memmap)
    assert np.array_equal(signal, SPIKES)


def test_a_structure_of_matlab_has_paths(tmp_path):
    savemat(tmp_path / "a.mat", {"session": {"spikes": SPIKES, "place": PLACE}})
    found = read_recording(tmp_path / "a.mat", "session/spikes", ["session/place"])
    assert np.array_equal(found.signal(), SPIKES)


def test_kind_of_a_label_can_be_said(tmp_path):
    np.savez(tmp_path / "a.npz", spikes=SPIKES, heading=np.linspace(0, 359, 50), phase=TRIAL)
    found = read_recording(tmp_path / "a.npz", labels=["heading:degrees", "phase:continuous"])
    assert found.label("heading").kind == "angle"
    assert found.label("heading").values.max() < 2 * np.pi
    assert found.label("phase").kind == "continuous"


def test_times_of_a_table_make_blocks(tmp_path):
    times = np.arange(50) * 0.1 + np.repeat([0, 3], 25)
    pd.DataFrame({"time": times, "a": SPIKES[:, 0], "b": SPIKES[:, 1], "side": np.repeat(["l", "r"], 25)}).to_csv(
        tmp_path / "a.csv", index=False
    )
    found = read_recording(tmp_path / "a.csv", labels=["side"])
    assert found.signal().shape == (50, 2)  # neither the time nor the label
    assert found.blocks.tolist() == [0] * 25 + [1] * 25
    assert found.label("side").classes == ("l", "r")


def test_empty_cells_of_a_table_are_samples_left_out_with_a_note(tmp_path):
    table = pd.DataFrame({"unit0": SPIKES[:, 0], "unit1": SPIKES[:, 1], "side": np.repeat(["l", "r"], 25)})
    table["phase"] = np.arange(50) % 3
    table.loc[3, "side"] = None
    table.loc[[7, 8], "phase"] = None
    table.to_csv(tmp_path / "a.csv", index=False)
    found = read_recording(tmp_path / "a.csv", "unit*", ["side", "phase"])
    assert found.notes == ("3 of 50 samples left out: 1 without side, 2 without phase",)
    assert found.label("side").classes == ("l", "r")
    assert found.label("phase").classes == ("0", "1", "2")
    assert found.blocks.max() == 2


def tracks():
    frames = np.arange(6)
    columns = pd.MultiIndex.from_product([["net"], ["nose", "tail"], ["x", "y", "likelihood"]])
    values = np.zeros((6, 6))
    values[:, 0], values[:, 1], values[:, 2] = frames, 2 * frames, 1.0
    values[:, 3], values[:, 4], values[:, 5] = 10 + frames, 5, [1, 1, 0.1, 1, 1, 1]
    values[2, 3] = 900  # a jump that the network itself does not believe
    return pd.DataFrame(values, columns=columns.set_names(["scorer", "bodyparts", "coords"]))


WRITERS = {
    "tracks.csv": lambda frame, path: frame.to_csv(path),
    "tracks.h5": lambda frame, path: frame.to_hdf(path, key="df_with_missing", format="table"),  # as of videos
    "fixed.h5": lambda frame, path: frame.to_hdf(path, key="df_with_missing"),  # as of labels
}


@pytest.mark.parametrize("name", WRITERS)
def test_body_parts_of_deeplabcut_are_labels_and_together_a_signal(name, tmp_path):
    WRITERS[name](tracks(), tmp_path / name)
    found = read_recording(tmp_path / name, labels=["nose", "tail"])
    assert found.signal("tracks").shape == (6, 4)
    assert found.label("nose").values[:, 1].tolist() == [0, 2, 4, 6, 8, 10]
    assert found.label("tail").values[:, 0].tolist() == [10, 11, 12, 13, 14, 15]  # unlikely: interpolated
    with pytest.raises(HapteraError, match=r"unknown label in .* 'nosse'; did you mean 'nose'"):
        read_recording(tmp_path / name, labels=["nosse"])


def test_a_table_of_deeplabcut_is_the_same_as_csv_and_hdf5(tmp_path):
    frame = tracks()
    generator = np.random.default_rng(3)
    frame.iloc[:, [0, 1, 3, 4]] = generator.uniform(0, 640, (6, 4))
    frame.iloc[3, :2] = np.nan
    found = []
    for name, write in WRITERS.items():
        write(frame, tmp_path / name)
        found.append(read_recording(tmp_path / name, "tracks", ["nose", "tail"]))
    for other in found[1:]:
        assert np.array_equal(other.signal(), found[0].signal())
        assert list(other.labels) == ["nose", "tail"]
        assert all(np.array_equal(other.label(part).values, found[0].label(part).values) for part in other.labels)


def test_a_table_of_deeplabcut_in_hdf5_says_what_it_needs(tmp_path, monkeypatch):
    WRITERS["tracks.h5"](tracks(), tmp_path / "tracks.h5")
    monkeypatch.setitem(sys.modules, "tables", None)
    with pytest.raises(HapteraError, match=r"tracks.h5 is a table in HDF5, .* pip install 'haptera\[pose\]'"):
        read_recording(tmp_path / "tracks.h5")


def test_hdf5_that_only_looks_like_a_table_of_deeplabcut_is_refused(tmp_path):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["df_with_missing/table"] = np.arange(3)
    with pytest.raises(HapteraError, match=r"cannot read the table .*odd.h5"):
        read_recording(tmp_path / "odd.h5")
    pd.DataFrame({"x": [1.0, 2.0]}).to_hdf(tmp_path / "flat.h5", key="df_with_missing")
    with pytest.raises(HapteraError, match=r"flat.h5 has columns with the levels \[None\]"):
        read_recording(tmp_path / "flat.h5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["plaec"]}, "unknown label in .*a.npz 'plaec'; did you mean 'place'"),
        ({"signal": "spike"}, "unknown signal in .* 'spike'; did you mean 'spikes'"),
        ({"trials": "trials"}, "did you mean 'trial'"),
        ({"labels": ["place:angel"]}, "unknown kind of label 'place' 'angel'; did you mean 'angle'"),
        ({"labels": ["short"]}, "label 'short' has 40 samples"),
        ({"signal": "turned", "labels": ["place"]}, "it looks transposed"),
        ({"signal": "holes"}, "every sample is without a value of holes"),
        ({"bin": 0.1}, "bin is for .nwb files"),
        ({"signal": None}, "name the signal"),
    ],
)
def test_mistakes_in_arrays_say_what_to_mend(arguments, message, tmp_path):
    holes = SPIKES.copy()
    holes[:] = np.nan
    np.savez(tmp_path / "a.npz", spikes=SPIKES, place=PLACE, trial=TRIAL, short=PLACE[10:], turned=SPIKES.T,
             holes=holes, counts=SPIKES)  # fmt: skip
    with pytest.raises(HapteraError, match=message):
        read_recording(tmp_path / "a.npz", **({"signal": "spikes"} | arguments))


def test_files_that_are_not_what_they_seem(tmp_path):
    np.savez(tmp_path / "mouse.npz", spikes=SPIKES)
    with pytest.raises(HapteraError, match=r"there is no file .*mose.npz; did you mean 'mouse.npz'"):
        read_recording(tmp_path / "mose.npz")
    for name in ("a.npz", "a.npy", "a.mat", "a.h5", "a.nwb"):
        (tmp_path / name).write_bytes(b"what is this? " * 100)
        with pytest.raises(HapteraError, match=name):
            read_recording(tmp_path / name)
    (tmp_path / "a.csv").write_text("1,2,3\n4,5,6\n")
    with pytest.raises(HapteraError, match="begins with numbers"):
        read_recording(tmp_path / "a.csv")
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(HapteraError, match=r"cannot read .*a\.xlsx"):
        read_recording(tmp_path / "a.xlsx")
    (tmp_path / "a.docx").write_text("")
    with pytest.raises(HapteraError, match=r"unknown kind of recording 'a\.docx'"):
        read_recording(tmp_path / "a.docx")
    np.savez(tmp_path / "pickle.npz", spikes=np.array([{}]))
    with pytest.raises(HapteraError, match="only a pickle can"):
        read_recording(tmp_path / "pickle.npz")


def test_a_vector_of_one_value_for_each_trial_is_the_label_of_its_samples(tmp_path):
    trials = np.empty((1, 3), object)
    for place, length in enumerate((20, 30, 25)):
        trials[0, place] = np.random.default_rng(place).normal(size=(length, 4))
    savemat(tmp_path / "a.mat", {"spikes": trials, "choice": np.array([1.0, 2.0, 1.0])})
    found = read_recording(tmp_path / "a.mat", labels=["choice:discrete"])
    assert found.label("choice").readable.tolist() == ["1"] * 20 + ["2"] * 30 + ["1"] * 25


def test_the_index_of_a_table_is_no_channel(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["u0", "u1", "u2"])
    frame.to_csv(tmp_path / "a.csv")
    found = read_recording(tmp_path / "a.csv")
    assert found.signal().shape == (30, 3)
    assert "Unnamed: 0 left out, which counts the rows" in found.notes
    assert read_recording(tmp_path / "a.csv", "Unnamed*").signal().shape == (30, 1)


def test_a_clock_in_milliseconds_is_doubted(tmp_path):
    frame = pd.DataFrame({"u0": np.arange(30) % 7 / 2, "u1": np.arange(30) % 5 / 2, "time": np.arange(30) * 100})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert "a sample is 100 s long; are times in seconds?" in read_recording(tmp_path / "a.csv").notes
