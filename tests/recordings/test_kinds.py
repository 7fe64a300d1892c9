"""A label whose kind is guessed, or contradicted by its range, says so."""

import numpy as np
import pytest

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
