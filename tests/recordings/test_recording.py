"""A recording keeps signals, labels, trials and times together, and says what does not fit."""

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording


def recording(samples=20, **settings):
    signal = np.arange(samples * 3, dtype=float).reshape(samples, 3)
    label = Label.of(np.arange(samples) * 0.1, name="place")
    return Recording({"spikes": signal}, {"place": label}, source="mouse.npz", **settings)


def test_slices_keep_everything_of_the_same_samples():
    whole = recording(trials=np.repeat([7, 8], 10), times=np.arange(20) * 0.5)
    part = whole[5:12]
    assert part.signal("spikes")[0, 0] == 15
    assert part.label("place").values.tolist() == whole.label("place").values[5:12].tolist()
    assert part.trials.tolist() == [7] * 5 + [8] * 2
    assert part.times[0] == 2.5
    assert len(whole[whole.trials == 8]) == 10


def test_split_cuts_once_and_between_trials():
    train, test = recording().split(0.3)
    assert (len(train), len(test)) == (14, 6)
    assert np.concatenate([train.signal(), test.signal()]).tolist() == recording().signal().tolist()
    train, test = recording(trials=np.repeat([1, 2, 3], [8, 8, 4])).split(0.3)
    assert set(train.trials) == {1, 2}
    assert set(test.trials) == {3}
    with pytest.raises(HapteraError, match="single trial"):
        recording(trials=np.ones(20)).split(0.3)


def test_blocks_begin_with_a_trial_and_after_a_gap_in_time():
    times = np.arange(20) * 0.1
    times[12:] += 5
    trials = np.repeat([0, 1], [4, 16])
    assert recording(times=times, trials=trials).blocks.tolist() == [0] * 4 + [1] * 8 + [2] * 8
    assert set(recording().blocks) == {0}


def test_samples_of_some_trials():
    whole = recording(trials=np.repeat([3, 4, 5, 6], 5))
    assert whole.of_trials([4, 6]).trials.tolist() == [4] * 5 + [6] * 5
    with pytest.raises(HapteraError, match="no trial 9; it has 4"):
        whole.of_trials([9])


def test_only_the_channels_of_an_area():
    facts = pd.DataFrame({"location": ["adn", "ca1", "adn"], "id": [4, 5, 6]})
    whole = recording(channels={"spikes": facts})
    assert whole.only_channels("spikes", location="adn").signal().tolist() == whole.signal()[:, [0, 2]].tolist()
    with pytest.raises(HapteraError, match=r"unknown location .*'adm'; did you mean 'adn'"):
        whole.only_channels("spikes", location="adm")
    with pytest.raises(HapteraError, match=r"unknown column .* did you mean 'location'"):
        whole.only_channels("spikes", locations="adn")


def test_channels_go_by_their_ids_or_if_those_are_not_unique_by_their_places():
    for ids, names in (([4, 5, 6], ["4", "5", "6"]), ([1, 1, 1], ["0", "1", "2"])):
        assert recording(channels={"spikes": pd.DataFrame({"id": ids})}).channel_names() == names
    assert recording().channel_names() == ["0", "1", "2"]
    some = recording(channels={"spikes": pd.DataFrame({"id": [4, 5, 6]})}).with_channels("spikes", np.arange(3) != 1)
    assert (some.channel_names(), some.signal().shape, some.channel_noun()) == (["4", "6"], (20, 2), "units")
    again = recording().with_channels("spikes", np.arange(3) != 0).with_channels("spikes", np.arange(2) != 0)
    assert (again.channel_names(), again.channel_noun()) == (["2"], "channels")  # as the file has them


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"place": Label.of(np.zeros(19))}}, "label 'place' has 19 samples, signal 'spikes' has 20"),
        ({"trials": np.zeros(3)}, "trials has 3 samples"),
        ({"times": np.zeros(20)}, "times do not rise"),
        ({"signals": {"spikes": np.full((20, 2), np.nan)}}, "40 values that are not finite, the first in sample 0"),
        ({"signals": {"spikes": np.zeros(20)}}, r"numbers \(samples, channels\) expected"),
        ({"labels": {"place": Label.of(np.full(20, np.nan))}}, "label 'place' is not a number in 20 samples"),
        ({"signals": {}}, "has no signal"),
    ],
)
def test_what_does_not_fit_is_an_error(change, message):
    with pytest.raises(HapteraError, match=message):
        Recording(**({"signals": {"spikes": np.zeros((20, 2))}, "source": "mouse.npz"} | change))


def test_a_name_that_does_not_exist_gets_the_nearest():
    with pytest.raises(HapteraError, match=r"unknown label of mouse.npz 'plaec'; did you mean 'place'"):
        recording().label("plaec")
    with pytest.raises(HapteraError, match=r"unknown signal of mouse.npz 'spike'; did you mean 'spikes'"):
        recording().signal("spike")


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        (np.array([3, 5, 3], np.uint8), "odour", "discrete"),
        (np.array([-1, 1, 1]), "side", "discrete"),
        (np.array(["left", "right", "left"]), "side", "discrete"),
        (np.linspace(0, 6.28, 50), "head_direction", "angle"),
        (np.linspace(-3.1, 3.1, 50), "heading", "angle"),
        (np.linspace(0, 6.28, 50), "position", "continuous"),
        (np.linspace(0, 359, 50), "head_direction", "angle"),
        (np.zeros((5, 2)), "direction", "continuous"),
    ],
)
def test_kind_of_a_label_follows_from_type_range_and_name(values, name, kind):
    assert Label.of(values, name=name).kind == kind


def test_classes_are_codes_and_keep_their_names():
    label = Label.of(np.array([-3, 8, 8, -3]))
    assert label.values.tolist() == [0, 1, 1, 0]
    assert label.classes == ("-3", "8")
    assert label[1:3].values.tolist() == [1, 1]


def test_an_estimator_gets_numbers_side_by_side_and_classes_apart():
    angle, place = Label.of(np.array([0.0, np.pi]), "angle"), Label.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    whole = Recording({"x": np.zeros((2, 1))}, {"angle": angle, "place": place, "side": Label.of(np.array([4, 5]))})
    numbers, classes = whole.targets("angle", "side", "place")
    assert np.allclose(numbers, [[1, 0, 1, 2], [-1, 0, 3, 4]])
    assert classes.tolist() == [0, 1]
    assert classes.dtype.kind == "i"


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (np.zeros(3), "angel", "did you mean 'angle'"),
        (np.array(["a", "b"]), "continuous", "can only be discrete"),
        (np.zeros((3, 2)), "angle", "an angle has one"),
        (np.zeros((3, 2), int), "discrete", "a discrete label has one"),
        (np.array([0.0, np.nan]), "discrete", "no value in 1 samples"),
        (np.zeros((2, 2, 2)), None, "one value or row for each sample"),
    ],
)
def test_a_label_that_makes_no_sense_is_an_error(values, kind, message):
    with pytest.raises(HapteraError, match=message):
        Label.of(values, kind, "heading")


def test_samples_without_a_label_or_a_trial_are_left_out_with_a_note_and_windows_do_not_cross():
    place = np.arange(20) * 0.1
    place[[3, 9]] = np.nan, np.inf
    trials = np.repeat([1.0, 2.0], 10)
    trials[15] = np.nan
    found = Recording.from_arrays({"x": np.arange(20.0)[:, None]}, {"place": place}, trials=trials)
    assert found.notes == ("3 of 20 samples left out: 2 without place, 1 outside of trials",)
    assert found.signal()[:, 0].tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 16, 17, 18, 19]
    assert found.label("place").values.tolist() == [value for value in place[:15] if np.isfinite(value)] + [*place[16:]]
    assert found.blocks.tolist() == [0] * 3 + [1] * 5 + [2] * 5 + [3] * 4
    assert found[3:].blocks.tolist() == [0] * 5 + [1] * 5 + [2] * 4  # a slice remembers its gaps
    with pytest.raises(HapteraError, match="every sample is without place"):
        Recording.from_arrays({"x": np.zeros((4, 1))}, {"place": np.full(4, np.nan)})


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        (np.array([1.0, np.nan, 2.0, 1.0]), "discrete", ("1", "2")),  # as pandas reads integers of which one is missing
        (np.array(["left", "", "right", "left"]), "discrete", ("left", "right")),
        (np.array(["left", None, "right", "left"], object), "discrete", ("left", "right")),
        (np.array([1.5, np.nan, 2.0, 1.0]), "continuous", ()),
    ],
)
def test_what_is_missing_does_not_change_the_kind_of_a_label(values, kind, classes):
    found = Recording.from_arrays({"x": np.arange(4.0)[:, None]}, {"side": values})
    assert (len(found), found.label("side").kind, found.label("side").classes) == (3, kind, classes)


def test_rows_that_jump_begin_a_block_and_every_other_row_does_not():
    whole = recording()
    assert whole[np.array([0, 1, 2, 7, 8])].blocks.tolist() == [0, 0, 0, 1, 1]
    assert whole[np.arange(20) % 5 > 0].blocks.max() == 3
    assert whole[::2].blocks.max() == whole[np.arange(0, 20, 2)].blocks.max() == 0


@pytest.mark.parametrize(("count", "kind"), [(50, "discrete"), (51, "continuous"), (255, "continuous")])
def test_many_whole_numbers_are_not_classes_unless_somebody_says_so(count, kind):
    values = np.arange(1000) % count
    label = Label.of(values, name="heading")
    assert label.kind == kind
    assert (f"heading has {count} different whole numbers and is taken as continuous" in label.note) == (count > 50)
    assert label[:10].note == label.note
    said = Label.of(values, "discrete", "heading")
    assert (said.kind, len(said.classes), said.note) == ("discrete", count, "")
    assert Label.of(values.astype(str)).kind == "discrete"
