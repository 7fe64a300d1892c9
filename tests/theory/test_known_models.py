"""Known models: both examples of section 2.2 to the digits printed; probit models have the accuracies they should."""

import numpy as np
import pytest
from scipy.special import ndtri

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.dominance import dominance
from haptera.analyses.trends.guarantee import proposition
from haptera.analyses.trends.triplets import count_triplets
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError
from haptera.statistics.line import fit
from haptera.theory.known_models import (
    EXAMPLE_1,
    EXAMPLE_2,
    ProbitModels,
    RightTogether,
    independent,
    ordered,
    residual,
)

PRINTED = Wedge(0.31, 0.38, 0.005, 0.008)


def test_example_1_has_ordered_models_that_are_not_collinear():
    p, q = EXAMPLE_1
    assert p.accuracies == pytest.approx([0.6, 0.7, 0.8])
    assert q.accuracies == pytest.approx([0.5, 0.9, 0.9])
    for side in (p, q):
        assert [side.dominance(*pair) for pair in ((1, 2), (1, 3), (2, 3))] == [0, 0, 0]
    assert residual(p, q) == pytest.approx(0.2)


def test_example_2_has_close_distributions_and_models_that_are_not_collinear():
    p, q = EXAMPLE_2
    printed = {"123": 0.336, "1": 0.036, "23": 0.224, "12": 0.084, "13": 0.144, "2": 0.056, "3": 0.096}
    assert p.probabilities == pytest.approx(printed)
    assert [p.dominance(*pair) for pair in ((1, 2), (1, 3), (2, 3))] == pytest.approx([0.18, 0.12, 0.14])
    assert q.accuracies == pytest.approx([0.646, 0.573, 0.826])
    assert round(residual(p, q), 3) == 0.163
    assert proposition(0.6, 0.7, 0.8, PRINTED) == pytest.approx(0.0545)  # printed: at most 0.055
    assert closeness(*(count_triplets(side.correct(1000)) for side in (p, q)), PRINTED).outside == 0


def test_example_1_is_not_close_in_the_wedge_of_example_2():
    assert closeness(*(count_triplets(side.correct(1000)) for side in EXAMPLE_1), PRINTED).outside == 2


def test_ordered_models_are_right_wherever_worse_ones_are():
    made = ordered([0.7, 0.4, 0.9, 0.4])
    assert made.accuracies == pytest.approx([0.7, 0.4, 0.9, 0.4])
    correct = made.correct(1000)
    assert not (correct[1] & ~correct[0]).any()
    assert not (correct[0] & ~correct[2]).any()
    assert np.array_equal(correct[1], correct[3])


def test_independent_models_are_right_together_by_chance():
    made = independent([0.5, 0.8, 0.9, 0.2])
    assert made.accuracies == pytest.approx([0.5, 0.8, 0.9, 0.2])
    assert made.dominance(1, 3) == pytest.approx(0.5 * 0.1)
    assert sum(made.probabilities.values()) == pytest.approx(1 - 0.5 * 0.2 * 0.1 * 0.8)


@pytest.mark.parametrize("examples", [1, 7, 10, 1000, 1003])
def test_a_matrix_has_every_event_as_often_as_it_is_likely(examples):
    made = independent([0.6, 0.7, 0.8])
    correct = made.correct(examples)
    assert correct.shape == (3, examples)
    for event, likely in made.probabilities.items():
        wanted = np.array([[str(i + 1) in event] for i in range(3)])
        assert abs((correct == wanted).all(0).sum() - likely * examples) < 1


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ({"4": 0.1}, "'4' is not an event"),
        ({"11": 0.1}, "each once"),
        ({"": 0.1}, "is not an event"),
        ({"1": -0.1}, "of at least 0"),
    ],
)
def test_events_that_there_cannot_be_are_refused(probabilities, message):
    with pytest.raises(HapteraError, match=message):
        RightTogether(probabilities)
    with pytest.raises(HapteraError, match="add up to"):
        RightTogether({"1": 0.6, "2": 0.6})
    with pytest.raises(HapteraError, match="models is 10"):
        RightTogether({}, models=10)


def test_accuracies_of_many_examples_are_the_true_ones():
    models = ProbitModels(np.array([-0.5, 0.5, 1.5]), gains=np.array([0.0, 0.3, 0.0]))
    found = models.correct(200_000, 200_000)
    for side, truth in zip(found, models.accuracies, strict=True):
        assert side.mean(1) == pytest.approx(truth, abs=0.004)


def test_the_line_is_straight_on_probit_axes():
    models = ProbitModels(np.linspace(-1, 2, 9))
    x, y = models.accuracies
    assert ndtri(y) == pytest.approx(models.slope * ndtri(x) + models.intercept)
    assert fit(x, y, "probit").line.slope == pytest.approx(models.slope)


def test_the_smaller_the_noise_the_more_similar_the_models():
    skills = np.linspace(0, 1, 4)
    largest = [
        dominance(ProbitModels(skills, noise=noise).correct(5000, 10)[0])["dominance"].max() for noise in (0.1, 1)
    ]
    assert largest[0] < 0.3 * largest[1]
