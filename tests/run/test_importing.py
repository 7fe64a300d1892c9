"""Predictions made elsewhere become outputs like any other, or the error says what is wrong with them."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.run.cells import cells_of, open_study
from haptera.run.importing import import_predictions
from haptera.run.results import measure

GENERATOR = np.random.default_rng(0)
LOGITS, TARGETS = GENERATOR.normal(size=(20, 8)), GENERATOR.integers(0, 8, 20)


def bring(tmp_path, **arrays):
    np.savez(tmp_path / "preds.npz", **arrays)
    return import_predictions(tmp_path / "preds.npz", tmp_path / "study", model="theirs", stream="v2")


def accuracy(tmp_path):
    table = measure(tmp_path / "study")
    return table[table["measure"] == "accuracy"]


@pytest.mark.parametrize("what", ["logits", "labels", "predictions"])
def test_logits_and_labels_give_the_same_accuracy(tmp_path, what):
    arrays = {"logits": {"logits": LOGITS}}.get(what, {what: LOGITS.argmax(1)})
    bring(tmp_path, **arrays, targets=TARGETS)
    row = accuracy(tmp_path).iloc[0]
    assert row["value"] == (LOGITS.argmax(1) == TARGETS).mean()
    assert (row["model"], row["stream"], row["adapter"], row["shift"], row["n"]) == (
        "theirs",
        "v2",
        "none",
        "clean",
        20,
    )


def test_class_names_are_kept(tmp_path):
    names = [f"kind {k}" for k in range(8)]
    cell = bring(tmp_path, logits=LOGITS, targets=TARGETS, classes=names)
    assert Outputs.load(open_study(tmp_path / "study").checked(cell.piece)).classes.tolist() == names
    with pytest.raises(HapteraError, match="8 names were expected"):
        bring(tmp_path, logits=LOGITS, targets=TARGETS, classes=names[:3])


def test_a_new_import_under_the_same_names_replaces_the_old(tmp_path):
    bring(tmp_path, labels=TARGETS, targets=TARGETS)
    bring(tmp_path, labels=(TARGETS + 1) % 8, targets=TARGETS)
    assert accuracy(tmp_path)["value"].tolist() == [0.0]
    assert len(cells_of(open_study(tmp_path / "study"))) == 1


def test_without_targets_outputs_are_kept_and_no_accuracy_appears(tmp_path):
    bring(tmp_path, logits=LOGITS)
    assert accuracy(tmp_path).empty


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logit": LOGITS}, "unknown array in preds.npz 'logit'; did you mean 'logits'"),
        ({"targets": TARGETS}, "either logits or labels were expected"),
        ({"logits": LOGITS, "labels": TARGETS}, "either logits or labels were expected"),
        ({"logits": LOGITS[0]}, r"logits are float64 \(8,\)"),
        ({"logits": LOGITS, "targets": TARGETS[:5]}, "targets has 5 entries, ids have 20"),
        ({"logits": LOGITS, "targets": TARGETS + 1}, "targets hold 8; 0 to 7 was expected"),
        ({"labels": TARGETS, "targets": TARGETS.astype(float)}, "targets are float64"),
        ({"labels": TARGETS - 1}, "labels hold -1"),
        ({"labels": TARGETS, "ids": np.zeros(20, int)}, "ids repeat"),
        ({"labels": np.array(["a"] * 20)}, "labels are <U1"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, arrays, message):
    with pytest.raises(HapteraError, match=message):
        bring(tmp_path, **arrays)
    assert not (tmp_path / "study").exists()


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "preds.npz", logits=np.array([{"a": 1}], dtype=object))
    with pytest.raises(HapteraError, match=r"preds\.npz"):
        import_predictions(tmp_path / "preds.npz", tmp_path / "study", model="a", stream="b")
