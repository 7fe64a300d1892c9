"""The line from the size of a shift to its error: least squares, within 0 and 1, a warning outside."""

import numpy as np
import pytest
from scipy.stats import linregress

from haptera.errors import HapteraError
from haptera.statistics.shift_line import ShiftLine


def test_slope_intercept_and_fit_are_those_of_least_squares():
    random = np.random.default_rng(0)
    sizes = random.uniform(0, 2, 12)
    errors = 0.1 + 0.2 * sizes + random.normal(0, 0.02, 12)
    line, known = ShiftLine.fit(sizes, errors), linregress(sizes, errors)
    assert (line.slope, line.intercept) == (pytest.approx(known.slope), pytest.approx(known.intercept))
    assert line.r2 == pytest.approx(known.rvalue**2)


def test_predictions_stay_between_0_and_1():
    line = ShiftLine.fit(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.9]))
    assert line.predict(10.0) == 1.0


def test_sizes_beyond_those_it_was_fitted_on_are_told():
    line = ShiftLine.fit(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.2, 0.3]))
    assert line.inside(0.7)
    assert not line.inside(1.2)


def test_a_flat_line_explains_nothing():
    assert ShiftLine.fit(np.array([0.0, 1.0, 2.0]), np.full(3, 0.2)).r2 == 0


@pytest.mark.parametrize("sizes", [[0.0, 1.0], [0.5, 0.5, 0.5]])
def test_too_few_sizes_are_refused(sizes):
    with pytest.raises(HapteraError, match="three shifts"):
        ShiftLine.fit(np.array(sizes), np.linspace(0, 1, len(sizes)))
