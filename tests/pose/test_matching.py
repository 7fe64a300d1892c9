"""Predictions are joined to labels: frames by number, animals by OKS or by name."""

from dataclasses import replace

import numpy as np
import pytest
from tests.pose.test_animals import labels_of

from haptera.errors import HapteraError
from haptera.pose.matching import match_predictions, named_by_number


def test_by_name_a_swap_counts_as_an_error():
    truth, _ = labels_of().of_animals()
    frame = truth.files == truth.files[-1]
    pair = truth.select(np.flatnonzero(frame))
    swapped = replace(pair, keypoints=pair.keypoints[::-1], confidence=np.ones((2, 2)))
    assert np.allclose(match_predictions(swapped, pair, "said").keypoints, pair.keypoints)
    assert np.allclose(match_predictions(swapped, pair, "said", by="name").keypoints, pair.keypoints[::-1])


def test_frames_of_a_video_are_joined_by_number():
    labels = np.array(["labeled-data/clip/img0012.png", "labeled-data/other/img0012.png"])
    numbers = np.arange(20).astype(str)
    assert named_by_number(numbers, labels, "out/clipDLC_net.csv").tolist() == ["12", "labeled-data/other/img0012.png"]
    with pytest.raises(HapteraError, match=r"does not say of which video; the labels are of clip, other"):
        named_by_number(numbers, labels, "said.csv")


def test_numbers_of_frames_of_another_video_are_warned_of(caplog):
    labels, numbers = np.array(["labeled-data/clip/img0012.png"]), np.arange(20).astype(str)
    assert named_by_number(numbers, labels, "clipDLC_net.csv").tolist() == ["12"]
    assert not caplog.records
    assert named_by_number(numbers, labels, "otherDLC_net.csv").tolist() == ["12"]
    assert "otherDLC_net.csv has numbers of frames and does not say of which video" in caplog.text


@pytest.mark.parametrize(
    ("table", "own"),
    [
        *(("mouse1DLC_net.csv", True), ("mouse1DeepCut_net.h5", True), ("mouse1.csv", True), ("mouse1_said.csv", True)),
        *(("mouse10DLC_net.csv", False), ("mouse1_day2DLC_net.csv", False), ("mouse1b.csv", False)),
        *(("labels.v1.000_mouse1.analysis.h5", True), ("labels.v1.000_amouse1.analysis.h5", False)),
    ],
)
@pytest.mark.parametrize("frame", ["labeled-data/mouse1/img12.png", "mouse1/12"])  # of DeepLabCut, and of SLEAP
def test_a_video_whose_name_only_begins_like_that_of_the_labels_is_another(caplog, table, own, frame):
    """Predictions of mouse 10 are not scored with labels of mouse 1 without a word."""
    numbers, labels = np.array(["0", "12"]), np.array([frame])
    assert named_by_number(numbers, labels, table).tolist() == ["12"]
    assert ("does not say of which video" in caplog.text) != own
    two = np.array([*labels, "labeled-data/rat/img12.png"])
    if own:
        assert named_by_number(numbers, two, table).tolist() == ["12", two[1]]
    else:
        with pytest.raises(HapteraError, match="the labels are of mouse1, rat"):
            named_by_number(numbers, two, table)
