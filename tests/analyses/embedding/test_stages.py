"""There is something to look at after the first fit, it says what is missing, and the end is the same either way."""

import pandas as pd
import pytest

from haptera.analyses.embedding import stages
from haptera.analyses.embedding.analysis import embed
from haptera.analyses.embedding.page import methods
from haptera.analyses.embedding.plan import Plan
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording
from haptera.recordings.synthetic import synthetic

QUICK = {"max_iterations": 5, "batch_size": 64, "num_hidden_units": 8}
PLAN = Plan(labels=("c",), seeds=2, shuffles=1, baselines=("pca", "factors"), settings=QUICK)


def recording():
    made = synthetic(400, 6)
    return Recording({"spikes": made.signal}, {"c": Label.of(made.label)}, source="rat.npz")


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "PAYS", 0.0)
        seen = []
        seen.append(embed(recording(), PLAN, jobs=1, each=seen.append, progress=False))
        return seen


def test_the_first_look_has_fit_and_decoding_and_says_what_is_to_come(looks):
    first = looks[0]
    assert len(first.fits) == 1
    assert first.shuffled == ()
    assert first.betti is None
    assert set(first.decoding["what"]) == {"embedding", "shuffled decoder", "windows", "constant"}
    assert first.notes[0].startswith("still to come, and this page is written again when it is there: 1 more seed")
    assert all(word in first.notes[0] for word in ("1 fit of shuffled labels", "rings and hollows", "pca, factors"))
    assert first.notes[0] in first.page()
    assert "in a random order" not in methods(first)  # which is not made yet
    assert "2 seeds and 1 fit of as many steps with labels in a random order" in methods(looks[-1])


def test_controls_come_before_baselines_and_nothing_is_to_come_at_the_end(looks):
    assert [(len(one.fits), len(one.shuffled), len(one.baselines)) for one in looks] == [
        (1, 0, 0),
        (2, 1, 0),
        (2, 1, 2),
    ]
    assert looks[1].betti is not None
    assert "pca, factors for comparison" in looks[1].notes[0]
    assert not any("still to come" in note for note in looks[2].notes)


def test_a_quick_analysis_shows_nothing_before_its_end():
    seen = []
    few = {"seeds": 1, "shuffles": 0, "baselines": ("pca",), "topology": False}
    embed(recording(), Plan(labels=("c",), **few, settings=QUICK), each=seen.append, progress=False)
    assert seen == []


@pytest.mark.parametrize(("load", "threads"), [(0.2, 4), (1.4, 3), (9.0, 1)])
def test_the_first_fit_has_as_many_threads_as_cores_are_idle(monkeypatch, load, threads):
    monkeypatch.setattr(stages, "_cores", lambda: 4)
    monkeypatch.setattr(stages.torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(stages.os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert stages._idle_threads() == threads
    monkeypatch.setattr(stages.torch, "get_num_threads", lambda: 1)  # as somebody asked for
    assert stages._idle_threads() == 1


def test_a_number_of_processes_below_one_is_refused():
    with pytest.raises(HapteraError, match="jobs is 0; a whole number of at least 1 was expected"):
        embed(recording(), PLAN, jobs=0)


@pytest.mark.long
def test_baselines_without_a_map_embed_some_samples_and_are_read_there():
    few = {"seeds": 1, "shuffles": 0, "baselines": ("pca", "tsne"), "baseline_samples": 150, "topology": False}
    found = embed(recording(), Plan(labels=("c",), **few, settings=QUICK), progress=False)
    assert pd.notna(found.baselines["tsne"]).all(1).sum() == 150
    rows = found.decoding.groupby("what")["n"].first()
    assert rows["pca"] == 120
    assert rows["tsne"] == 45
    assert found.notes[-1].startswith("tsne embed 150 evenly spaced samples of 400")
    found.page()  # draws what there is
    with pytest.raises(HapteraError, match="baseline_samples is 20; 100 or more, or 0 for all"):
        Plan(baseline_samples=20)


@pytest.mark.long
def test_processes_come_to_the_same_numbers(looks, tmp_path):
    found = embed(recording(), PLAN, out=tmp_path, jobs=2, progress=False)
    pd.testing.assert_frame_equal(found.decoding, looks[-1].decoding, rtol=1e-4)
    assert found.betti == looks[-1].betti
