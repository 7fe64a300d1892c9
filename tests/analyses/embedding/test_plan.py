"""Plans that make no sense, or do not fit their recording, are errors."""

from dataclasses import replace

import numpy as np
import pytest
from tests.analyses.embedding.test_analysis import compass

from haptera.analyses.embedding.fits import compare_hypotheses
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.errors import HapteraError
from haptera.recordings.label import Label


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"mode": "lable"}, "unknown mode 'lable'; did you mean 'label'"),
        ({"mode": "hybrid"}, "no label was named"),
        ({"baselines": ("t-sne",)}, "unknown baseline 't-sne'; did you mean 'tsne'"),
        ({"seeds": 0}, "seeds is 0; at least 1"),
        ({"smoothing": -1.0}, "0 samples or more"),
    ],
)
def test_a_plan_that_makes_no_sense_is_an_error(plan, message):
    with pytest.raises(HapteraError, match=message):
        Plan(**plan)


def test_a_recording_that_does_not_fit_the_plan_is_an_error():
    recording = compass(200)
    with pytest.raises(HapteraError, match="unknown label of mouse"):
        Parts.of(recording, Plan(labels=("haeding",)))
    constant = replace(recording, labels={"still": Label.of(np.zeros(200))})
    with pytest.raises(HapteraError, match="label 'still' is the same in every sample"):
        Parts.of(constant, Plan(labels=("still",)))
    with pytest.raises(HapteraError, match="no hypothesis"):
        compare_hypotheses(recording, {})
