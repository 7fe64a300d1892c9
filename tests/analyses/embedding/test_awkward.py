"""Awkward recordings are prepared with a note, whatever is wrong with them; what cannot be used is one sentence."""

import numpy as np
import pytest

from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.errors import HapteraError
from haptera.recordings.reading import Source

RANDOM = np.random.default_rng(0)
SPIKES = RANDOM.poisson(2.0, (400, 4)).astype(float)
PLACE = np.sin(np.arange(400) / 20)
TURN = (np.arange(400) * 7) % 360


def changed(rows, columns, value):
    values = SPIKES.copy()
    values[rows, columns] = value
    return values


def place(rows, value):
    values = PLACE.copy()
    values[rows] = value
    return values


NOTED = {
    "a silent unit": (
        {"spikes": changed(slice(None), 1, 0)},
        ["place"],
        "1 of 4 channels left out, which never change",
    ),
    "a sparse unit": ({"spikes": changed(slice(300), 2, 0)}, ["place"], "never change in the training part: 2"),
    "a constant column": ({"spikes": changed(slice(None), 0, 7)}, ["place"], "never change in the training part: 0"),
    "whole degrees": ({"heading": TURN}, ["heading"], "taken as an angle in degrees"),
    "few whole degrees": ({"heading": TURN // 30 * 30}, ["heading"], "heading:degrees takes it as an angle"),
    "pixels": ({"place": (PLACE * 100).astype(int)}, ["place"], "is taken as continuous"),
    "a block design": ({"room": np.arange(400) // 250}, ["room"], "room"),
    "blocks of numbers": ({"contrast": np.arange(400) // 250 / 2}, ["contrast"], "contrast"),
    "blocks of which the last is new": (
        {"room": np.arange(400) // 100},
        ["room"],
        "every block of it is cut by itself",
    ),
    "a label that never changes": ({"room": np.ones(400)}, ["place", "room"], "room left out, the same in every"),
    "holes in the signal": ({"spikes": changed([3, 9], 1, np.nan)}, ["place"], "2 of 400 samples left out"),
    "infinities": ({"spikes": changed([3], 1, np.inf)}, ["place"], "1 of 400 samples left out"),
    "a channel that is mostly missing": (
        {"spikes": changed(slice(50, 400), 3, np.nan)},
        ["place"],
        "1 of 4 channels left out, which miss most",
    ),
    "holes in a label": ({"place": place(slice(10, 15), np.nan)}, ["place"], "5 without place"),
    "empty cells of text": (
        {"odour": np.where(np.arange(400) == 7, "", np.array(["a", "b"])[np.arange(400) % 2])},
        ["odour"],
        "1 without odour",
    ),
    "lengths that differ a little": ({"place": PLACE[:399]}, ["place"], "cut at their end to 399 samples"),
    "a class that comes late": (
        {"odour": np.where(np.arange(400) > 350, 2, np.arange(400) % 2)},
        ["odour"],
        "training never saw 1",
    ),
}
SILENT = {
    "negative classes": ({"side": np.arange(400) % 3 - 1}, ["side"]),
    "labels of bytes": ({"side": (np.arange(400) % 2).astype(np.uint8)}, ["side"]),
    "true and false": ({"side": np.arange(400) % 2 == 0}, ["side"]),
    "a single channel": ({"spikes": SPIKES[:, :1]}, ["place"]),
}
REFUSED = {
    "nothing changes": ({"spikes": np.zeros((400, 4))}, ["place"], "none of the 4 channels changes"),
    "too short for a window": (
        {"spikes": SPIKES[:30], "place": PLACE[:30]},
        ["place"],
        "has 30 samples, 17 to learn from and 9 held out; a window of offset10-model alone needs 10",
    ),
    "nothing but holes": ({"spikes": np.full((400, 4), np.nan)}, ["place"], "400|value|sample"),
    "the only label never changes": ({"room": np.ones(400)}, ["room"], "'room' is the same in every sample"),
    "a transposed signal": ({"spikes": SPIKES.T}, ["place"], "transposed"),
    "a label of another length": ({"place": PLACE[:200]}, ["place"], "200"),
    "complex numbers": ({"place": PLACE * 1j}, ["place"], "complex"),
    "a missing label": ({}, ["plaec"], "did you mean 'place'"),
    "an angle that is text": ({"side": np.array(["a", "b"])[np.arange(400) % 2]}, ["side:angle"], "only be discrete"),
    "an unknown kind": ({}, ["place:angel"], "did you mean 'angle'"),
}


def prepare(tmp_path, arrays, labels):
    np.savez(tmp_path / "rat.npz", **{"spikes": SPIKES, "place": PLACE} | arrays)
    recording = Source(tmp_path / "rat.npz", "spikes", labels).read()
    plan = Plan(labels=tuple(label.partition(":")[0] for label in labels), baselines=(), seeds=1)
    return Parts.of(*without_constant_labels(recording, plan))


@pytest.mark.parametrize("case", NOTED)
def test_an_awkward_recording_is_prepared_with_a_note(case, tmp_path):
    arrays, labels, note = NOTED[case]
    parts = prepare(tmp_path, arrays, labels)
    assert note in " ".join(parts.whole.notes)
    assert np.isfinite(parts.whole.signal()).all()
    assert len(parts.train) > 150
    assert len(parts.test) > 50


@pytest.mark.parametrize("case", SILENT)
def test_what_only_looks_awkward_needs_no_note(case, tmp_path):
    parts = prepare(tmp_path, *SILENT[case])
    assert parts.whole.notes == ()
    assert len(parts.whole) == 400


def trials(tmp_path, values, **plan):
    np.savez(tmp_path / "rat.npz", spikes=SPIKES, place=PLACE, trial=values)
    recording = Source(tmp_path / "rat.npz", "spikes", ["place"], "trial").read()
    return without_constant_labels(recording, Plan(labels=("place",), baselines=(), seeds=1, **plan))


def test_a_single_trial_is_cut_in_time_with_a_note_unless_folds_are_asked_for(tmp_path):
    parts = Parts.of(*trials(tmp_path, np.zeros(400)))
    assert "all samples are of one trial; parts are cut in time" in parts.whole.notes
    assert len(parts.test) == 120
    with pytest.raises(HapteraError, match="single trial"):
        Parts.of(*trials(tmp_path, np.zeros(400), folds=3))


def test_of_two_trials_one_is_held_out_and_the_other_is_cut_in_time(tmp_path):
    parts = Parts.of(*trials(tmp_path, np.arange(400) // 240))
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [192, 48, 160]


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_one_sentence(case, tmp_path):
    arrays, labels, message = REFUSED[case]
    with pytest.raises(HapteraError, match=message):
        prepare(tmp_path, arrays, labels)
