"""The interval of R²: the ends are where the noncentral F distribution says, and it knows its limits."""

import numpy as np
import pytest
from scipy.stats import ncf

from haptera.statistics.explained import explained_interval


@pytest.mark.parametrize(("r2", "points", "terms"), [(0.95, 5, 2), (0.6, 12, 2), (0.998, 66, 2), (0.9, 20, 4)])
def test_at_both_ends_what_was_found_is_as_rare_as_it_should_be(r2, points, terms):
    low, high = explained_interval(r2, points, terms)
    freedom = points - terms
    ratio = r2 / (1 - r2) * freedom / (terms - 1)
    for end, share in ((low, 0.975), (high, 0.025)):
        assert ncf.cdf(ratio, terms - 1, freedom, points * end / (1 - end)) == pytest.approx(share, abs=1e-6)
    assert low < r2


def test_what_may_be_nothing_begins_at_0():
    low, high = explained_interval(0.2, 6)
    assert low == 0
    assert high > 0.2


def test_no_more_points_than_terms_have_no_interval():
    assert np.isnan(explained_interval(0.9, 2)).all()
    assert np.isnan(explained_interval(float("nan"), 9)).all()


def test_a_perfect_line_has_an_interval_at_1():
    assert min(explained_interval(1.0, 10)) > 0.999
