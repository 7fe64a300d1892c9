"""Files that people have: each is read to what is known to be in it, or says in a sentence why not."""

from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from haptera.errors import HapteraError
from haptera.recordings.pynapple import from_pynapple
from haptera.recordings.reading import Source
from haptera.recordings.spikes import from_spikes

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.poisson(2.0, (100, 3)).astype(float)
STAMPS = np.arange(200) / 20
PLACE = np.sin(STAMPS)
UNITS = [np.array([0.05, 0.15, 0.16, 9.9]), np.zeros(0), np.array([4.25])]
"""Of the bins of 0.1 s from 0 to 9.9 s: one spike in the first, two in the second, one of the last unit in bin 42."""


def read(path, *labels, **more):
    return Source(path, labels=list(labels), **more).read()


def cells(*parts):
    made = np.empty(len(parts), object)
    made[:] = parts
    return made


def check_counts(recording):
    counts = recording.signal()
    assert counts[:2, 0].tolist() == [1, 2]
    assert counts[42].tolist() == [0, 0, 1]
    assert counts[:, 1].sum() == 0
    assert recording.times[0] == pytest.approx(0.05)


def test_spike_times_as_lists():
    recording = from_spikes(UNITS, bin=0.1, labels={"place": (STAMPS, PLACE)}, source="x")
    check_counts(recording)
    assert recording.label("place").values[0] == pytest.approx(PLACE[:2].mean())


def test_cells_of_spike_times_in_matlab_5(tmp_path):
    savemat(tmp_path / "a.mat", {"spikes": cells(*UNITS), "times": STAMPS, "place": PLACE})
    recording = read(tmp_path / "a.mat", "place", bin=0.1)
    check_counts(recording)
    assert recording.channel_names() == ["0", "1", "2"]


def test_cells_of_spike_times_in_matlab_7_3(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        references = []
        for place, times in enumerate(UNITS):
            inner = file.create_dataset(
                f"#refs#/{place}", data=times[:, None] if len(times) else np.zeros(2, np.uint64)
            )
            if not len(times):
                inner.attrs["MATLAB_empty"] = 1
            references.append(inner.ref)
        file.create_dataset("spikes", data=np.array(references, object)[None], dtype=h5py.ref_dtype)
        file["times"], file["place"] = STAMPS[None], PLACE[None]
    check_counts(read(tmp_path / "a.mat", "place", bin=0.1))


def test_cells_of_trials_of_unequal_lengths(tmp_path):
    trials = cells(COUNTS[:30], COUNTS[30:75], COUNTS[75:])
    savemat(
        tmp_path / "a.mat",
        {"X": trials, "place": cells(*(np.arange(len(one)) for one in trials)), "side": cells(0, 1, 0)},
    )
    recording = read(tmp_path / "a.mat", "place", "side", signal="X")
    assert np.array_equal(recording.signal(), COUNTS)
    assert np.bincount(recording.trials).tolist() == [30, 45, 25]
    assert recording.blocks.max() == 2
    assert recording.label("side").values.tolist() == [0] * 30 + [1] * 45 + [0] * 25
    assert recording.notes[0] == "3 cells of X are trials"


def test_cells_of_channels_by_samples_are_turned(tmp_path):
    savemat(tmp_path / "a.mat", {"X": cells(COUNTS[:30].T, COUNTS[30:].T)})
    recording = read(tmp_path / "a.mat", signal="X")
    assert np.array_equal(recording.signal(), COUNTS)
    assert "turned to (samples, channels)" in recording.notes[0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_tables(tmp_path, ending):
    frame = pd.DataFrame(COUNTS, columns=["unit0", "unit1", "unit2"]).assign(
        place=PLACE[:100], side=["left", "right"] * 50
    )
    writer = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[ending]
    writer(tmp_path / f"a.{ending}", index=False)
    recording = read(tmp_path / f"a.{ending}", "place", "side", signal="unit*")
    assert np.array_equal(recording.signal(), COUNTS)
    assert recording.label("side").classes == ("left", "right")
    assert np.allclose(recording.label("place").values, PLACE[:100])


def test_two_columns_of_spike_times_and_units(tmp_path):
    frame = pd.DataFrame({"spike_times": np.concatenate([UNITS[2], UNITS[0]]), "unit": [7] + [3] * 4})
    frame.to_csv(tmp_path / "a.csv", index=False)
    recording = read(tmp_path / "a.csv", bin=0.1)
    assert recording.channel_names() == ["3", "7"]
    assert recording.signal().sum(0).tolist() == [3, 1]  # the last spike ends the last whole bin


def pynapple_npz(path, times, values=None, index=None):
    arrays = {"t": times, "start": np.array([0.0]), "end": np.array([10.0]), "type": np.array(["TsGroup"])}
    arrays |= {} if values is None else {"d": values}
    arrays |= {} if index is None else {"index": index}
    np.savez(path, **arrays)


def test_a_folder_of_pynapple(tmp_path):
    index = np.concatenate([[0] * 4, [2]])
    pynapple_npz(tmp_path / "units.npz", np.concatenate([UNITS[0], UNITS[2]]), index=index)
    pynapple_npz(tmp_path / "place.npz", STAMPS, PLACE)
    recording = read(tmp_path, "place", bin=0.1)
    assert recording.channel_names() == ["0", "2"]
    assert recording.signal()[:2, 0].tolist() == [1, 2]
    assert recording.label("place").values[0] == pytest.approx(PLACE[:2].mean())
    assert read(tmp_path / "units.npz", bin=0.1).signal().shape[1] == 2


class Group(dict):
    """Stands for a TsGroup."""

    rates = None
    time_support = SimpleNamespace(start=np.array([0.0, 5.0]), end=np.array([2.0, 9.0]))


def test_objects_of_pynapple_inside_their_time_support():
    group = Group({4: SimpleNamespace(t=UNITS[0]), 9: SimpleNamespace(t=UNITS[2])})
    recording = from_pynapple(group, {"place": SimpleNamespace(t=STAMPS, values=PLACE)}, bin=0.1)
    assert recording.channel_names() == ["4", "9"]
    assert len(recording) == 60
    assert recording.blocks.max() == 1
    assert recording.signal().sum() == 3  # spikes at 4.25 and 9.9 s are outside of the support
    frame = SimpleNamespace(t=STAMPS, values=np.column_stack([PLACE, PLACE**2]))
    assert from_pynapple(frame, {"place": SimpleNamespace(t=STAMPS, values=PLACE)}).signal().shape == (200, 2)
    with pytest.raises(HapteraError, match="label 'place' is list; a Tsd"):
        from_pynapple(frame, {"place": [1, 2]})


def suite2p(folder, plane="plane0", cells=4, frames=50):
    where = folder / "suite2p" / plane
    where.mkdir(parents=True)
    traces = np.random.default_rng(cells).normal(size=(cells, frames)).astype(np.float32)
    for name, scale in (("F", 2.0), ("Fneu", 1.0), ("spks", 3.0)):
        np.save(where / f"{name}.npy", scale * traces)
    kept = np.ones((cells, 2), np.float32)
    kept[1, 0] = 0
    np.save(where / "iscell.npy", kept)
    np.save(where / "ops.npy", np.array({"fs": 30.0}, object), allow_pickle=True)  # a pickle, which is not opened
    return traces


def test_a_folder_of_suite2p(tmp_path):
    first, second = suite2p(tmp_path), suite2p(tmp_path, "plane1", cells=3, frames=48)
    recording = read(tmp_path, signal="corrected", bin=0.05)
    expected = np.concatenate([first[[0, 2, 3], :48], second[[0, 2]]]).T * 1.3
    assert np.allclose(recording.signal(), expected, atol=1e-5)
    assert recording.channel_names() == ["plane0/0", "plane0/2", "plane0/3", "plane1/0", "plane1/2"]
    assert recording.step == pytest.approx(0.05)
    assert recording.notes[-1] == "planes have 50, 48 frames; all are cut at their end to 48"
    assert read(tmp_path / "suite2p" / "plane0").signal().shape == (50, 3)
    with pytest.raises(HapteraError, match="did you mean 'spks'"):
        read(tmp_path, signal="spk")
    with pytest.raises(HapteraError, match="is a suite2p folder and has no place"):
        read(tmp_path, "place")


def test_missing_values_of_a_signal_are_left_out_and_counted(tmp_path):
    holes = COUNTS.copy()
    holes[3, 2] = np.nan
    holes[20:90, 1] = np.nan
    np.savez(tmp_path / "a.npz", spikes=holes, place=PLACE[:100])
    recording = read(tmp_path / "a.npz", "place")
    assert np.array_equal(recording.signal(), np.delete(COUNTS, 3, axis=0)[:, [0, 2]])
    assert recording.channel_names() == ["0", "2"]
    assert recording.notes == (
        "1 of 3 channels left out, which miss most of their values: 1",
        "1 of 100 samples left out: 1 without a value of spikes",
    )
    assert recording.blocks.max() == 1


def test_lengths_that_differ_a_little_are_cut_and_said(tmp_path):
    np.savez(tmp_path / "a.npz", spikes=COUNTS, place=PLACE[:99], times=np.arange(100) / 10)
    recording = read(tmp_path / "a.npz", "place")
    assert len(recording) == 99
    assert recording.step == pytest.approx(0.1)
    assert recording.notes == (
        "lengths differ a little (signal 100, place 99); all are cut at their end to 99 samples",
    )


def test_whole_degrees_named_like_an_angle_are_one(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        spikes=COUNTS,
        heading=(np.arange(100) * 7) % 360,
        stimulus_direction=np.arange(100) % 8 * 45,
    )
    recording = read(tmp_path / "a.npz", "heading", "stimulus_direction", signal="spikes")
    assert recording.label("heading").kind == "angle"
    assert recording.label("heading").values[1] == pytest.approx(np.deg2rad(7))
    assert "taken as an angle in degrees" in recording.label("heading").note
    assert recording.label("stimulus_direction").kind == "discrete"  # few directions are classes


def roi_nwb(path, shape):
    with h5py.File(path, "w") as file:
        for name in ("Fluorescence", "Neuropil"):
            group = file.create_group(f"processing/ophys/{name}/RoiResponseSeries")
            group.attrs["neurodata_type"] = "RoiResponseSeries"
            group["data"] = np.arange(np.prod(shape), dtype=float).reshape(shape)
            group["rois"] = np.arange(3)
            start = group.create_dataset("starting_time", data=0.0)
            start.attrs["rate"] = 10.0


@pytest.mark.parametrize("turned", [False, True])
def test_calcium_of_an_nwb_file_without_units(tmp_path, turned):
    roi_nwb(tmp_path / "a.nwb", (3, 40) if turned else (40, 3))
    recording = read(tmp_path / "a.nwb")
    assert recording.signal().shape == (40, 3)
    assert "the signal is processing/ophys/Fluorescence/RoiResponseSeries, as there are no units" in recording.notes[0]
    assert any("was turned" in note for note in recording.notes) == turned
    assert recording.signal()[1].tolist() == ([1, 41, 81] if turned else [3, 4, 5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_spikes([], source="x"), "not one of 0 units has a spike"),
        (lambda: from_spikes([[], []], source="x"), "not one of 2 units has a spike"),
        (lambda: from_spikes([[0.1, np.nan]], source="x"), "unit 0 has 1 spike times that are not finite"),
        (lambda: from_spikes([["a"]], source="x"), "a list of spike times in seconds"),
        (lambda: from_spikes([[0.0, 3e9]], source="x"), "is a time wrong, or in another unit than seconds"),
        (lambda: from_spikes([[0.0, 9.0]], bin=-1, source="x"), "the width of a bin"),
        (lambda: from_spikes([[0, 9]], labels={"p": ([1, 2], [1.0])}, source="x"), "a time in seconds for each"),
        (lambda: from_spikes([[0, 9]], labels={"p": ([5.0], [1.0])}, source="x"), "no time in which spikes and all"),
    ],
)
def test_spike_times_that_cannot_be_counted_say_why(make, message):
    with pytest.raises(HapteraError, match=message):
        make()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": cells(COUNTS[:3], COUNTS[:4, :2])}, "trials with the same channels expected"),
        (
            {"X": cells(COUNTS[:3], COUNTS[:4]), "p": cells(np.zeros(3), np.zeros(9))},
            "cell 1 of 'p' has 9 values, and the trial 4",
        ),
        (
            {"X": cells(COUNTS[:3], COUNTS[:4]), "p": cells(np.zeros(3), np.zeros(2), np.ones(2))},
            "3 cells, the signal 2 trials",
        ),
        ({"X": cells(*UNITS), "p": PLACE}, "'p' has 200 values and spikes have times"),
    ],
)
def test_cells_that_do_not_fit_say_why(tmp_path, arrays, message):
    savemat(tmp_path / "a.mat", arrays)
    with pytest.raises(HapteraError, match=message):
        read(tmp_path / "a.mat", *(name for name in arrays if name != "X"), signal="X")


def test_a_folder_of_nothing_known_says_so(tmp_path):
    with pytest.raises(HapteraError, match="neither suite2p's"):
        read(tmp_path)


def test_intervals_of_pynapple_are_trials(tmp_path):
    spikes = np.concatenate(UNITS)
    index = np.repeat([0, 1, 2], [len(one) for one in UNITS])
    support = {"start": [0.0], "end": [10.0]}
    np.savez(tmp_path / "units.npz", t=spikes, index=index, **support, type=["TsGroup"])
    np.savez(tmp_path / "runs.npz", start=[0.0, 4.0], end=[1.0, 5.0], type=["IntervalSet"])
    recording = read(tmp_path, bin=0.1, trials="runs")
    assert recording.trials.tolist() == [0] * 10 + [1] * 10
    assert recording.signal()[:2, 0].tolist() == [1, 2]  # bins begin with the time support, not with the first spike
    assert recording.notes == ("80 of 100 samples left out: outside of trials",)
    with pytest.raises(HapteraError, match="did you mean 'runs'"):
        read(tmp_path, trials="run")
