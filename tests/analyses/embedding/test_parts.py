"""Parts of a recording: what is cut where, smoothed and scaled by what, left out, and said of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.analyses.embedding.test_analysis import QUICK, compass, words

from haptera.analyses.embedding.analysis import embed
from haptera.analyses.embedding.fits import compare_hypotheses
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.preparation import smooth


def test_a_unit_that_is_silent_in_the_training_part_is_left_out_with_a_note():
    recording = compass(400, units=4)
    signal = recording.signal().copy()
    signal[:280, 2] = 0  # it wakes after what encoders learn from
    facts = pd.DataFrame({"id": [11, 12, 13, 14]})
    late = replace(recording, signals={"spikes": signal}, channels={"spikes": facts})
    plan = Plan(labels=("heading",), smoothing=1.0, zscore=True)
    parts = Parts.of(late, plan)
    assert parts.whole.notes == ("1 of 4 units left out, which never change in the training part: 13",)
    assert all(part.signal().shape[1] == 3 for part in (parts.train, parts.validation, parts.test, parts.whole))
    assert parts.whole.channel_names() == ["11", "12", "14"]
    rest = Parts.of(late.with_channels("spikes", np.array([True, True, False, True])), plan)
    assert np.array_equal(parts.whole.signal(), rest.whole.signal())
    frame = compare_hypotheses(late, {"heading": ["heading"]}, progress=False, max_iterations=2, batch_size=16)
    assert len(frame) == 2
    with pytest.raises(HapteraError, match="none of the 4 units changes in the training part"):
        Parts.of(replace(late, signals={"spikes": np.zeros_like(signal)}), plan)


@pytest.mark.long
def test_held_out_classes_that_training_never_saw_are_said_and_folds_of_trials_see_them():
    recording = compass(600, units=6)
    block = Label.of(np.repeat(["a", "b", "c", "b"], [240, 180, 80, 100]))  # c is in less than half of the last 30 %
    trials = np.repeat(np.arange(50), 12)
    made = replace(recording, labels={"block": block}, trials=trials)
    few = {"seeds": 1, "shuffles": 0, "baselines": (), "topology": False}
    plan = Plan(labels=("block",), folds=3, **few, settings=QUICK | {"max_iterations": 5})
    told = embed(made, plan, progress=False)
    assert told.notes == (
        "training never saw 1 of the held-out classes of block (c), which are 80 of 180 held-out samples and cannot "
        "be read; folds hold out whole trials instead",
    )
    parts = Parts.of(made, replace(plan, held=0.6))  # the training part would have a alone: every block is cut
    assert np.unique(parts.train.label("block").values).tolist() == [0, 1, 2]
    assert "as in a block design" in parts.whole.notes[0]
    own = told.folds.query("what == 'embedding' and decoder == 'knn' and measure == 'accuracy'")
    assert own["fold"].tolist() == [1, 2, 3]
    assert own["n"].tolist() == [204, 204, 192]
    chance = told.folds.query("what == 'constant' and measure == 'accuracy'")["value"]
    assert chance.between(0.1, 0.6).all()  # each class is on both sides
    said = dict(words(told))["folds"]
    assert f"{own['value'].mean():.1%} right over 3 folds of whole trials" in said
    assert told.json()["folds"]["values"] == own["value"].tolist()
    assert told.table()["fold"].nunique() == 3
    with pytest.raises(HapteraError, match=r"folds hold out whole trials, and mouse\.npz has none"):
        embed(recording, Plan(labels=("heading",), folds=3, **few), progress=False)
    with pytest.raises(HapteraError, match="folds is 2; at least 3, or 0"):
        Plan(folds=2)


def test_a_fold_is_a_cut_between_trials_and_nothing_else():
    recording = replace(compass(400, units=4), trials=np.repeat(np.arange(20), 20))
    for parts in Parts.folds(recording, Plan(labels=("heading",), folds=4, zscore=True)):
        sets = [set(part.trials) for part in (parts.train, parts.validation, parts.test)]
        assert sum(map(len, sets)) == len(set.union(*sets)) == 20
        assert np.array_equal(
            parts.whole.trials, np.concatenate([p.trials for p in (parts.train, parts.validation, parts.test)])
        )
        signal = np.concatenate([part.signal() for part in (parts.train, parts.validation, parts.test)])
        assert np.array_equal(parts.whole.signal(), signal)
        assert np.allclose(parts.train.signal().mean(0), 0, atol=1e-5)
        assert parts.whole.blocks.max() == 19


def test_parts_are_smoothed_by_themselves_and_scaled_by_the_first():
    recording = compass(400)
    plain = Parts.of(recording, Plan(labels=("heading",)))
    made = Parts.of(recording, Plan(labels=("heading",), smoothing=2.0, zscore=True))
    before = smooth(plain.train.signal(), 2.0)
    assert np.allclose(made.train.signal(), (before - before.mean(0)) / before.std(0), atol=1e-4)
    after = smooth(plain.test.signal(), 2.0)
    assert np.allclose(made.test.signal(), (after - before.mean(0)) / before.std(0), atol=1e-4)
    assert len(made.whole) == 400
