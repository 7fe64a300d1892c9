"""Means of few units: their intervals against a slow reference, and how often they hold the truth."""

import numpy as np
import pytest
from scipy.stats import t

from haptera.errors import HapteraError
from haptera.measures import mean_over_individuals
from haptera.statistics.intervals import mean_of_units
from haptera.testing import check_interval

UNITS = [2, 3, 4, 5, 8, 20]
WORLDS = {
    "normal": ("plain", lambda random, n: random.normal(0.3, 0.2, n), 0.3),
    "normal errors": ("log", lambda random, n: np.abs(random.normal(1, 0.2, n)), 1.0),
    "log-normal": ("log", lambda random, n: np.exp(random.normal(0, 0.5, n)), np.exp(0.125)),
    "gamma": ("log", lambda random, n: random.gamma(4, 0.25, n), 1.0),
    "shares": ("share", lambda random, n: random.beta(8, 2, n), 0.8),
    "high shares": ("share", lambda random, n: random.beta(18, 2, n), 0.9),
}


def ends(values, scale):
    found = mean_of_units(values, scale)
    return found.low, found.high


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_called_95_percent_covers_as_much(world, units):
    scale, draw, truth = WORLDS[world]
    check_interval(ends, lambda random: (draw(random, units), scale), truth, repetitions=400)


@pytest.mark.slow
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_called_95_percent_covers_as_much_in_ten_thousand_cases(world, units):
    scale, draw, truth = WORLDS[world]
    found = check_interval(ends, lambda random: (draw(random, units), scale), truth, repetitions=10_000)
    assert 0.925 <= found.share <= 0.97


@pytest.mark.parametrize("units", UNITS)
def test_intervals_over_individuals_cover_for_few_animals(units):
    """The bootstrap covered 54 % for two animals, 72 % for three and 86 % for four."""
    who = np.repeat([f"animal {k}" for k in range(units)], 5)

    def draw(random):
        return (np.repeat(np.exp(random.normal(0, 0.4, units)), 5) * random.uniform(0.9, 1.1, 5 * units),)

    def interval(values):
        found = mean_over_individuals(values, who, "log")
        return found.low, found.high

    check_interval(interval, draw, np.exp(0.08), repetitions=300)


def test_plain_intervals_are_students():
    values = np.array([0.3, 0.9, 0.4, 0.7])
    found = mean_of_units(values)
    low, high = t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.value, found.deviation, found.units) == pytest.approx((0.575, values.std(ddof=1), 4))


@pytest.mark.parametrize(("scale", "to", "back"), [("log", np.log, np.exp), ("share", None, None)])
def test_other_scales_are_students_of_the_mean_moved_there(scale, to, back):
    to = to or (lambda share: np.log(share / (1 - share)))
    back = back or (lambda odds: 1 / (1 + np.exp(-odds)))
    values = np.array([0.5, 0.8, 0.6])
    mean, step = values.mean(), 1e-6
    slope = (to(mean + step) - to(mean - step)) / (2 * step)  # the delta method, with the slope found numerically
    half = t.ppf(0.975, 2) * slope * values.std(ddof=1) / np.sqrt(3)
    found = mean_of_units(values, scale)
    assert (found.low, found.high) == pytest.approx((back(to(mean) - half), back(to(mean) + half)), rel=1e-6)


def test_ends_keep_the_bounds_and_hold_the_mean():
    random = np.random.default_rng(0)
    for _ in range(200):
        values = random.random(random.integers(2, 6)) ** 3
        for scale, most in (("log", np.inf), ("share", 1.0)):
            found = mean_of_units(values, scale)
            assert 0 <= found.low <= found.value <= found.high <= most


def test_equal_units_have_a_range_and_not_an_interval():
    found = mean_of_units([0.7, 0.7, 0.7], "share")
    assert (found.kind, found.low, found.high) == ("range", 0.7, 0.7)
    assert mean_of_units([0.0, 0.0], "log").kind == "range"
    assert mean_of_units([0.1 + 0.2, 0.3], "log").kind == "range"  # a spread of rounding alone
    assert not mean_of_units([0.7, 0.7]).clear


def test_one_unit_has_neither():
    found = mean_of_units([0.7, np.nan])
    assert (found.kind, found.units, found.value) == ("", 1, 0.7)
    assert np.isnan([found.low, found.high, found.deviation]).all()
    assert np.isnan(mean_of_units([]).value)


def test_the_order_of_units_does_not_matter():
    values = np.random.default_rng(1).random(7)
    assert mean_of_units(values, "share") == mean_of_units(values[::-1], "share")


def test_values_outside_the_scale_and_unknown_scales_are_refused():
    with pytest.raises(HapteraError, match=r"scale 'share' takes values from 0 to 1; found 0\.5 to 1\.2"):
        mean_of_units([0.5, 1.2], "share")
    with pytest.raises(HapteraError, match="did you mean 'log'"):
        mean_of_units([0.5, 1.2], "lg")
