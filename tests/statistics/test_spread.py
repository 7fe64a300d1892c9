"""How errors that are not independent tell the spread of a new one."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import t

from haptera.statistics.spread import FEWEST, deviation_of, mean_squares, quantile, spread_of


def test_independent_errors_have_a_degree_of_freedom_each():
    n = 6
    squares, forms = mean_squares(np.arange(1.0, n + 1), np.eye(n), np.eye(n))
    found = spread_of(squares, forms, added=0.0)
    assert found.freedom == pytest.approx(n)
    assert found.deviation == pytest.approx(sqrt((np.arange(1, n + 1) ** 2).mean()))


def test_expectation_and_freedom_are_those_of_simulated_mean_squares():
    random = np.random.default_rng(0)
    counts = np.eye(5) - 0.3 * random.random((5, 5))  # what each independent error counts in each seen one
    drawn = np.square(random.normal(size=(200_000, 5)) @ counts.T).mean(1)
    found = spread_of(*mean_squares(np.ones(5), counts, np.eye(5)), added=0.5)
    assert found.freedom == pytest.approx(2 * drawn.mean() ** 2 / drawn.var(), rel=0.02)
    assert found.deviation == pytest.approx(sqrt(1.5 / drawn.mean()), rel=0.01)


def test_too_few_corruptions_give_no_interval():
    few = spread_of(np.ones(FEWEST - 1), np.eye(FEWEST - 1)[None].repeat(FEWEST - 1, 0), 0.0)
    assert deviation_of(0.5, 0.4, few, (1000, 1000), 0.95) == inf


def test_without_sampling_error_the_interval_is_students():
    n = 6
    found = spread_of(*mean_squares(np.ones(n), np.eye(n), np.eye(n)), added=0.0)
    half = quantile(0.95) * deviation_of(0.5, 0.4, found, (10**12, 10**12), 0.95)
    assert half == pytest.approx(0.4 * t.ppf(0.975, n), rel=1e-4)
