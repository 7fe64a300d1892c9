"""Logits on disk and their analysis: batches, cells of a study, names, pairs of files, and what is wrong with them."""

import zipfile

import numpy as np
import pandas as pd
import pytest

from haptera import dependencies
from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.replacement import replacement
from haptera.analyses.dependencies.second_moment import BLOCK, SecondMoment
from haptera.errors import HapteraError
from haptera.run.importing import import_predictions

NAMES = ["macaw", "ostrich", "bittern", "crane", "crane"]


def rows_of(samples=300, classes=5, seed=0):
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, classes, samples)
    logits = generator.standard_normal((samples, classes)) + 2 * np.eye(classes)[targets]
    logits[:, 0] = 0.6 * logits[:, 1] - 0.4 * logits[:, 2] + 0.1 * logits[:, 0]
    return logits.astype(np.float32), targets


def sentences(analysis):
    """Word -> every sentence under it."""
    said = {}
    for finding in analysis.findings():
        word = finding.word or word  # noqa: F821 (one that goes on has the word of the one before)
        said.setdefault(word, []).append(finding.sentence)
    return said


@pytest.fixture
def saved(tmp_path):
    logits, targets = rows_of()
    np.savez(tmp_path / "net.npz", logits=logits, targets=targets, classes=NAMES)
    return tmp_path / "net.npz"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_batches_are_the_logits(tmp_path, save, kind):
    logits = rows_of(2 * BLOCK + 17)[0].astype(kind)
    save(tmp_path / "net.npz", logits=logits)
    file = LogitsFile(tmp_path / "net.npz")
    batches = list(file)
    assert [len(batch) for batch in batches] == [BLOCK, BLOCK, 17]
    assert np.array_equal(np.concatenate(batches), logits)
    assert (file.targets, file.names, file.shape) == (None, None, logits.shape)


def test_columns_first_are_read_too(tmp_path):
    logits = np.asfortranarray(rows_of()[0])
    np.savez(tmp_path / "net.npz", logits=logits)
    assert np.array_equal(np.concatenate(list(LogitsFile(tmp_path / "net.npz"))), logits)


def test_halves_are_fitted_on_and_evaluated_apart(saved):
    logits, targets = rows_of()
    analysis = dependencies(saved, alpha=0.05, unit="logit")
    fitted = analysis.fitted_on
    assert fitted.sum() == 150
    lasso = CovarianceLasso(alpha=0.05).fit(logits[fitted])
    assert analysis.dependencies.coefficients.toarray() == pytest.approx(lasso.coef_, abs=1e-12)
    expected = replacement(logits[~fitted], lasso.dependencies_, targets[~fitted])
    pd.testing.assert_frame_equal(analysis.replacement, expected)
    theta = lasso.coef_ - np.eye(5)
    left = (logits[~fitted].astype(float) @ theta.T) ** 2
    assert analysis.dependencies.error == pytest.approx(left.mean(0))
    assert analysis.dependencies.relative_error == pytest.approx(
        left.mean(0) / (logits[~fitted].astype(float) ** 2).mean(0)
    )
    assert analysis.redundancy.value == pytest.approx(Redundancy.of(SecondMoment.of(logits)).value)


def test_noise_is_no_dependency_on_other_examples(tmp_path):
    """Fitted on what it is evaluated on, a combination of noise explains noise."""
    np.savez(tmp_path / "noise.npz", logits=np.random.default_rng(0).standard_normal((64, 30)))
    same, apart = (
        dependencies(tmp_path / "noise.npz", alpha=0.01, fit_on=fit_on).dependencies.relative_error.mean()
        for fit_on in ("all", "half")
    )
    assert same < 0.75
    assert apart > 1


def test_too_few_examples_for_two_halves_are_said(tmp_path):
    logits, targets = rows_of(8)
    np.savez(tmp_path / "few.npz", logits=logits, targets=targets)
    few = dependencies(tmp_path / "few.npz")
    assert few.fitted_on is None
    assert any("half of 8 examples is less than 5 classes" in note for note in few.notes)
    assert dependencies(tmp_path / "few.npz", fit_on="all").notes == []
    with pytest.raises(HapteraError, match="did you mean 'half'"):
        dependencies(tmp_path / "few.npz", fit_on="halv")


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("saved_as", ["softmax", "log-softmax", ""])
def test_probabilities_saved_as_logits_are_noted(tmp_path, saved_as, kind):
    logits, targets = rows_of(2 * BLOCK)
    logits -= logits.max(1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows = {"softmax": shares, "log-softmax": np.log(shares), "": logits}[saved_as]
    np.savez(tmp_path / "net.npz", logits=rows.astype(kind), targets=targets)
    said = " ".join(dependencies(tmp_path / "net.npz").notes)
    assert (f"holds {saved_as}, not logits" in said) if saved_as else ("not logits" not in said)


def test_a_whole_class_that_is_lost_is_said_and_not_hidden_among_a_thousand(tmp_path):
    """One class of many is a tenth of a point of all images, and all of its own."""
    classes, each = 100, 8
    targets = np.repeat(np.arange(classes), each)
    logits = np.random.default_rng(0).normal(0, 0.1, (classes * each, classes)) + 5 * np.eye(classes)[targets]
    np.savez(tmp_path / "net.npz", logits=logits, targets=targets)
    analysis = dependencies(tmp_path / "net.npz", alpha=10, fit_on="all")  # nothing is left of any class
    said = sentences(analysis)["cost"]
    assert "100.0 % are right before and 0.0 % after it is derived" in said[1]
    assert "100.0 % before, 0.0 % after, of 8" in said[1]
    assert "falls by 1.00 points at most" in said[2]
    row = analysis.json()["dependencies"][3]
    assert (row["images"], row["own_accuracy"], row["own_accuracy_derived"], row["accuracy_derived"]) == (8, 1, 0, 0.99)


def test_an_analysis_is_what_the_parts_say(saved):
    logits, targets = rows_of()
    analysis = dependencies(saved, alpha=0.05, unit="logit", fit_on="all")
    lasso = CovarianceLasso(alpha=0.05).fit(logits)
    assert analysis.dependencies.coefficients.toarray() == pytest.approx(lasso.coef_, abs=1e-12)
    assert analysis.redundancy.value == pytest.approx(Redundancy.of(SecondMoment.of(logits)).value)
    pd.testing.assert_frame_equal(analysis.replacement, replacement(logits, lasso.dependencies_, targets))
    assert analysis.names == ["macaw", "ostrich", "bittern", "crane (3)", "crane (4)"]
    assert analysis.notes == []


def test_json_has_the_promised_keys(saved):
    analysis = dependencies(saved, alpha=0.05)
    content = analysis.json()
    assert set(content) >= {
        "rank", "precision", "fitted_on", "notes", "kkt_violation", "dependencies", "accuracy", "names",
    }  # fmt: skip
    assert content["rank"] == 5
    assert content["kkt_violation"] <= 1e-8
    assert [row["class"] for row in content["dependencies"]] == [0, 1, 2, 3, 4]
    first = content["dependencies"][0]
    assert set(first) == {
        "class", "on", "error", "relative_error", "redundancy", "mean_error", "accuracy_derived", "images",
        "own_accuracy", "own_accuracy_derived",
    }  # fmt: skip
    assert {on for on, _ in first["on"]} >= {1, 2}
    coefficients = [abs(value) for _, value in first["on"]]
    assert coefficients == sorted(coefficients, reverse=True)
    assert 0 < first["redundancy"] <= first["error"] + 1e-12


def test_the_summary_names_classes_and_figures(saved):
    analysis = dependencies(saved, alpha=0.05, fit_on="all")
    said = sentences(analysis)
    assert analysis.headline() == "300 examples, 5 classes of net.npz"
    assert said["lasso"][0].startswith("at α 0.05 of each class's square")
    assert said["rank"] == ["5 of 5: no class is exactly a combination of others"]
    assert any(text.startswith("macaw ≈ 0.5") for text in said["strongest"])
    assert analysis.combination(0, terms=1).endswith("more")
    accuracy = (rows_of()[0].argmax(1) == rows_of()[1]).mean()
    assert f"of all images {100 * accuracy:.2f} % are right" in said["cost"][2]
    assert "of λ" in said["lasso"][0]


def test_exact_combinations_and_too_large_an_alpha_are_said(tmp_path):
    logits, _ = rows_of(3)
    np.savez(tmp_path / "few.npz", logits=logits)
    few = dependencies(tmp_path / "few.npz", alpha=1e6)
    assert sentences(few)["verdict"][1] == "5 are close, but have no images to tell what it costs"
    assert sentences(few)["lasso"][0].startswith("at α 1e+06 of each class's square 0 dependencies")
    assert sentences(few)["rank"] == ["3 of 5: the null space has 2 directions"]
    assert sentences(few)["redundant"] == ["5 of 5 classes have nothing of their own"]
    assert sentences(few)["cost"][-1] == "without targets there is no accuracy"
    assert "had nothing to be wrong about" in sentences(few)["conjecture"][0]
    assert "fewer examples (3) than classes (5)" in few.notes[0]
    assert "the largest α with a dependency is" in few.notes[2]


def test_onto_another_network(tmp_path, saved):
    other, _ = rows_of(seed=3)
    np.savez(tmp_path / "other.npz", logits=other)
    analysis = dependencies(saved, tmp_path / "other.npz", alpha=0.05, unit="logit", fit_on="all")
    lasso = CovarianceLasso(alpha=0.05).fit(rows_of()[0], onto=other)
    assert analysis.dependencies.coefficients.toarray() == pytest.approx(lasso.coef_, abs=1e-12)
    expected = replacement(rows_of()[0], lasso.dependencies_, rows_of()[1], onto=other)
    pd.testing.assert_frame_equal(analysis.replacement, expected)
    assert analysis.target_names == analysis.names
    assert analysis.headline().startswith("300 examples, 5 classes of net.npz onto the 5 of other.npz")


def test_onto_a_network_with_other_classes(tmp_path, saved):
    np.savez(tmp_path / "other.npz", logits=rows_of(classes=7, seed=1)[0], classes=np.arange(7))
    analysis = dependencies(saved, tmp_path / "other.npz", per_class=2)
    assert analysis.dependencies.coefficients.shape == (7, 5)
    assert analysis.target_names == list("0123456")
    assert analysis.json()["onto_names"] == list("0123456")
    assert analysis.targets is None


def test_a_cell_of_a_study_and_the_study_itself(tmp_path):
    logits, targets = rows_of()
    np.savez(tmp_path / "predictions.npz", logits=logits, targets=targets)
    listed = import_predictions(tmp_path / "predictions.npz", tmp_path / "audit", model="net", stream="clean")
    cell = tmp_path / "audit" / "cells" / f"{listed.key}.npz"
    assert LogitsFile(cell).targets.tolist() == targets.tolist()
    assert LogitsFile(tmp_path / "audit").path == cell
    import_predictions(tmp_path / "predictions.npz", tmp_path / "audit", model="other", stream="clean")
    with pytest.raises(HapteraError, match=r"2 finished cells; name the file of one: .*net · clean · none"):
        LogitsFile(tmp_path / "audit")


def test_a_cell_with_a_mapping_has_targets_only_where_each_class_has_one_column(tmp_path):
    logits, _ = rows_of()
    targets = np.arange(300) % 2
    one = np.array([[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]], bool)
    np.savez(tmp_path / "one.npz", logits=logits, targets=targets, accepted=one)
    assert LogitsFile(tmp_path / "one.npz").targets.tolist() == [3, 1] * 150
    np.savez(tmp_path / "two.npz", logits=logits, targets=targets, accepted=one | [True, False, False, False, False])
    assert LogitsFile(tmp_path / "two.npz").targets is None


def damaged(path):
    """A file whose logits end in the middle, though its directory is whole."""
    np.savez(path, logits=rows_of()[0])
    with zipfile.ZipFile(path) as archive:
        content = archive.read("logits.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", content[:-40])


def nan_in_the_middle(path):
    logits, _ = rows_of()
    logits[200, 3] = np.nan
    np.savez(path, logits=logits)


BAD = {
    "no such file": (lambda path: np.savez(path.with_name("bat.npz"), logits=rows_of()[0]), "did you mean 'bat.npz'"),
    "no npz": (lambda path: path.write_text("no"), "is not an .npz file"),
    "no logits": (lambda path: np.savez(path, logit=rows_of()[0]), "did you mean 'logit'"),
    "logits of one dimension": (lambda path: np.savez(path, logits=np.ones(3)), r"logits are float64 \(3,\)"),
    "no samples": (lambda path: np.savez(path, logits=np.ones((0, 3))), r"\(0, 3\)"),
    "text": (lambda path: np.savez(path, logits=[["a", "b"]]), "logits are <U1"),
    "one class": (lambda path: np.savez(path, logits=np.ones((3, 1))), "at least two"),
    "NaN": (nan_in_the_middle, "logits hold nan in sample 200, class 3"),
    "too few names": (
        lambda path: np.savez(path, logits=rows_of()[0], classes=NAMES[:4]),
        r"classes are <U7 \(4,\); names \(5,\) were expected, one for each class",
    ),
    "names that are no names": (
        lambda path: np.savez(path, logits=rows_of()[0], classes=np.ones((5, 2))),
        r"classes are float64 \(5, 2\)",
    ),
    "targets of another length": (
        lambda path: np.savez(path, logits=rows_of()[0], targets=[1, 2]),
        r"targets are .*\(2,\)",
    ),
    "targets out of range": (
        lambda path: np.savez(path, logits=rows_of()[0], targets=np.full(300, 5)),
        "targets hold 5; the logits have classes 0 to 4",
    ),
    "logits that end early": (damaged, "damaged"),
    "folder without a study": (lambda path: path.mkdir(), "no plan.json"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named_with_what_was_expected(kind, tmp_path):
    prepare, message = BAD[kind]
    prepare(tmp_path / "bad.npz")
    with pytest.raises(HapteraError, match=message) as caught:
        dependencies(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"logits": rows_of(299)[0]}, r"other.npz has 299 samples, .*net.npz has 300"),
        ({"logits": rows_of()[0], "classes": [*NAMES[:2], "heron", *NAMES[3:]]}, "class 2 is 'bittern' .* and 'heron'"),
        ({"logits": rows_of()[0], "targets": np.zeros(300, int)}, r"targets of \d+ of 300 samples differ"),
    ],
)
def test_two_files_that_do_not_belong_together_are_named(saved, other, message):
    np.savez(saved.with_name("other.npz"), **other)
    with pytest.raises(HapteraError, match=message):
        dependencies(saved, saved.with_name("other.npz"))
