"""The gate on recorded studies whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest

import haptera
from haptera.analyses.gate.analysis import Gate
from haptera.errors import HapteraError
from haptera.run.cells import study_ledger
from recorded_studies import answers, change, plant, record


@pytest.fixture
def released(tmp_path):
    """A folder, the answers of the model before, and a candidate that is as good."""
    generator = np.random.default_rng(0)
    before = answers(generator)
    record(tmp_path / "released", before, model="v1")
    return generator, before, change(generator, before)


def test_a_candidate_that_is_as_good_passes(tmp_path, released):
    _, _, same = released
    gate = haptera.gate(record(tmp_path / "candidate", same), tmp_path / "released")
    assert gate.passed
    assert not gate.objections
    assert gate.findings()[0].word == "PASS"
    assert gate.findings()[0].sentence == "all 10 comparisons within noise"


def test_neighbouring_severities_that_fell_are_one_sentence(tmp_path, released):
    generator, before, same = released
    worse = plant(generator, same, [("contrast", 3), ("contrast", 4), ("fog", 1)], 0.15)
    gate = haptera.gate(record(tmp_path / "candidate", worse), tmp_path / "released")
    sentence = gate.findings()[0].sentence
    assert not gate.passed
    first, second, rest = sentence.split("; ")
    assert {first.partition(":")[0], second.partition(":")[0]} == {"contrast 3-4", "fog 1"}
    assert "after correction for 10 comparisons" in first
    assert rest == "all others within noise"
    drops = [worse["contrast", severity].mean() - before["contrast", severity].mean() for severity in (3, 4)]
    assert gate.json()["falls"]["contrast 3-4"]["difference"] == pytest.approx(np.mean(drops))


def test_severities_with_one_that_held_between_them_are_told_apart(tmp_path, released):
    generator, _, same = released
    worse = plant(generator, same, [("contrast", 1), ("contrast", 3)], 0.15)
    gate = haptera.gate(record(tmp_path / "candidate", worse), tmp_path / "released")
    assert set(gate.json()["falls"]) == {"contrast 1", "contrast 3"}


def test_a_certain_drop_within_the_tolerance_passes_and_is_said(tmp_path, released):
    generator, before, _ = released
    worse = plant(generator, before, [("fog", 2)], 0.04)
    record(tmp_path / "candidate", worse)
    gate = haptera.gate(tmp_path / "candidate", tmp_path / "released", tolerance=0.06)
    assert gate.passed
    assert gate.comparisons.set_index(["shift", "severity"]).loc[("fog", 2.0), "verdict"] == "lower"
    assert "1 lower by less than the tolerance" in gate.findings()[0].sentence
    assert not haptera.gate(tmp_path / "candidate", tmp_path / "released", tolerance=0.0).passed


def test_the_worst_images_were_right_before_and_are_wrong_now(tmp_path, released):
    generator, before, _ = released
    worse = plant(generator, before, [("fog", 2), ("fog", 3)], 0.1)
    gate = haptera.gate(record(tmp_path / "candidate", worse), tmp_path / "released")
    lost = {place: set(np.flatnonzero(before[place] & ~worse[place])) for place in (("fog", 2), ("fog", 3))}
    both = lost["fog", 2] & lost["fog", 3]
    assert set(gate.worst["image"]) == lost["fog", 2] | lost["fog", 3]
    assert set(gate.worst["image"][gate.worst["fell_in"] == 2]) == both
    assert (gate.worst["fell_in"].diff().dropna() <= 0).all()


def test_images_are_paired_by_their_number_whatever_their_order(tmp_path):
    generator = np.random.default_rng(1)
    before = answers(generator, shifts=("fog",))
    order = generator.permutation(400)
    record(tmp_path / "released", before)
    record(tmp_path / "candidate", {place: right[order] for place, right in before.items()}, ids=order)
    gate = haptera.gate(tmp_path / "candidate", tmp_path / "released")
    assert (gate.comparisons["lost"] == 0).all()
    assert (gate.comparisons["won"] == 0).all()


def test_an_image_of_two_seeds_counts_once(tmp_path, released):
    generator, before, _ = released
    for seed in (0, 1):
        record(tmp_path / "one", before, seed=seed)
        record(tmp_path / "other", plant(generator, before, [("fog", 1)], 0.05), seed=seed)
    gate = haptera.gate(tmp_path / "other", tmp_path / "one")
    row = gate.comparisons.set_index(["shift", "severity"]).loc[("fog", 1.0)]
    assert len(gate.comparisons) == 10
    assert row["images"] == 400
    assert row["difference"] == pytest.approx(-0.05)


def test_a_cell_that_the_candidate_did_not_finish_fails_the_gate(tmp_path, released):
    _, before, same = released
    some = {place: right for place, right in same.items() if place != ("fog", 3)}
    record(tmp_path / "candidate", some)
    record(tmp_path / "candidate", {("fog", 3): same["fog", 3]}, finish=False)
    gate = haptera.gate(tmp_path / "candidate", tmp_path / "released")
    assert not gate.passed
    assert len(gate.comparisons) == len(before) - 1
    assert "1 cell of the baseline could not be compared: net · fog 3 · none" in gate.findings()[0].sentence


def test_of_several_failures_the_first_is_told_and_the_others_are_counted(tmp_path, released):
    _, _, same = released
    gate = haptera.gate(record(tmp_path / "candidate", same), tmp_path / "released")
    told = {many: replace(gate, failures=["no edges", "b", "c"][:many]).findings()[0].sentence for many in (1, 2, 3)}
    assert told[1].endswith("; no edges")
    assert told[2].endswith("; no edges; and 1 more")
    assert told[3].endswith("; no edges; and 2 more")


def test_a_damaged_cell_fails_the_gate(tmp_path, released):
    _, _, same = released
    record(tmp_path / "candidate", same)
    ledger = study_ledger(tmp_path / "candidate")
    path = ledger.path(next(iter(ledger.pieces.values())))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    gate = haptera.gate(tmp_path / "candidate", tmp_path / "released")
    assert not gate.passed
    assert "is not what it was when it was finished" in gate.failures[0]


def test_an_adapter_that_the_candidate_was_never_asked_is_a_note(tmp_path, released):
    _, before, same = released
    record(tmp_path / "released", before, model="v1", adapter="batchnorm")
    gate = haptera.gate(record(tmp_path / "candidate", same), tmp_path / "released")
    assert gate.passed
    assert "was not asked 10 cells of the baseline" in gate.notes[0]


def test_with_several_adapters_a_sentence_says_which(tmp_path, released):
    generator, before, same = released
    record(tmp_path / "released", before, model="v1", adapter="batchnorm")
    record(tmp_path / "candidate", same)
    record(tmp_path / "candidate", plant(generator, same, [("fog", 5)], 0.2), adapter="batchnorm")
    gate = haptera.gate(tmp_path / "candidate", tmp_path / "released")
    assert gate.findings()[0].sentence.startswith("fog 5 with batchnorm: accuracy ")


@pytest.mark.long
def test_bars_hold_whatever_came_before(tmp_path, released):
    _, before, _ = released
    folder = record(tmp_path / "candidate", before)
    hard = before["contrast", 5].mean()
    assert haptera.gate(folder, bar=[f"accuracy@contrast:5={hard - 0.01}"]).passed
    gate = haptera.gate(folder, bar=[f"accuracy@contrast:5={hard + 0.01}", "accuracy=0.01"])
    assert not gate.passed
    assert len(gate.bars) == 11
    assert gate.missed["severity"].tolist() == [5.0]
    assert "contrast 5: accuracy" in gate.objections[1]


@pytest.mark.long
def test_a_quick_gate_has_bars_too(tmp_path, released):
    _, before, _ = released
    folder = record(tmp_path / "candidate", before)
    hard = before["contrast", 5].mean()
    passed = haptera.gate(folder, tmp_path / "released", quick=True, bar=["accuracy=0.01"])
    assert passed.passed
    assert set(passed.bars["verdict"]) == {"held"}
    assert len(passed.bars) == len(passed.comparisons)
    failed = haptera.gate(folder, tmp_path / "released", quick=True, bar=[f"accuracy@contrast:5={hard + 0.01}"])
    assert not failed.passed
    assert failed.missed["severity"].tolist() == [5.0]
    assert failed.missed["value"].tolist() == pytest.approx([hard])  # too near to be certain before the last answer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bar": ["accuracy"]}, "the bar 'accuracy' cannot be read"),
        ({"bar": ["accuracy=high"]}, "limit 'high'; a number was expected"),
        ({"measure": "acuracy"}, "did you mean 'accuracy'"),
        ({"tolerance": -1}, "tolerance is -1; a number from 0 to 1"),
        ({"drop": 0.001, "quick": True}, "more than the tolerance"),
        ({"quick": True, "bar": ["ece=0.5"]}, "needs a whole study"),
        ({"quick": True, "bar": ["accuracy@contrats=0.5"]}, "contrats.*contrast"),
        ({"minutes": 0}, "minutes is 0"),
        ({"model": "nte"}, "did you mean 'net'"),
        ({"baseline_model": "v2"}, "did you mean 'v1'"),
        ({"measure": "confidence"}, "has no confidence of single images"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, released, settings, message):
    folder = record(tmp_path / "candidate", released[1])
    with pytest.raises(HapteraError, match=message):
        haptera.gate(folder, tmp_path / "released", **settings)


def test_other_labels_are_other_data(tmp_path, released, monkeypatch):
    monkeypatch.setattr("recorded_studies.TARGET", 3)
    folder = record(tmp_path / "candidate", released[1])
    with pytest.raises(HapteraError, match="400 of 400 images with the same number have another label"):
        haptera.gate(folder, tmp_path / "released")


def test_studies_without_a_cell_in_common_are_refused(tmp_path, released):
    folder = record(tmp_path / "candidate", {("snow", 1): np.ones(40, bool)})
    with pytest.raises(HapteraError, match=r"no finished cell on the same images; net · snow 1 · none and v1 · fog 1"):
        haptera.gate(folder, tmp_path / "released")


def test_several_models_on_either_side_must_be_named(tmp_path, released):
    record(tmp_path / "released", released[1], model="v0")
    folder = record(tmp_path / "candidate", released[1], model="v2")
    with pytest.raises(HapteraError, match="say which ones to compare with --model and --baseline-model"):
        haptera.gate(folder, tmp_path / "released")
    assert haptera.gate(folder, tmp_path / "released", baseline_model="v0").passed


def test_something_to_compare_with_is_needed(tmp_path, released):
    with pytest.raises(HapteraError, match="give a baseline, or bars"):
        haptera.gate(record(tmp_path / "candidate", released[1]))


def test_a_stream_whose_severity_always_changes_is_one_comparison(tmp_path):
    right = np.ones(30, bool)
    for name in ("one", "other"):
        record(tmp_path / name, {("fog", 0.1): right})
    from haptera.analyses.gate.pairs import scores_by_place
    from haptera.outputs import Outputs

    walk = Outputs(
        {"labels": np.zeros(60, np.int64)},
        np.arange(60),
        np.zeros(60, np.int64),
        context={
            "shift": np.repeat(["fog", "snow"], 30),
            "severity": np.linspace(0, 5, 60),
            "sample": np.arange(60) % 7,
        },
    )
    scores = scores_by_place(walk)
    assert list(scores) == [("", None)]
    assert scores["", None]["image"].nunique() == 7


def test_the_result_is_an_analysis(tmp_path, released):
    gate = haptera.gate(record(tmp_path / "candidate", released[2]), tmp_path / "released")
    assert isinstance(gate, Gate)
    assert "PASS" in gate._repr_html_()
