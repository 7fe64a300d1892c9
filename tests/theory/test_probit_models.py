"""Simulated models have the accuracies and the line that they are said to have."""

import numpy as np
import pytest
from scipy.special import ndtri

from haptera.analyses.trends.dominance import dominance
from haptera.statistics.line import fit
from haptera.theory.probit_models import ProbitModels


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
