"""Frames that a page of scores shows: few, small, and made once."""

import numpy as np
import pytest
import torch

from haptera.adapters import NoAdaptation
from haptera.outputs import Outputs
from haptera.pose import PoseData, PoseModel, analysis, score
from haptera.pose.cells import MOST, Cell, Shown, choose_shown
from haptera.pose.skeletons import PANEL
from haptera.shifts import Brightness, Contrast

PARTS = ("left", "right")


def wide(frames=3, individuals=None):
    """Black frames of 96 x 960 pixels with a white square around each part."""
    images = np.zeros((frames, 96, 960, 3), np.uint8)
    points = np.tile(np.array([[100.0, 30.0], [802.0, 60.0]]), (frames, 1, 1))
    for x, y in points[0].astype(int):
        images[:, y - 9 : y + 10, x - 9 : x + 10] = 255
    return PoseData(images, points, PARTS, individuals)


def test_a_frame_wider_than_a_panel_is_made_smaller_and_its_keypoints_move_along():
    data = wide()
    outputs = Outputs({"keypoints": data.keypoints + 3.0}, ids=data.rows, targets=data.keypoints)
    task = Shown(data, data.fingerprint(), None, 8, 0, 2)
    [frame] = task.frames(task.make(), outputs, "here")
    assert frame.image.shape == (32, PANEL, 3)
    for part in range(2):
        seen = (
            np.argwhere(frame.image[:, part * 160 : (part + 1) * 160, 0] > 128).mean(0)[::-1]
            + np.array([160, 0]) * part
        )
        assert frame.labelled[part] == pytest.approx(seen, abs=0.5)
    assert frame.predicted - frame.labelled == pytest.approx(np.ones((2, 2)))


def test_of_many_severities_the_largest_is_shown_and_of_many_pictures_one_individual():
    model, data = PoseModel(PARTS, settings={"width": 4}), wide(2, ["a", "b"])
    shifts = [None, *(kind(severity) for kind in (Contrast, Brightness) for severity in (1, 5, 3))]
    cells = [Cell(("net", "out", adapter), model, data, ("", ""), shift=shift, adapter=NoAdaptation)
             for shift in shifts for adapter in ("none", "other")]  # fmt: skip
    chosen, individuals = choose_shown(cells)
    assert [cells[place].shift for place in chosen] == [
        name for name in ("clean", "contrast 5", "brightness 5") for _ in range(2)
    ]
    assert individuals == 2
    many = [Cell(("net", str(place), "none"), model, data, ("", ""), shift=None, adapter=NoAdaptation)
            for place in range(MOST // 2 + 1)]  # fmt: skip
    assert choose_shown(many) == (list(range(MOST // 2 + 1)), 1)


def test_what_is_finished_and_asked_for_again_opens_no_frame_and_shifts_nothing(tmp_path, monkeypatch):
    model, data = PoseModel(PARTS, settings={"width": 4}).eval(), wide(4, ["a", "b", "a", "b"])

    def run():
        return score({"net": model}, {"all": data}, shifts=(None, Contrast(5)), out=tmp_path, progress=False)

    first = run()

    def never(*_):
        raise AssertionError("work was done twice")

    monkeypatch.setattr(PoseData, "images", never)
    monkeypatch.setattr(Contrast, "apply", never)
    monkeypatch.setattr(PoseModel, "forward", never)
    second = run()
    assert second.json() == first.json()
    assert len(first.frames) == 4
    for one, two in zip(first.frames, second.frames, strict=True):
        assert (one.image == two.image).all()
        assert one.caption == two.caption


def test_frames_of_the_first_model_are_shown_even_if_it_comes_under_two_names():
    torch.manual_seed(0)
    model, other = (PoseModel(PARTS, settings={"width": 4}).eval() for _ in range(2))
    data = wide(2, ["a", "b"])
    alone = score({"net": model}, {"all": data}, progress=False)
    beside = score({"net": model, "other": other, "again": model}, {"all": data}, progress=False)
    assert len(beside.frames) == len(alone.frames) == 2
    for one, two in zip(alone.frames, beside.frames, strict=True):
        assert np.array_equal(one.predicted, two.predicted, equal_nan=True)


def test_weights_and_frames_are_looked_at_once_however_many_cells_there_are(monkeypatch):
    model, data, calls = PoseModel(PARTS, settings={"width": 4}).eval(), wide(4, ["a", "b", "a", "b"]), []
    real = analysis.of_model
    monkeypatch.setattr(analysis, "of_model", lambda each: calls.append("weights") or real(each))
    monkeypatch.setattr(PoseData, "fingerprint", lambda self: calls.append("frames") or "print")
    score({"net": model}, {"all": data}, shifts=(None, Contrast(1), Contrast(5)), progress=False)
    assert sorted(calls) == ["frames", "weights"]
