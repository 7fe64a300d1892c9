"""Videos without labels: how far they are from labelled frames, and which frames to label next."""

import numpy as np
import pytest

from haptera.pose.unlabelled import distance, label_next, video_rows


def test_what_is_far_from_the_labelled_frames_is_a_setting():
    videos = {"a": {"numbers": [0], "seconds": [0.0], "confidence": [0.5], "frames": 40}}
    reference = [0.4, 0.6, 0.7, 0.8]  # three of four are surer: a distance of .75
    assert [video_rows(videos, reference, far)["out"].tolist() for far in (0.7, 0.75, 0.9)] == [
        [True],
        [False],
        [False],
    ]


def test_a_frame_without_a_confidence_is_further_away_than_any_other():
    assert distance([np.nan, np.nan], [0.1, 0.9]) == 1
    assert distance([0.1], [np.nan]) == 0


def test_distance_is_the_share_of_pairs():
    random = np.random.default_rng(0)
    own, other = random.integers(0, 5, 13) / 4, random.integers(0, 5, 9) / 4
    pairs = [1.0 if a < b else 0.5 if a == b else 0.0 for a in own for b in other]
    assert distance(own, other) == pytest.approx(np.mean(pairs))


def test_frames_to_label_are_uncertain_and_apart():
    seconds = [0.0, 0.5, 1.0, 3.0]
    videos = {
        "a": {"numbers": [0, 5, 10, 30], "seconds": seconds, "confidence": [0.2, 0.1, 0.3, 0.9], "frames": 40},
        "b": {"numbers": [4], "seconds": [0.4], "confidence": [0.15], "frames": 40},
    }
    chosen = label_next(videos, 3)
    assert list(zip(chosen["video"], chosen["frame"], strict=True)) == [("a", 5), ("b", 4), ("a", 30)]
    assert label_next(videos, 1)["confidence"].tolist() == [0.1]
    rows = video_rows(videos, [0.95, 0.99])
    assert rows["video"].tolist() == ["b", "a"]
    assert rows["out"].tolist() == [True, True]
