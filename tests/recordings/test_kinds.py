"""A label whose kind is guessed, or contradicted by its range, says so."""

import numpy as np
import pytest

from haptera.recordings.kinds import turn_of
from haptera.recordings.label import Label

TURNS = np.linspace(0, 6 * np.pi, 400)


def test_classes_that_a_file_holds_as_floats_are_a_number_with_a_note():
    stimulus = np.array([1.0, 2.0, np.nan, 4.0, 1.0])
    label = Label.of(stimulus, name="stimulus")
    assert label.kind == "continuous"
    assert "stimulus has 3 different whole numbers, stored as floats" in label.note
    assert "stimulus:discrete" in label.note
    assert Label.of(stimulus + 0.5, name="stimulus").note == ""


@pytest.mark.parametrize(
    ("values", "kind", "hint"),
    [
        (np.rad2deg(TURNS % (2 * np.pi)), "angle", "hd:degrees reads degrees"),
        (np.rad2deg(TURNS % (2 * np.pi)) - 180, "angle", "hd:degrees reads degrees"),
        (TURNS % (2 * np.pi), "degrees", "hd:angle reads radians"),
        (TURNS % (2 * np.pi) - np.pi, "degrees", "hd:angle reads radians"),
    ],
)
def test_an_angle_in_the_other_unit_is_noted(values, kind, hint):
    assert hint in Label.of(values, kind, "hd").note


def test_angles_in_the_unit_that_was_said_have_no_note():
    assert Label.of(TURNS % (2 * np.pi), "angle", "hd").note == ""
    assert Label.of(np.rad2deg(TURNS), "degrees", "hd").note == ""
    assert Label.of(TURNS, "angle", "hd").note == ""


@pytest.mark.parametrize(("turn", "kind"), [(360.0, "degrees"), (2 * np.pi, "angle")])
def test_a_number_that_jumps_from_end_to_end_of_a_turn_is_noted_whatever_its_name(turn, kind):
    angle = np.linspace(0, 3.5, 400) % 1 * turn
    label = Label.of(angle, name="hd")
    assert label.kind == "continuous"
    assert f"hd:{kind} takes it as an angle" in label.note
    there_and_back = np.abs(np.linspace(-1, 1, 401)) * turn  # a place on a track of 360 cm is no angle
    assert Label.of(there_and_back, name="place").note == ""


def test_an_angle_that_goes_on_beyond_a_turn_is_a_number_with_a_note():
    label = Label.of(TURNS, name="heading")
    assert label.kind == "continuous"
    assert "not as an angle; heading:angle reads radians" in label.note


def test_classes_have_one_name_as_integers_and_as_floats():
    assert Label.of(np.array([1, 2]), "discrete").classes == ("1", "2")
    assert Label.of(np.array([1.0, 2.0, 2.5]), "discrete").classes == ("1", "2", "2.5")


RAMP = np.arange(0.0, 20.0, 0.013)
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "turn"),
    [
        (360 * RAMP % 360, 360.0),
        (-360 * RAMP % 360 - 180, 360.0),
        (2 * np.pi * RAMP % (2 * np.pi), 2 * np.pi),
        (RAMP % 1, 1.0),
        (360 * RAMP[:250] % 360, None),  # jumps thrice
        (170 * np.sin(RAMP) + 180, None),  # turns back at its ends
        (RAMP // 1 % 2, None),  # on and off
        (np.clip(20 * np.sin(RAMP) + 0.5, 0, 1), None),  # on and off, with few values between
        (RANDOM.uniform(0, 360, 2000), None),
        (np.where(RANDOM.uniform(size=len(RAMP)) < 0.02, 180, 360 * RAMP % 360), None),  # lost now and then
        (160 * RAMP % 160, None),  # a track; no turn is so long
    ],
)
def test_a_number_wraps_for_certain_only_if_it_goes_through_a_turn_and_jumps_from_its_end_alone(values, turn):
    assert turn_of(values) == turn
