"""NWB files: spikes, series, epochs and trials meet in the same bins."""

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.recordings.reading import read_recording

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
STEP, RATE = 0.1, 37.0


def write_nwb(path):
    """Two units over 20 s; compass at 37 Hz from 2 to 18 s with a gap from 10 to 12; three trials of 4 s."""
    generator = np.random.default_rng(1)
    units = [np.sort(generator.uniform(0, 20, count)) for count in (300, 100)]
    times = np.arange(2.003, 18, 1 / RATE)
    times = times[(times < 10) | (times >= 12)]
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.concatenate(units)
        file["units/spike_times_index"] = np.array([300, 400], np.uint32)
        file["units/id"] = [7, 9]
        file.create_dataset("units/location", data=["adn", "ca1"], dtype=text)
        compass = file.create_group("processing/behavior/Compass")
        compass.attrs["neurodata_type"] = "CompassDirection"
        for name, angle in (("yaw", times), ("roll", 0.1 * np.sin(times))):
            data = compass.create_dataset(f"{name}/data", data=np.mod(angle, 2 * np.pi))
            data.attrs["unit"] = "radians"
            compass[f"{name}/timestamps"] = times
        speed = file.create_dataset("acquisition/speed/data", data=np.arange(200))
        speed.attrs["conversion"] = 0.01
        file["acquisition/speed/starting_time"] = 0.0
        file["acquisition/speed/starting_time"].attrs["rate"] = 10.0
        file["intervals/epochs/start_time"], file["intervals/epochs/stop_time"] = [0.0, 4.0], [4.0, 20.0]
        file.create_dataset("intervals/epochs/tags", data=["sleep", "wake"], dtype=text)
        file["intervals/epochs/tags_index"] = np.array([1, 2])
        file["intervals/trials/start_time"], file["intervals/trials/stop_time"] = [2.0, 6.0, 12.0], [6.0, 9.0, 16.0]
        file["intervals/trials/target"] = [3, 4, 3]
    return units, times


def test_spikes_and_behaviour_of_an_nwb_file_meet_in_the_same_bins(tmp_path):
    units, times = write_nwb(tmp_path / "a.nwb")
    found = read_recording(tmp_path / "a.nwb", "spikes", ["head_direction"], bin=STEP)
    assert "head_direction is processing/behavior/Compass/yaw" in found.notes
    label = found.label("head_direction")
    assert label.kind == "angle"
    assert found.channels["spikes"]["location"].tolist() == ["adn", "ca1"]
    assert found.channels["spikes"]["id"].tolist() == [7, 9]
    for row in (0, 40, len(found) - 1):
        low, high = found.times[row] - STEP / 2, found.times[row] + STEP / 2
        assert found.signal()[row].tolist() == [((unit >= low) & (unit < high)).sum() for unit in units]
        inside = times[(times >= low) & (times < high)]
        off = label.values[row] - np.angle(np.exp(1j * inside).mean())
        assert abs(np.angle(np.exp(1j * off))) < 1e-9
    assert not ((found.times > 10.1) & (found.times < 11.9)).any()  # the gap of the compass
    assert found.blocks.max() == 1
    assert any("bins left out" in note for note in found.notes)


def test_names_in_an_nwb_file_may_be_short_or_whole(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    by = {name: read_recording(tmp_path / "a.nwb", labels=[name]) for name in
          ("head_direction", "yaw", "Compass/yaw", "processing/behavior/Compass/yaw", "Compass")}  # fmt: skip
    values = [found.label(name).values.tolist() for name, found in by.items()]
    assert all(each == values[0] for each in values)
    assert read_recording(tmp_path / "a.nwb", labels=["roll"]).label("roll").values.tolist() != values[0]
    assert by["yaw"].step == pytest.approx(0.1)
    assert any(note.startswith("bins of 0.1 s") for note in by["yaw"].notes)


def test_epochs_and_trials_of_an_nwb_file_choose_the_bins(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    sleep = read_recording(tmp_path / "a.nwb", labels=["speed"], epoch="sleep", bin=STEP)
    assert (len(sleep), sleep.times[0], round(sleep.times[-1], 3)) == (40, 0.05, 3.95)
    assert np.allclose(sleep.label("speed").values, np.arange(40) * 0.01)
    trials = read_recording(tmp_path / "a.nwb", labels=["yaw", "target"], trials="trials", bin=STEP)
    assert np.unique(trials.trials).tolist() == [0, 1, 2]
    assert trials.label("target").classes == ("3", "4")
    assert set(trials.label("target").values[trials.trials == 1]) == {1}
    assert trials.times[trials.trials == 1].min() > 6
    assert trials.times[trials.trials == 1].max() < 9


def test_bins_of_a_long_trial_after_a_short_one_inside_it_are_kept(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    spans = [(2.0, 14.0), (4.0, 6.0), (4.0, 5.0), (15.0, 16.0)]
    with h5py.File(tmp_path / "a.nwb", "a") as file:
        del file["intervals/trials"]
        file["intervals/trials/start_time"], file["intervals/trials/stop_time"] = zip(*spans, strict=True)
    found = read_recording(tmp_path / "a.nwb", "spikes", trials="trials", bin=STEP)
    for time, trial in zip(found.times, found.trials, strict=True):
        inside = [row for row, (start, stop) in enumerate(spans) if start <= time < stop]
        assert trial == max(inside)
    assert ((found.times > 6.1) & (found.times < 13.9) & (found.trials == 0)).sum() >= 77
    assert len(found) >= 129
    assert any(note.startswith("2 of 4 trials begin before another has ended") for note in found.notes)
    write_nwb(tmp_path / "b.nwb")
    apart = read_recording(tmp_path / "b.nwb", "spikes", trials="trials", bin=STEP)
    assert not [note for note in apart.notes if "before another" in note]


def test_no_mean_of_a_series_that_wraps_lies_between_its_ends(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    times = np.arange(0.0, 20, 0.013)
    with h5py.File(tmp_path / "a.nwb", "a") as file:
        file["acquisition/cycle/data"], file["acquisition/cycle/timestamps"] = times % 1, times
    found = read_recording(tmp_path / "a.nwb", labels=["cycle"], bin=0.3)
    assert found.label("cycle").kind == "continuous"
    for time, value in zip(found.times, found.label("cycle").values, strict=True):
        inside = times[(times >= time - 0.15 - 1e-9) & (times < time + 0.15 - 1e-9)]
        assert abs((value - inside.mean() + 0.5) % 1 - 0.5) < 1e-9
    assert any("cycle jumps from one end of its range to the other" in note for note in found.notes)


def test_trials_without_a_label_and_labels_of_many_numbers_are_said_of_an_nwb_file_too(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    with h5py.File(tmp_path / "a.nwb", "a") as file:
        file.create_dataset("intervals/trials/side", data=["left", "", "right"], dtype=h5py.string_dtype())
        del file["acquisition/speed/data"].attrs["conversion"]
    found = read_recording(tmp_path / "a.nwb", "spikes", ["side", "speed"], trials="trials", bin=0.1)
    assert found.label("side").classes == ("left", "right")
    assert set(found.trials) == {0, 2}
    assert any("bins left out" in note for note in found.notes)
    assert found.label("speed").kind == "continuous"
    assert found.label("speed").note.startswith("speed has 200 different whole numbers and is taken as continuous")


def test_a_series_can_be_the_signal(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    found = read_recording(tmp_path / "a.nwb", "speed")
    assert found.signal().shape == (200, 1)
    assert np.allclose(found.signal()[:, 0], np.arange(200) * 0.01)
    halved = read_recording(tmp_path / "a.nwb", "speed", ["speed"], bin=0.2)
    assert np.allclose(halved.signal()[:, 0], halved.label("speed").values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["head_directoin"]}, "did you mean 'head_direction'"),
        ({"labels": ["data"]}, "unknown series"),
        ({"signal": "sped"}, "did you mean 'speed'"),
        ({"epoch": "wak"}, "unknown epoch 'wak'; did you mean 'wake'"),
        ({"trials": "trial"}, "unknown table of intervals 'trial'; did you mean 'trials'"),
        ({"bin": -1.0}, "above 0"),
        ({"bin": 100.0}, "no bin of 100 s fits"),
    ],
)
def test_mistakes_with_an_nwb_file_name_it_and_the_nearest(arguments, message, tmp_path):
    write_nwb(tmp_path / "a.nwb")
    with pytest.raises(HapteraError, match=rf"a\.nwb.*{message}"):
        read_recording(tmp_path / "a.nwb", **arguments)


def test_an_nwb_file_without_spikes_says_so(tmp_path):
    with h5py.File(tmp_path / "a.nwb", "w") as file:
        file["acquisition/x/data"] = np.arange(3)
    with pytest.raises(HapteraError, match="no units with spike times"):
        read_recording(tmp_path / "a.nwb")


@pytest.mark.real
def test_the_head_direction_recording_is_read_as_its_facts_say():
    path = DATA / "head-direction.nwb"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    found = read_recording(path, "spikes", ["head_direction"], bin=0.1)
    assert found.signal().shape == (5293, 15)  # 670.6 to 1200 s
    assert found.channels["spikes"]["location"].value_counts().to_dict() == {"ca1": 8, "adn": 7}
    assert found.label("head_direction").kind == "angle"
    whole = read_recording(path, "spikes", bin=0.1)
    assert abs(int(whole.signal().sum()) - 98_794) <= 5  # the last bin is cut


def test_a_column_of_places_in_the_file_is_left_out_and_the_recording_can_be_sent_to_another_process(tmp_path):
    write_nwb(tmp_path / "a.nwb")
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        group = file.create_group("general/extracellular_ephys/shank1")
        places = file.create_dataset("units/electrode_group", (2,), dtype=h5py.ref_dtype)
        places[:] = [group.ref, group.ref]
    found = read_recording(tmp_path / "a.nwb", "spikes", ["head_direction"], bin=STEP)
    assert "electrode_group" not in found.channels["spikes"]
    again = pickle.loads(pickle.dumps(found))
    assert again.signal().tolist() == found.signal().tolist()
