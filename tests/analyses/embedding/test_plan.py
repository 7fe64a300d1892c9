"""Plans that make no sense, or do not fit their recording, are errors."""

from dataclasses import replace

import numpy as np
import pytest
from tests.analyses.embedding.test_analysis import compass

from haptera.analyses.embedding.fits import compare_hypotheses
from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"mode": "lable"}, "unknown mode 'lable'; did you mean 'label'"),
        ({"mode": "hybrid"}, "no label was named"),
        ({"baselines": ("t-sne",)}, "unknown baseline 't-sne'; did you mean 'tsne'"),
        ({"seeds": 0}, "seeds is 0; at least 1"),
        ({"smoothing": -1.0}, "0 samples or more"),
    ],
)
def test_a_plan_that_makes_no_sense_is_an_error(plan, message):
    with pytest.raises(HapteraError, match=message):
        Plan(**plan)


def test_a_recording_that_does_not_fit_the_plan_is_an_error():
    recording = compass(200)
    with pytest.raises(HapteraError, match="unknown label of mouse"):
        Parts.of(recording, Plan(labels=("haeding",)))
    constant = replace(recording, labels={"still": Label.of(np.zeros(200))})
    with pytest.raises(HapteraError, match="label 'still' is the same in every sample"):
        Parts.of(constant, Plan(labels=("still",)))
    with pytest.raises(HapteraError, match="no hypothesis"):
        compare_hypotheses(recording, {})


def test_a_block_design_is_cut_block_by_block_with_a_note():
    signal = np.random.default_rng(0).poisson(3.0, (200, 4)).astype(float)
    context = np.array(["dark"] * 150 + ["light"] * 50)
    recording = Recording.from_arrays({"spikes": signal}, {"context": context}, times=np.arange(200) / 10)
    parts = Parts.of(recording, Plan(labels=("context",), baselines=()))
    shares = [
        np.bincount(part.label("context").values).tolist() for part in (parts.train, parts.validation, parts.test)
    ]
    assert shares == [[84, 28], [21, 7], [45, 15]]
    assert any(
        "context is the same in all of the first part, as in a block design" in note for note in parts.whole.notes
    )
    assert np.array_equal(np.sort(parts.whole.signal(), axis=0), np.sort(signal, axis=0))


def test_a_block_design_whose_second_half_alone_would_be_held_out_is_cut_block_by_block():
    signal = np.random.default_rng(0).poisson(3.0, (200, 4)).astype(float)
    recording = Recording.from_arrays({"spikes": signal}, {"context": np.repeat(["dark", "light"], 100)})
    parts = Parts.of(recording, Plan(labels=("context",), baselines=()))
    assert np.bincount(parts.test.label("context").values).tolist() == [30, 30]
    assert any("the same in all of the held-out part" in note for note in parts.whole.notes)


def test_a_constant_label_beside_another_is_left_out_with_a_note():
    signal = np.random.default_rng(0).poisson(3.0, (60, 4)).astype(float)
    labels = {"place": np.linspace(0, 1, 60), "room": np.ones(60)}
    recording, plan = without_constant_labels(
        Recording.from_arrays({"spikes": signal}, labels), Plan(labels=("place", "room"), baselines=())
    )
    assert plan.labels == ("place",)
    assert recording.notes == ("room left out, the same in every sample",)
    alone = Plan(labels=("room",), baselines=())
    assert without_constant_labels(recording, alone)[1] is alone  # nothing else is left: Parts says so
