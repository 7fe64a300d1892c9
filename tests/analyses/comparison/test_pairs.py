import numpy as np
import pandas as pd
import pytest

from haptera.analyses.comparison.analysis import _measure
from haptera.analyses.comparison.pairs import compare_outputs
from haptera.outputs import Outputs


def outputs(logits, targets, ids, **context):
    return Outputs(
        {"logits": np.asarray(logits, np.float32)},
        np.asarray(ids),
        np.asarray(targets),
        np.zeros(len(ids), np.int32),
        context={key: np.asarray(value) for key, value in context.items()},
    )


RIGHT, WRONG = [2.0, 0.0], [0.0, 2.0]


def test_images_are_paired_by_their_id_whatever_their_order():
    one = outputs([RIGHT, WRONG, RIGHT, RIGHT], [0, 0, 0, 0], [1, 2, 3, 9])
    other = outputs([RIGHT, RIGHT, RIGHT], [0, 0, 0], [3, 2, 1])
    rows = {row["measure"]: row for row in compare_outputs(one, other)}
    assert rows["accuracy"]["images"] == 3
    assert rows["accuracy"]["difference"] == pytest.approx(1 / 3)
    assert (rows["accuracy"]["only_one"], rows["accuracy"]["only_other"]) == (1, 0)


def test_in_a_stream_of_repeated_images_the_sample_says_which_it_is():
    """Two orders of the same images under two shifts: by their place in the stream they would be other images."""
    targets = np.array([0, 1, 0, 1])
    one = outputs([RIGHT, WRONG, RIGHT, WRONG], targets, range(4), sample=[7, 8, 7, 8], shift=["a", "a", "b", "b"])
    other = outputs(
        [WRONG, RIGHT, WRONG, RIGHT], targets[::-1], range(4), sample=[8, 7, 8, 7], shift=["b", "b", "a", "a"]
    )
    row = next(row for row in compare_outputs(one, other) if row["measure"] == "accuracy")
    assert row["other_labels"] == 0
    assert (row["images"], row["difference"]) == (4, 0.0)


def test_an_image_that_comes_twice_under_the_same_shift_is_left_out():
    one = outputs([RIGHT, WRONG, RIGHT], [0, 0, 0], range(3), sample=[7, 7, 8], shift=["a"] * 3)
    rows = list(compare_outputs(one, one))
    assert {row["images"] for row in rows} == {1}


def test_studies_that_agree_are_said_to_agree_without_an_interval():
    rows = pd.DataFrame({"model": "net", "part": ["clean", "fog 1"], "adapter": "none", "measure": "confidence",
                         "difference": 0.0, "low": np.nan, "high": np.nan})  # fmt: skip
    [finding] = _measure("confidence", rows)
    assert finding.sentence == "no difference in 2 cells"


def test_a_difference_without_an_interval_has_none_in_its_sentence():
    rows = pd.DataFrame({"model": "net", "part": ["clean", "fog 1"], "adapter": "none", "measure": "confidence",
                         "difference": [0.0, 0.02], "low": np.nan, "high": np.nan})  # fmt: skip
    [finding] = _measure("confidence", rows)
    assert finding.sentence.endswith("most in net · fog 1 · none: +2.00 points")
