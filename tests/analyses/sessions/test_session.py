"""Sessions are prepared each by itself, and their labels mean the same."""

from dataclasses import replace

import numpy as np
import pytest

from haptera.analyses.embedding.plan import Plan
from haptera.analyses.sessions.analysis import embed_sessions
from haptera.analyses.sessions.session import agree_on_labels, prepare_sessions, shared_classes
from haptera.errors import HapteraError
from haptera.recordings.recording import Recording

UNITS = (("a", 1.5), ("b", 1.2), ("c", 150.0))


def recording(name, samples=60, channels=3, **labels):
    signal = np.random.default_rng(samples).poisson(2.0, (samples, channels)).astype(float)
    return Recording.from_arrays({"spikes": signal}, labels, source=f"{name}.npz")


def test_classes_have_the_same_codes_everywhere():
    first = recording("a", side=np.array(["left", "right"] * 30))
    second = recording("b", side=np.array(["right", "up"] * 30))
    one, two = (each.label("side") for each in agree_on_labels([first, second], ["side"]))
    assert one.classes == two.classes == ("left", "right", "up")
    assert [one.classes[code] for code in one.values[:2]] == ["left", "right"]
    assert [two.classes[code] for code in two.values[:2]] == ["right", "up"]
    assert shared_classes({"a": one, "b": two}).tolist() == [1]


def test_classes_that_are_numbers_keep_the_order_of_numbers():
    first = recording("a", arm=np.array([10, 2] * 30))
    (label,) = (each.label("arm") for each in agree_on_labels([first], ["arm"]))
    assert label.classes == ("2", "10")


def test_a_label_with_few_values_in_one_session_is_a_number_in_all():
    few, many = recording("a", place=np.arange(60) // 2), recording("b", place=np.arange(60))
    one, two = (each.label("place") for each in agree_on_labels([few, many], ["place"]))
    assert one.kind == two.kind == "continuous"
    assert one.values.tolist() == (np.arange(60) // 2).tolist()
    assert "taken as continuous in all" in one.note


def test_labels_of_other_kinds_are_refused_by_name():
    text, number = recording("a", side=np.array(["left", "right"] * 30)), recording("b", side=np.linspace(0, 1, 60))
    with pytest.raises(HapteraError, match=r"'side' is discrete in a.npz, continuous in b.npz"):
        agree_on_labels([text, number], ["side"])


def test_an_error_names_the_session_it_is_about():
    good, constant = recording("a", place=np.linspace(0, 1, 60)), recording("b", place=np.ones(60))
    with pytest.raises(HapteraError, match=r"b\.npz: label 'place' is the same in every sample"):
        prepare_sessions([good, constant], Plan(labels=("place",), baselines=()))


def test_a_label_that_never_changes_in_one_session_is_not_called_another_kind():
    angle = recording("a", heading=np.linspace(0, 6.2, 60))
    constant = recording("b", heading=np.zeros(60))
    with pytest.raises(HapteraError, match=r"b\.npz: label 'heading' is the same in every sample; leave that"):
        agree_on_labels([angle, constant], ["heading"])


def test_each_session_leaves_out_its_own_silent_channels():
    first, second = recording("a"), recording("b", channels=4)
    second.signals["spikes"][:, 2] = 0
    made = prepare_sessions([first, second], Plan(baselines=()))
    assert [one.parts.whole.signal().shape[1] for one in made] == [3, 3]
    assert made[1].parts.preparation.places == (0, 1, 3)
    assert [one.parts.preparation.name for one in made] == ["a", "b"]


def test_a_number_in_another_unit_in_one_session_is_noted_there():
    metres, same, centimetres = (recording(name, place=np.linspace(0, most, 60)) for name, most in UNITS)
    labels = [each.label("place") for each in agree_on_labels([metres, same, centimetres], ["place"])]
    assert [bool(label.note) for label in labels] == [False, False, True]
    assert "in the same unit?" in labels[2].note


def test_samples_of_another_length_are_noted_in_a_joint_fit():
    slow, fast = (
        replace(recording(name, place=np.sin(np.arange(60))), times=np.arange(60) * step)
        for name, step in (("slow", 0.1), ("fast", 0.05))
    )
    settings = {"max_iterations": 1, "batch_size": 16}
    asked = Plan(labels=("place",), seeds=1, shuffles=0, settings=settings)
    notes = embed_sessions([slow, fast], asked, alone=False, progress=False).notes
    assert [note for note in notes if note.startswith("fast: a sample is 0.05 s long, and 0.1 s in slow")]
