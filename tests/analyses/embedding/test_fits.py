"""Hypotheses about what a recording encodes, compared by their fits."""

import pytest
from tests.analyses.embedding.test_analysis import QUICK, compass

from haptera.analyses.embedding.fits import compare_hypotheses, label_combinations


@pytest.mark.long
def test_the_right_hypothesis_fits_best_and_shuffled_ones_not_at_all():
    assert list(label_combinations(["a", "b"])) == ["a", "b", "a + b"]
    frame = compare_hypotheses(
        compass(), label_combinations(["heading", "speed"], 1), dimensions=(3,), model_architecture="offset10-model",
        learning_rate=1e-3, time_offsets=10, progress=False, **QUICK,
    )  # fmt: skip
    assert frame["hypothesis"][0] == "heading"
    assert frame["held_out"][0] > 0.3
    other = frame[(frame["hypothesis"] == "speed") | frame["shuffled"]]
    assert other["held_out"].max() < 0.1
    assert len(frame) == 4
