"""Objectives on parts of the embedding, any number of them (8.3)."""

import numpy as np
import pytest

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.inputs import Inputs
from haptera.errors import HapteraError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 5))
PLACE = np.cumsum(GENERATOR.normal(size=300))
SIDE = GENERATOR.integers(0, 3, 300)
PARTS = {"0": [0, 1], "1": [2, 3], "time": [4]}
SHORT = {"output_dimension": 5, "max_iterations": 3, "batch_size": 32, "random_state": 0}


def test_every_part_draws_pairs_by_its_own_label():
    model = ContrastiveEmbedding(hybrid=PARTS, time_offsets=4, **SHORT).fit(X, PLACE, SIDE)
    inputs = Inputs.read(model, X, [PLACE, SIDE])
    by_place, by_side, by_time = model.model_.pairs(inputs, model.mode_, 200)
    assert [part[0] for part in (by_place, by_side, by_time)] == [[0, 1], [2, 3], [4]]
    assert (SIDE[by_side[1]] == SIDE[by_side[2]]).all()
    assert (SIDE[by_place[1]] != SIDE[by_place[2]]).any()  # the other label does not count
    assert (by_time[2] - by_time[1] == 4).all()
    differences = PLACE[4:] - PLACE[:-4]
    assert np.abs(PLACE[by_place[2]] - PLACE[by_place[1]]).mean() == pytest.approx(np.abs(differences).mean(), rel=0.4)


def test_dimensions_of_no_part_are_left_as_they_were():
    settings = {"model_architecture": "offset1-model-mse", "distance": "euclidean", "positive_in_denominator": True}
    settings |= SHORT | {"hybrid": {"0": [0, 1], "time": [4]}}
    short, long = (ContrastiveEmbedding(**settings | {"max_iterations": steps}).fit(X, PLACE) for steps in (1, 5))
    last = [list(model.encoders_[0].parameters())[-1].detach().numpy() for model in (short, long)]
    assert (last[0] != last[1]).tolist() == [True, True, False, False, True]


def test_parts_survive_a_file(tmp_path):
    model = ContrastiveEmbedding(hybrid=PARTS, **SHORT).fit(X, PLACE, SIDE)
    model.save(tmp_path / "model.safetensors")
    again = ContrastiveEmbedding.load(tmp_path / "model.safetensors")
    assert again.mode_ == model.mode_
    assert np.allclose(again.transform(X), model.transform(X))
    assert again.goodness_of_fit(X, PLACE, SIDE) == pytest.approx(model.goodness_of_fit(X, PLACE, SIDE))


@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        ({"hybrid": {"0": [0], "time": [1]}}, [PLACE, SIDE], "parts 0, time, and 2 labels were given"),
        ({"hybrid": {"0": [0], "2": [1]}}, [PLACE, SIDE], "one part for each"),
        ({"hybrid": {"time": [0]}}, [PLACE], "numbers of labels"),
        ({"hybrid": {"0": [0], "tme": [1]}}, [PLACE], "numbers of labels"),
        ({"hybrid": {"0": [7], "time": [1]}}, [PLACE], "which of 0 to 4"),
        ({"hybrid": {"0": [1, 1], "time": [1]}}, [PLACE], "which of 0 to 4"),
        ({"hybrid": {"0": [1], "time": [2]}, "period": 6.28}, [PLACE], "period is 6.28"),
        ({"hybrid": {"0": [1], "time": [2]}, "conditional": "time"}, [PLACE], "goes by its own label"),
    ],
)
def test_parts_that_make_no_sense_are_errors(settings, labels, message):
    with pytest.raises(HapteraError, match=message):
        ContrastiveEmbedding(**SHORT, **settings).fit(X, *labels)
