"""Outputs: what is right, what is kept, and that a file gives back what it was given."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from haptera.errors import HapteraError
from haptera.outputs import Outputs, context_columns
from haptera.outputs_schema import FACTS

LOGITS = arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(2, 7)), elements=st.integers(-3, 3).map(float))


@given(LOGITS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_correct_agrees_with_sorting_each_row(logits, k, random):
    targets = np.array([random.randrange(logits.shape[1]) for _ in logits])
    outputs = Outputs({"logits": logits}, np.arange(len(logits)), targets)
    slow = []
    for row, target in zip(logits, targets, strict=True):
        order = sorted(range(len(row)), key=lambda column: (-row[column], column))
        slow.append(target in order[:k])
    assert outputs.correct(k).tolist() == slow
    assert (outputs.predictions() == logits.argmax(1)).all()


@given(LOGITS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_set_of_accepted_classes_is_right_when_any_is(logits, k, random):
    columns = logits.shape[1]
    accepted = np.zeros((2, columns), bool)
    accepted[0, random.sample(range(columns), 1)] = True
    accepted[1, random.sample(range(columns), min(2, columns))] = True
    targets = np.array([random.randrange(2) for _ in logits])
    outputs = Outputs({"logits": logits}, np.arange(len(logits)), targets, accepted=accepted)
    slow = []
    for row, target in zip(logits, targets, strict=True):
        order = sorted(range(columns), key=lambda column: (-row[column], column))
        slow.append(bool(accepted[target, order[:k]].any()))
    assert outputs.correct(k).tolist() == slow


def test_best_k_give_the_same_answer_as_all_logits():
    generator = np.random.default_rng(0)
    logits, targets = generator.normal(size=(50, 9)).astype(np.float32), generator.integers(0, 9, 50)
    order = np.argsort(-logits, axis=1)[:, :5]
    full = Outputs({"logits": logits}, np.arange(50), targets)
    best = Outputs({"top_indices": order, "top_values": np.take_along_axis(logits, order, 1)}, np.arange(50), targets)
    for k in (1, 3, 5):
        assert (full.correct(k) == best.correct(k)).all()
    assert (full.predictions() == best.predictions()).all()
    with pytest.raises(HapteraError, match="only the best 5 were kept"):
        best.correct(6)
    with pytest.raises(HapteraError, match="logits were not kept"):
        _ = best.logits


def test_restricted_columns_are_named_by_the_models_classes():
    outputs = Outputs({"logits": np.array([[0.0, 2.0], [3.0, 1.0]])}, np.arange(2), columns=np.array([7, 40]))
    assert outputs.predictions().tolist() == [40, 7]


def test_nan_is_never_right():
    logits = np.array([[np.nan, 1.0], [0.0, 1.0]], np.float32)
    outputs = Outputs({"logits": logits}, np.arange(2), np.array([1, 1]))
    assert outputs.correct().tolist() == [False, True]
    assert outputs.predictions().tolist() == [-1, 1]


def test_a_file_gives_back_what_it_was_given(tmp_path):
    generator = np.random.default_rng(1)
    outputs = Outputs(
        {"logits": generator.normal(size=(6, 3)).astype(np.float16)},
        ids=np.array([5, 3, 9, 1, 0, 2]),
        targets=np.array([0, 1, 1, 0, 0, 1]),
        step=np.array([0, 0, 0, 1, 1, 1], np.int32),
        context={"shift": np.array(["a", "b", "b", "a", "a", "ö"]), "severity": np.array([0, 1, 1, 0.5, 0.5, 2])},
        steps={"seconds": np.array([0.1, 0.2]), "loss": np.array([1.0, np.nan])},
        accepted=np.array([[True, False, False], [False, True, True]]),
        columns=np.array([4, 5, 6]),
        provenance={"model": "net", "seed": 3, "versions": {"torch": "2"}},
    )
    outputs.save(tmp_path / "cell.npz")
    again = Outputs.load(tmp_path / "cell.npz")
    for name in ("ids", "targets", "step", "accepted", "columns"):
        assert np.array_equal(getattr(outputs, name), getattr(again, name)), name
    for name in ("arrays", "context", "steps"):
        for key, array in getattr(outputs, name).items():
            loaded = getattr(again, name)[key]
            assert np.array_equal(array, loaded, equal_nan=array.dtype.kind == "f"), key
            assert array.dtype == loaded.dtype
    assert again.provenance == outputs.provenance


@pytest.mark.parametrize("damage", ["truncate", "garbage", "other npz", "missing"])
def test_a_damaged_file_is_named_and_not_readable(tmp_path, damage):
    path = tmp_path / "cell.npz"
    Outputs({"labels": np.arange(300)}, np.arange(300), provenance={"a": 1}).save(path)
    assert Outputs.readable(path)
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:1000])
    elif damage == "garbage":
        path.write_bytes(b"nothing of the kind")
    elif damage == "other npz":
        np.savez(path, x=np.arange(3))
    else:
        path.unlink()
    assert not Outputs.readable(path)
    with pytest.raises(HapteraError, match=r"cell\.npz"):
        Outputs.load(path)


def test_lengths_must_agree():
    with pytest.raises(HapteraError, match="targets has 3 entries, ids have 2"):
        Outputs({"labels": np.arange(2)}, np.arange(2), np.arange(3))
    with pytest.raises(HapteraError, match="need logits"):
        Outputs({}, np.arange(2))


def test_context_is_one_value_or_one_for_each():
    columns = context_columns([({"shift": "fog", "severity": [1, 2, 3]}, 3), ({"shift": "mist", "severity": 4}, 2)])
    assert columns["shift"].tolist() == ["fog"] * 3 + ["mist"] * 2
    assert columns["severity"].tolist() == [1, 2, 3, 4, 4]
    with pytest.raises(HapteraError, match="context 'severity' has shape"):
        context_columns([({"severity": [1, 2]}, 3)])
    with pytest.raises(HapteraError, match="context 'severity' is None"):
        context_columns([({"severity": 1}, 3), ({}, 3)])


def test_groups_are_the_distinct_contexts():
    context = {
        "shift": np.array(["b", "a", "b", "a"]),
        "severity": np.array([1.0, 2.0, 1.0, 1.0]),
        "sample": np.arange(4),
    }
    contexts, codes = Outputs({"labels": np.arange(4)}, np.arange(4), context=context).groups
    assert contexts == [
        {"shift": "a", "severity": 1.0},
        {"shift": "a", "severity": 2.0},
        {"shift": "b", "severity": 1.0},
    ]
    assert codes.tolist() == [2, 1, 2, 0]


def test_provenance_is_checked_when_written_and_when_read(tmp_path):
    outputs = Outputs({"labels": np.arange(3)}, np.arange(3), provenance={"threads": 1, "mine": [1, 2]})
    outputs.save(tmp_path / "cell.npz")
    assert Outputs.load(tmp_path / "cell.npz").provenance == {"threads": 1, "mine": [1, 2]}
    outputs.provenance["threads"] = "many"
    with pytest.raises(HapteraError, match=r"provenance of outputs: threads is 'many'; a whole number of at least 1"):
        outputs.save(tmp_path / "cell.npz")
    content = dict(np.load(tmp_path / "cell.npz"))
    content["provenance"] = np.frombuffer(b'{"device": 3}', np.uint8)
    np.savez(tmp_path / "cell.npz", **content)
    with pytest.raises(HapteraError, match=r"cell\.npz: device is 3; a text was expected"):
        Outputs.load(tmp_path / "cell.npz")


def test_the_documentation_has_every_key_of_the_provenance():
    text = (Path(__file__).parents[1] / "docs" / "reference" / "outputs.md").read_text(encoding="utf-8")
    for key, (kind, meaning) in FACTS.items():
        assert f"| `{key}` | {kind.expected} | {meaning} |" in text, key


@pytest.mark.parametrize("ask", [Outputs.predictions, Outputs.correct])
def test_keypoints_have_no_classes(ask):
    outputs = Outputs({"keypoints": np.zeros((2, 3, 2))}, np.arange(2), np.zeros((2, 3, 2)))
    with pytest.raises(HapteraError, match="hold keypoints"):
        ask(outputs)
