"""Accuracy without labels: agreement against a slow version, the choice of the method, files, and what is refused."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtri

import haptera
from haptera.analyses.trends.agreement import agreement, agreement_line
from haptera.analyses.trends.answers import Answers, read_answers
from haptera.analyses.trends.estimates import AGREEMENT, predict, student_prediction
from haptera.errors import HapteraError

NAMES = tuple(f"net-{place}" for place in range(6))


def answers(spread, seed, images=300, classes=4, shift=0.0, name="set"):
    """Six models of different quality, which see the same images, a little shifted."""
    random = np.random.default_rng(seed)
    targets = random.integers(0, classes, images)
    seen = 3 * np.eye(classes)[targets] + spread * random.normal(size=(images, classes)) + shift
    logits = np.stack([seen + own * random.normal(size=seen.shape) for own in np.linspace(0.5, 2.5, 6)])
    return Answers(name, NAMES, logits.argmax(2), logits, targets)


def test_agreement_is_the_share_of_equal_predictions():
    predictions = np.random.default_rng(0).integers(0, 3, (4, 50))
    slow = [np.mean([a == b for a, b in zip(one, two, strict=True)]) for one, two in combinations(predictions, 2)]
    assert agreement(predictions).tolist() == pytest.approx(slow)


def test_accuracies_solve_the_equations_of_all_pairs():
    reference, new = answers(1.0, 0), answers(1.5, 1)
    line = agreement_line(reference.accuracy, reference.predictions, new.predictions)
    u, v = ndtri(agreement(reference.predictions)), ndtri(agreement(new.predictions))
    slope, intercept = np.polyfit(u, v, 1)
    t = ndtri(reference.accuracy)
    pairs = list(combinations(range(6), 2))
    design = np.array([[0.5 * (place in pair) for place in range(6)] for pair in pairs])
    right = [v[k] + slope * ((t[i] + t[j]) / 2 - u[k]) for k, (i, j) in enumerate(pairs)]
    expected = np.linalg.lstsq(design, right, rcond=None)[0]
    assert ndtri(line.accuracy) == pytest.approx(expected)
    assert ndtri(line.simple) == pytest.approx(slope * t + intercept)
    assert line.r2 == pytest.approx(np.corrcoef(u, v)[0, 1] ** 2)


def test_the_same_data_has_the_same_accuracies():
    same = answers(1.0, 0)
    line = agreement_line(same.accuracy, same.predictions, same.predictions)
    assert line.accuracy == pytest.approx(same.accuracy)
    assert (line.slope, line.r2) == (pytest.approx(1), pytest.approx(1))


def test_known_sets_choose_a_method_that_is_near_the_truth():
    reference = answers(1.0, 0)
    known = [answers(spread, 10 + place) for place, spread in enumerate((1.2, 1.4, 1.6, 1.8, 2.0))]
    found = predict(reference, answers(1.7, 99), known)
    assert found.sets == 5
    assert (found.frame["low"] < found.frame["predicted"]).all()
    assert (found.frame["predicted"] - found.frame["truth"]).abs().mean() < 0.05
    rows = found.methods.set_index("method")
    best = rows[["known", "plain"]].min(axis=1)
    assert best[found.method] == best.min()
    assert found.every.shape == (6, 10)


def test_targets_of_the_new_data_decide_nothing():
    reference, new = answers(1.0, 0), answers(1.7, 99)
    known = [answers(spread, 10 + place) for place, spread in enumerate((1.2, 1.4, 1.6, 1.8))]
    blind = Answers("new", NAMES, new.predictions, new.logits)
    columns = ["model", "predicted", "low", "high"]
    assert predict(reference, new, known).frame[columns].equals(predict(reference, blind, known).frame[columns])


def test_without_known_sets_there_is_agreement_and_no_interval():
    found = predict(answers(1.0, 0), answers(1.5, 1))
    assert found.method == AGREEMENT
    assert found.frame["low"].isna().all()
    assert predict(answers(1.0, 0), answers(1.5, 1), [answers(1.2, 3)] * 3).frame["low"].isna().all()


def test_the_interval_is_students_for_one_more():
    errors = np.array([[0.01], [0.03], [0.02], [0.06]])
    ones, one = np.ones((4, 1)), np.ones(1)
    middle, low, high = student_prediction(np.array([0.7]), errors, ones, one)
    assert middle == pytest.approx(0.67)
    assert high - middle == pytest.approx(3.1824463 * np.std(errors, ddof=1) * np.sqrt(1.25))
    doubled, _, wide = student_prediction(np.array([0.7]), errors, ones, 2 * one)
    assert doubled == pytest.approx(0.64)
    assert wide - doubled == pytest.approx(2 * (high - middle))
    plain, low, high = student_prediction(np.array([0.7]), errors, ones, one, corrected=False)
    assert plain == pytest.approx(0.7)
    assert plain - low == pytest.approx(2.7764451 * np.sqrt(np.mean(errors**2)))


def save(path, side, kind="logits", targets=True):
    shown = {"logits": side.logits, "predictions": side.predictions}
    shown["probabilities"] = np.exp(side.logits) / np.exp(side.logits).sum(2, keepdims=True)
    rest = {"targets": side.targets} if targets else {}
    np.savez(path, models=np.array(side.models), **{kind: shown[kind]}, **rest)
    return str(path)


@pytest.mark.long
def test_logits_probabilities_and_predictions_are_read(tmp_path):
    side = answers(1.0, 0)
    for kind in ("logits", "probabilities", "predictions"):
        found = read_answers(save(tmp_path / f"{kind}.npz", side, kind))
        assert np.array_equal(found.predictions, side.predictions)
        assert found.accuracy == pytest.approx(side.accuracy)
        assert (found.logits is None) == (kind == "predictions")
        assert haptera.trends(tmp_path / f"{kind}.npz", tmp_path / f"{kind}.npz", draws=50).json()["models"] == 6


def test_the_analysis_says_what_it_needs(tmp_path):
    reference = save(tmp_path / "a.npz", answers(1.0, 0))
    blind = save(tmp_path / "b.npz", answers(1.5, 1), "predictions", targets=False)
    found = haptera.trends(reference, unlabelled=blind)
    assert any("no labelled set" in note for note in found.notes)
    assert any("no logits" in note for note in found.notes)
    assert set(found.json()["predicted_accuracy"]) == set(NAMES)
    with pytest.raises(HapteraError, match=r"b\.npz has no targets"):
        haptera.trends(blind, unlabelled=reference)
    np.savez(tmp_path / "c.npz", models=np.array(NAMES), correct=np.ones((6, 5), bool))
    with pytest.raises(HapteraError, match="not only whether that is right"):
        haptera.trends(reference, unlabelled=tmp_path / "c.npz")
    (tmp_path / "d.csv").write_text("model,accuracy\na,0.5\n")
    with pytest.raises(HapteraError, match="accuracies alone"):
        haptera.trends(reference, unlabelled=tmp_path / "d.csv")
    other = Answers("other", tuple("abcdef"), answers(1.0, 0).predictions)
    with pytest.raises(HapteraError, match="0 models in common"):
        predict(answers(1.0, 0), other)
