import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.live.answers import Answers, ids_of


def test_labels_find_the_answers_they_belong_to_once():
    answers = Answers(100)
    logits = np.eye(3)[[0, 1, 2]]
    answers.add([10, 11, 12], logits, np.array([0, 1, 2]), np.array([0, 0, 0]))
    labelled = answers.label([12, 10, 99], np.array([2, 1, 0]))
    assert labelled.logits.tolist() == logits[[2, 0]].tolist()
    assert labelled.targets.tolist() == [2, 1]
    assert labelled.differences.tolist() == [1, 0]
    assert labelled.unknown == 1
    assert answers.label([12], np.array([2])).unknown == 1


def test_images_that_one_model_did_not_answer_are_no_pairs():
    answers = Answers(100)
    answers.add(["a"], np.eye(2)[[0]], np.array([0]), None)
    labelled = answers.label(["a"], np.array([0]))
    assert len(labelled.targets) == 1
    assert len(labelled.differences) == 0


def test_the_oldest_answers_go_first():
    answers = Answers(3)
    for number in range(5):
        answers.add([number], np.eye(2)[[0]], None, np.array([0]))
    assert answers.label([0, 1, 2, 3, 4], np.zeros(5)).unknown == 2


def test_labels_tell_whether_their_images_came_after_the_last_change():
    answers = Answers(100)
    answers.add([0, 1, 2], np.eye(3), None, None, first=40)
    answers.add([3, 4], np.eye(3)[:2], None, None, first=50)  # images in between came without ids
    answers.since = 42
    assert answers.label([4, 1, 2], np.zeros(3)).recent.tolist() == [True, False, True]


def test_answers_go_on_from_their_state():
    one, two = Answers(10), Answers(10)
    one.add([1, "b"], np.eye(2), np.array([0, 1]), np.array([1, 1]), first=8)
    one.since = 9
    two.restore(one.state())
    older = Answers(10)
    older.restore({name: value for name, value in one.state().items() if name not in ("places", "since")})
    assert older.label([1, "b"], np.array([0, 1])).recent.all()
    first, second = (each.label([1, "b"], np.array([0, 1])) for each in (one, two))
    assert first.recent.tolist() == second.recent.tolist() == [False, True]
    assert first.differences.tolist() == second.differences.tolist() == [1, 0]
    assert np.array_equal(first.logits, second.logits)


def test_ids_that_do_not_fit_are_refused():
    with pytest.raises(HapteraError, match="ids has 2 entries; one for each of 3 images"):
        ids_of([1, 2], 3)
    with pytest.raises(HapteraError, match=r"ids holds 1\.5"):
        ids_of([1.5], 1)


@pytest.mark.parametrize(("targets", "said"), [([0, 3], "label 3 is out of range"), ([0.5, 1.0], "whole numbers")])
def test_labels_that_are_no_classes_are_refused_and_nothing_is_forgotten(targets, said):
    answers = Answers(10)
    answers.add(["a", "b"], np.eye(3, dtype=np.float32)[:2], None, None)
    with pytest.raises(HapteraError, match=said):
        answers.label(["a", "b"], np.array(targets))
    assert len(answers.label(["a", "b"], np.array([0, 1])).targets) == 2
