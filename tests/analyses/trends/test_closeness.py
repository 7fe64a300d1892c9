"""Wedges, events outside them, the narrowest ones, and who owns what is outside; against fractions and loops."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.analyses.trends.closeness import closeness, density, events
from haptera.analyses.trends.events import outliers, owners
from haptera.analyses.trends.frontier import frontier, frontiers, narrowest
from haptera.analyses.trends.guarantee import corollary
from haptera.analyses.trends.triplets import count_triplets
from haptera.analyses.trends.wedge import Curves, Wedge, as_wedge
from haptera.errors import HapteraError
from haptera.theory.known_models import ProbitModels


def sides(seed=0, models=6, n=200, m=80):
    """Counts of similar models on two sets of data."""
    skills = np.linspace(-0.5, 1.5, models)
    return tuple(map(count_triplets, ProbitModels(skills).correct(n, m, seed)))


def outside_by_fractions(frame, wedge, n, m):
    """How many events are above and below, in exact arithmetic."""
    delta1, delta2, nu1, nu2 = (Fraction(str(number)) for number in wedge)
    above = below = 0
    for p, q in zip(frame["p"], frame["q"], strict=True):
        p, q = Fraction(round(p * n), n), Fraction(round(q * m), m)
        above += q > nu2 + (1 + delta2) * p
        below += q < -nu1 + (1 - delta1) * p
    return above, below


tenths = st.integers(0, 60).map(lambda number: number / 100)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.tuples(tenths, tenths, tenths, tenths))
def test_events_outside_are_those_of_exact_arithmetic(seed, numbers):
    reference, shifted = sides(seed)
    found = closeness(reference, shifted, Wedge(*numbers))
    assert (found.above, found.below) == outside_by_fractions(events(reference, shifted), numbers, 200, 80)
    assert found.by_triplet.sum() == found.outside
    assert found.share_inside == 1 - found.outside / 120


def test_an_event_on_the_bound_is_inside():
    # P = 10 / 50, Q = 3 / 10 = .1 + 1 x P: as floats, .1 + .2 is more than .3, and .3 - .2 less than .1.
    reference = count_triplets(np.repeat(np.eye(3, 4, dtype=bool), [10, 10, 10, 20], axis=1))
    shifted = count_triplets(np.repeat(np.eye(3, 4, dtype=bool), [3, 3, 3, 1], axis=1))
    assert closeness(reference, shifted, Wedge(0, 0, 0, 0.1)).above == 0
    assert closeness(reference, shifted, Wedge(0, 0, 0, 0.0999)).above == 3
    assert closeness(shifted, reference, Wedge(0, 0, 0.1, 0)).below == 0
    assert closeness(shifted, reference, Wedge(0, 0, 0.0999, 0)).below == 3


def test_functions_of_the_user_are_the_general_form():
    reference, shifted = sides(1)
    line = Wedge(0.2, 0.3, 0.01, 0.02)
    same = Curves(lambda p: 0.01 + 0.2 * p, lambda p: 0.02 + 0.3 * p)
    found, expected = closeness(reference, shifted, same), closeness(reference, shifted, line)
    assert (found.above, found.below, found.clear) == (expected.above, expected.below, expected.clear)
    root = closeness(reference, shifted, Curves(lambda p: 0.5 * np.sqrt(p), lambda p: 0.5 * np.sqrt(p)))
    frame = events(reference, shifted)
    assert root.outside == (np.abs(frame["q"] - frame["p"]) > 0.5 * np.sqrt(frame["p"]) + 1e-12).sum()


def test_what_chance_explains_is_not_clearly_outside():
    model = ProbitModels(np.linspace(-0.5, 1.5, 8), harder=0.0, wider=1.0)  # no shift at all
    same = [closeness(*map(count_triplets, model.correct(500, 500, seed)), Wedge(0, 0, 0, 0)) for seed in range(20)]
    assert min(found.outside for found in same) > 250  # of 336: hardly any share is exactly the same twice
    assert sum(found.clear for found in same) / sum(found.events for found in same) == pytest.approx(0.05, abs=0.03)
    moved = closeness(*map(count_triplets, ProbitModels(model.skills, harder=2.0).correct(500, 500)), Wedge(0, 0, 0, 0))
    assert moved.clear > 0.4 * moved.outside


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 5), st.sampled_from([1.0, 0.99, 0.9, 0.5]))
def test_the_narrowest_wedges_hold_the_share_and_no_narrower_one_does(seed, share):
    reference, shifted = sides(seed)
    found = frontier(reference, shifted, share)
    assert found["nu"].is_monotonic_increasing
    assert (found["delta1"] + found["delta2"]).is_monotonic_decreasing
    for row in found.itertuples():
        inside = closeness(reference, shifted, Wedge(row.delta1, row.delta2, row.nu, row.nu)).share_inside
        assert inside >= share
        # A step of a thousandth less on either side, and less than the share is inside, whatever the other side gives.
        total = round(1000 * (row.delta1 + row.delta2)) - 1
        for delta1 in range(max(0, total - 3), min(total, 3) + 1) if total >= 0 else ():
            narrower = Wedge(delta1 / 1000, (total - delta1) / 1000, row.nu, row.nu)
            assert closeness(reference, shifted, narrower).share_inside < share


def test_the_narrowest_of_all_has_the_least_bound():
    reference, shifted = sides(2)
    found = frontier(reference, shifted, 0.95)
    best = narrowest(found)
    span = np.ptp(reference.pair.diagonal()) / reference.examples
    assert corollary(span, best) == pytest.approx(found["bound"].min())
    assert best.nu1 == best.nu2


def test_several_shares_are_found_in_one_pass():
    found = frontiers(*sides(5), [1.0, 0.9])
    for share, frame in found.items():
        assert frame.equals(frontier(*sides(5), share))


def test_a_given_nu_is_used_as_it_is():
    reference, shifted = sides(3)
    assert frontier(reference, shifted, nus=[0.05, 0.02])["nu"].tolist() == [0.02, 0.05]
    with pytest.raises(HapteraError, match="share is 2"):
        frontier(reference, shifted, 2)


def test_the_density_counts_every_event_once():
    reference, shifted = sides(4)
    cells = density(reference, shifted, bins=20)
    frame = events(reference, shifted)
    assert cells["events"].sum() == len(frame) == 120
    assert np.average(cells["p"], weights=cells["events"]) == pytest.approx(frame["p"].mean(), abs=0.03)


def shuffled(*models):
    """Counts of eighteen models of which some have their examples under Q in another order."""
    reference, shifted = ProbitModels(np.linspace(0, 1.5, 18), noise=0.3).correct(4000, 2000)
    generator = np.random.default_rng(0)
    for model in models:
        shifted[model] = generator.permutation(shifted[model])
    return count_triplets(reference), count_triplets(shifted)


NAMES = list("abcdefghijklmnopqr")


@pytest.mark.parametrize("moved", [(), (5,), (2, 9), (0, 6, 11)])
def test_models_with_examples_in_another_order_are_the_outliers(moved):
    assert sorted(outliers(*shuffled(*moved), NAMES)) == [NAMES[model] for model in moved]


def test_outliers_of_a_given_wedge_are_those_who_break_it():
    assert outliers(*shuffled(3, 7), NAMES, Wedge(0.2, 0.3, 0.05, 0.05)) == ["d", "h"]
    assert outliers(*shuffled(3, 7), NAMES, Wedge(1, 20, 0.5, 0.5)) == []


def test_every_event_outside_has_three_owners():
    found = closeness(*shuffled(5), Wedge(0, 0.1, 0.005, 0.005))
    table = owners(found, NAMES)
    assert table["outside"].sum() == 3 * found.outside
    assert table["share"].sum() == pytest.approx(3)
    mine = table.set_index("model")["outside"]["f"]
    places = [place for place, _ in shuffled(5)[0].blocks()]
    own = (np.concatenate(places, axis=1) == 5).any(0)
    assert mine == found.by_triplet[own].sum()


def test_of_six_models_or_fewer_none_is_called_an_outlier():
    reference, shifted = ProbitModels(np.linspace(0, 1, 6)).correct(500, 500)
    shifted[3] = ~shifted[3]
    assert outliers(count_triplets(reference), count_triplets(shifted), NAMES[:6]) == []


def test_wedges_that_make_no_sense_are_refused():
    for numbers in ((1, 2, 3), (0.1, 0.1, -0.1, 0), (0.1, float("nan"), 0, 0), (float("inf"), 0, 0, 0)):
        with pytest.raises(HapteraError, match="four numbers δ1 δ2 ν1 ν2"):
            as_wedge(numbers)


def test_sides_must_have_as_many_models():
    with pytest.raises(HapteraError, match="P has 6 models, Q has 5"):
        closeness(sides()[0], sides(models=5)[1], Wedge(0, 0, 0, 0))
