"""Labels from a second file are joined by time."""

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.recordings.behaviour import Behaviour
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording


@pytest.fixture
def here(tmp_path):
    """A recording of 10 samples per second, from 100 s on."""
    times = 100 + np.arange(200) / 10 + 0.05
    np.savez(tmp_path / "rat.npz", spikes=np.random.default_rng(0).poisson(2.0, (200, 4)), times=times)
    np.savez(tmp_path / "untimed.npz", spikes=np.random.default_rng(0).poisson(2.0, (200, 4)))
    return tmp_path


def joined(here, table, *labels, name="rat.npz", **more):
    table.to_csv(here / "tracking.csv", index=False)
    return Source(here / name, "spikes", list(labels), behaviour=here / "tracking.csv", **more).read()


def test_values_at_other_times_are_averaged_in_the_bins(here):
    stamps = 100 + np.arange(1000) / 50  # five in each bin
    values = np.sin(stamps)
    recording = joined(here, pd.DataFrame({"time": stamps, "x": values}), "x")
    expected = [
        values[(stamps >= 100 + k / 10 - 1e-9) & (stamps < 100 + (k + 1) / 10 - 1e-9)].mean() for k in range(200)
    ]
    assert np.allclose(recording.label("x").values, expected)
    assert recording.notes == ("x from tracking.csv, by time",)


@pytest.mark.parametrize(("name", "notes"), [("hd", 1), ("hd:continuous", 1), ("heading", 0)])
def test_no_mean_of_a_label_that_wraps_lies_between_its_ends(here, name, notes):
    stamps = 100 + np.arange(1000) / 50
    true = 190 * (stamps - 100)  # degrees, turned for ever
    recording = joined(here, pd.DataFrame({"time": stamps, name.partition(":")[0]: true % 360}), name)
    means = true.reshape(200, 5).mean(1) % 360
    label = recording.label(name.partition(":")[0])
    assert np.allclose(label.readable, means)
    assert label.kind == ("angle" if name == "heading" else "continuous")
    assert len([note for note in recording.notes if "means go around its turn of 360" in note]) == notes


def test_samples_outside_are_left_out_and_counted(here):
    stamps = 105 + np.arange(500) / 50
    recording = joined(here, pd.DataFrame({"time": stamps, "x": stamps}), "x")
    assert len(recording) == 100
    assert recording.times[0] == pytest.approx(105.05)
    assert recording.notes[0] == "100 of 200 samples left out: tracking.csv has no label there"


def test_angles_are_averaged_on_the_circle_and_classes_by_the_most_frequent(here):
    stamps = 100 + np.arange(1000) / 50
    degrees = np.where(np.arange(1000) % 2, 359.0, 1.0)
    side = np.where(np.arange(1000) % 5 < 3, "left", "right")
    table = pd.DataFrame({"time": stamps, "heading": degrees, "side": side})
    recording = joined(here, table, "heading:degrees", "side")
    degrees = np.rad2deg(recording.label("heading").values)
    assert (np.minimum(degrees, 360 - degrees) < 1.1).all()
    assert set(recording.label("side").readable) == {"left"}
    assert recording.label("side").values.dtype.kind == "i"


def test_frames_have_a_rate_and_a_start(here):
    recording = joined(here, pd.DataFrame({"x": np.arange(600.0)}), "x", behaviour_rate=30.0, behaviour_start=100.0)
    assert np.allclose(recording.label("x").values[:3], [1.0, 4.0, 7.0])  # means of frames 0-2, 3-5, 6-8


def test_deeplabcut_tables_are_joined(here):
    x = np.linspace(0, 50, 600)
    columns = pd.MultiIndex.from_product(
        [["net"], ["snout"], ["x", "y", "likelihood"]], names=["scorer", "bodyparts", "coords"]
    )
    pd.DataFrame(np.column_stack([x, 2 * x, np.ones(600)]), columns=columns).to_csv(here / "dlc.csv")
    source = Source(
        here / "rat.npz", "spikes", ["snout"], behaviour=here / "dlc.csv", behaviour_rate=30.0, behaviour_start=100.0
    )
    values = source.read().label("snout").values
    assert values.shape == (200, 2)
    assert np.allclose(values[:, 1], 2 * values[:, 0])
    assert np.allclose(values[:, 0], x.reshape(200, 3).mean(1))


def test_without_times_equal_lengths_are_joined_row_by_row(here):
    x = np.arange(200.0)
    x[3] = np.nan
    recording = joined(here, pd.DataFrame({"x": x}), "x", name="untimed.npz")
    assert len(recording) == 199
    assert recording.notes == (
        "x from tracking.csv, row by row: there are no times",
        "1 of 200 samples left out: tracking.csv has no label there",
    )


@pytest.mark.parametrize(
    ("table", "more", "message"),
    [
        ({"time": [1.0, 2.0], "x": [0.0, 1.0]}, {}, "no sample in common. Is it another clock"),
        ({"x": [0.0, 1.0]}, {}, "2 samples in .*200, and .*tracking.csv has no times"),
        ({"x": [0.0, 1.0]}, {"behaviour_rate": -3.0}, "rate of the behaviour"),
        ({"time": [1.0, 2.0], "x": [0.0, 1.0]}, {"behaviour_rate": 3.0}, "a rate would contradict them"),
        ({"time": ["a", "b"], "x": [0.0, 1.0]}, {}, "numbers were expected"),
        ({"time": [100.0, 119.0], "x": [np.nan, np.nan]}, {}, "not one sample of 'x' has a value"),
    ],
)
def test_what_cannot_be_joined_says_why(here, table, more, message):
    with pytest.raises(HapteraError, match=message):
        joined(here, pd.DataFrame(table), "x", **more)


def test_a_file_that_is_not_there_is_named(here):
    (here / "tracking.csv").write_text("time,x\n1,2\n")
    with pytest.raises(HapteraError, match=r"did you mean 'tracking\.csv'"):
        Source(here / "rat.npz", "spikes", ["x"], behaviour=here / "trackin.csv").read()


def test_a_rate_that_cannot_be_used_is_said(tmp_path):
    np.savez(tmp_path / "track.npz", place=np.linspace(0, 1, 50))
    recording = Recording.from_arrays({"spikes": np.ones((50, 2))}, {})
    assert recording.times is None
    joined = Behaviour(tmp_path / "track.npz", rate=30).join_to(recording, ["place"])
    assert joined.notes[-1].endswith("row by row: there are no times, and its rate is not used")


def test_an_array_without_a_name_is_called_like_its_file(here):
    np.save(here / "place.npy", np.arange(200.0))
    recording = Source(here / "untimed.npz", "spikes", ["place"], behaviour=here / "place.npy").read()
    assert np.array_equal(recording.label("place").values, np.arange(200.0))


def test_a_label_that_neither_file_has_says_what_both_have(here):
    np.save(here / "place.npy", np.arange(200.0))
    with pytest.raises(HapteraError, match=r"valid: spikes; in .*place.npy: place"):
        Source(here / "untimed.npz", "spikes", ["plaec"], behaviour=here / "place.npy").read()
