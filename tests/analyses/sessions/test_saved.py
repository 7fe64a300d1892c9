"""What a saved model learnt from, and how, holds for a new recording; another label is refused or named."""

from dataclasses import replace

import numpy as np
import pytest

from haptera.analyses.embedding.fits import FitTask
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.sessions.adaptation import adapt_session
from haptera.analyses.sessions.applying import transform_recording
from haptera.errors import HapteraError
from haptera.recordings.reading import Source
from haptera.recordings.spikes import from_spikes
from haptera.run.tasks import finish

SETTINGS = {"max_iterations": 5, "batch_size": 32}
PLACE = np.sin(np.arange(4000) / 200)


def rat(**more):
    """Spikes of 6 units over 40 s, with labels of 100 samples per second."""
    random = np.random.default_rng(0)
    times = {str(unit): np.sort(random.uniform(0, 40, 400)) for unit in range(6)}
    stamps = np.arange(4000) / 100
    labels = {
        "place": (stamps, PLACE),
        "depth": (stamps, PLACE**2),
        "side": (stamps, np.where(PLACE > 0, "left", "right")),
    }
    return from_spikes(times, labels=labels, source="rat.mat", **({"bin": 0.05} | more))


def plan(*labels, **more):
    return Plan(labels=labels, seeds=1, shuffles=0, baselines=(), settings=SETTINGS, **more)


@pytest.fixture
def saved(tmp_path):
    """A function that fits and saves a model."""

    def save(asked):
        parts = Parts.of(rat(), asked)
        (fit,) = finish([FitTask(parts, asked, 0)], None, "embed", progress=False).finished
        fit.model.save(tmp_path / "model.safetensors", [parts.preparation])
        return tmp_path / "model.safetensors"

    return save


def adapt(model, asked, recording=None):
    return adapt_session(model, rat() if recording is None else recording, asked, controls=False, progress=False)


def test_smoothing_and_scaling_are_those_of_the_model(saved):
    found = adapt(saved(plan("place", smoothing=2.0, zscore=True)), plan("place"))
    assert (found.plan.smoothing, found.plan.zscore) == (2.0, True)
    assert found.parts.train.signal().std() == pytest.approx(1, abs=1e-3)
    assert found.notes == ()


def test_a_label_of_another_kind_is_refused(saved):
    with pytest.raises(HapteraError, match=r"learnt from side \(discrete\), and place \(continuous\) was named"):
        adapt(saved(plan("side")), plan("place"))


def test_no_label_is_called_that(saved):
    with pytest.raises(HapteraError, match=r"learnt from side \(discrete\), and no label was named"):
        adapt(saved(plan("side")), plan())


def test_an_angle_is_not_a_place(saved, tmp_path):
    model = saved(plan("place"))
    spikes = np.random.default_rng(0).poisson(2.0, (400, 6))
    np.savez(tmp_path / "rat.npz", spikes=spikes, heading=np.arange(400) / 20 % 6.28)
    recording = Source(tmp_path / "rat.npz", "spikes", ["heading:angle"])
    with pytest.raises(HapteraError, match=r"learnt from place \(continuous\), and heading \(angle\) was named"):
        adapt(model, plan("heading"), recording)


def test_a_label_of_another_name_is_noted(saved):
    found = adapt(saved(plan("place")), plan("depth"))
    assert "the model learnt from place (continuous), here it is depth (continuous)" in found.notes[-1]


def test_a_model_by_time_adapts_by_time_and_only_decodes_labels(saved):
    found = adapt(saved(plan("place", mode="time")), plan("place"))
    assert found.mode.startswith("time")
    assert set(found.decoding["label"]) == {"place"}


def test_parts_are_those_of_the_model(saved):
    asked = plan("place", parts=(("place", (0, 1)), ("time", (2,))))
    assert adapt(saved(asked), plan("place")).plan.parts == asked.parts


def test_spikes_are_counted_in_the_bins_of_the_model(saved, tmp_path):
    model, stamps = saved(plan()), np.sort(np.random.default_rng(0).uniform(0, 40, 900))
    np.savez(tmp_path / "new.npz", spike_times=stamps, unit=np.arange(900) % 6)
    frame = transform_recording(model, Source(tmp_path / "new.npz"))
    assert np.diff(frame["time"]).max() == pytest.approx(0.05)
    assert adapt(model, plan(), Source(tmp_path / "new.npz")).parts.whole.step == pytest.approx(0.05)


def test_samples_of_another_length_are_noted(saved, tmp_path):
    model, spikes = saved(plan()), np.random.default_rng(0).poisson(2.0, (400, 6))
    np.savez(tmp_path / "slow.npz", spikes=spikes, times=np.arange(400) / 2)
    found = adapt(model, plan(), Source(tmp_path / "slow.npz", "spikes"))
    assert "a sample is 0.5 s long, and 0.05 s in what the model learnt from" in " ".join(found.notes)


def with_side(side):
    return from_spikes(
        {str(unit): np.sort(np.random.default_rng(unit).uniform(0, 40, 400)) for unit in range(6)},
        bin=0.05,
        labels={"side": (np.arange(4000) / 100, side)},
        source="rat.mat",
    )


def test_classes_have_the_codes_of_the_model_though_the_recording_lacks_some(saved):
    model = saved(plan("side"))  # left, right
    found = adapt(model, plan("side"), with_side(np.where(PLACE > 0, "ahead", "right")))
    label = found.parts.whole.label("side")
    assert label.classes == ("left", "right", "ahead")
    right = found.parts.whole.times[label.values == 1]
    assert (np.sin(right * 100 / 200) < 0.1).all()
    assert any("side has 1 of 2 classes that the model never saw: ahead" in note for note in found.notes)


def test_a_label_in_another_unit_than_the_model_learnt_from_is_noted(saved):
    model = saved(plan("place"))
    recording = rat()
    label = recording.label("place")
    other = replace(recording, labels={"place": replace(label, values=label.values * 100)})
    (note,) = adapt(model, plan("place"), other).notes
    assert note.startswith("place goes from -")
    assert "in what the model learnt from; is it in the same unit?" in note
