"""The guarantee at the data's own ζ: equal to a brute-force programme, attained, for the triplets that count."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.analyses.trends.rational_simplex import maximum

from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.dominance import dominance
from haptera.analyses.trends.guarantee import proposition
from haptera.analyses.trends.own_bound import FIRST, SECOND, WHOLE, own_bound, own_bounds, tolerated
from haptera.analyses.trends.residual_bound import maximise, residual_bound
from haptera.analyses.trends.triplets import count_triplets
from haptera.analyses.trends.wedge import Wedge
from haptera.theory.known_models import ProbitModels, RightTogether, residual

PRINTED = Wedge(0.31, 0.38, 0.005, 0.008)
OUTCOMES = ["".join(kept) for size in range(4) for kept in combinations("123", size)]


def brute_force(accuracies, wedge, zeta):
    """The largest residual over all pairs of distributions of the eight outcomes, by definition, in fractions."""
    low, middle, high = map(Fraction, accuracies)
    part = (middle - low) / (high - low)
    nothing = [0] * 8

    def right(model):
        return [int(str(model) in outcome) for outcome in OUTCOMES]

    weight = [
        a + part * (c - a) - b for a, b, c in zip(right(1), right(2), right(3), strict=True)
    ]  # of each outcome under Q in the line of the ends, less the middle model
    equal = [([1] * 8 + nothing, 1), (nothing + [1] * 8, 1)]
    equal += [
        (right(model) + nothing, accuracy) for model, accuracy in zip((1, 2, 3), (low, middle, high), strict=True)
    ]
    most = []
    for worse, better in ("12", "13", "23"):
        most.append(([int(worse in o and better not in o) for o in OUTCOMES] + nothing, zeta))
    delta1, delta2, nu1, nu2 = wedge
    for place in range(1, 7):  # not the outcomes in which none or all are right
        p, q = nothing.copy(), nothing.copy()
        p[place], q[place] = -(1 + delta2), 1
        most.append((p + q, nu2))
        p, q = nothing.copy(), nothing.copy()
        p[place], q[place] = 1 - delta1, -1
        most.append((p + q, nu1))
    return max(maximum(nothing + [sign * each for each in weight], most, equal) for sign in (1, -1))


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_equals_a_brute_force_programme_on_random_cases(seed):
    random = np.random.default_rng(seed)

    def share(most):
        return Fraction(int(random.integers(0, 100 * most + 1)), 100)

    accuracies = sorted(Fraction(int(each), 20) for each in random.choice(21, 3, replace=False))
    wedge, zeta = (share(1), share(2), share(1) / 10, share(1) / 10), share(1) / 5
    exact = brute_force(accuracies, wedge, zeta)
    found = residual_bound([float(each) for each in accuracies], Wedge(*map(float, wedge)), float(zeta))
    assert found.value == pytest.approx(float(exact), abs=1e-6)


def test_the_bound_is_attained_by_models_that_keep_every_condition():
    wedge, zeta = Wedge(0.2, 0.3, 0.01, 0.02), 0.06
    found = residual_bound([0.5, 0.65, 0.8], wedge, zeta)
    p, q = RightTogether(found.p), RightTogether(found.q)
    assert p.accuracies == pytest.approx([0.5, 0.65, 0.8], abs=1e-6)
    assert max(p.dominance(*pair) for pair in ((1, 2), (1, 3), (2, 3))) <= zeta + 1e-6
    assert residual(p, q) == pytest.approx(found.value, abs=1e-6)
    sides = [side.correct(100_000) for side in (p, q)]
    counts = count_triplets(sides[0]), count_triplets(sides[1])
    loose = Wedge(*(number + 1e-4 for number in wedge))  # to the nearest example
    assert closeness(*counts, loose).outside == 0
    own = own_bound((sides[0].mean(1), sides[1].mean(1)), counts, "abc", wedge=wedge)
    assert own.models["residual"].tolist() == pytest.approx(own.models["bound"].tolist(), abs=1e-3)


def test_models_that_are_not_ordered_may_be_twice_as_far_as_proposition_1_says():
    assert round(residual_bound([0.6, 0.7, 0.8], PRINTED, 0.0909).value, 3) == 0.123
    assert round(float(proposition(0.6, 0.7, 0.8, PRINTED)), 4) == 0.0545


def test_many_bounds_at_once_are_those_of_each_alone():
    cases = [((0.3, each, 0.9), PRINTED, zeta) for each, zeta in product((0.3, 0.5, 0.7), (0.0, 0.08))]
    together = [bound.value for bound in maximise(cases)]
    assert together == pytest.approx([residual_bound(*case).value for case in cases], abs=1e-7)


@pytest.fixture
def world():
    sides = ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400)
    return sides, tuple(side.mean(1) for side in sides), tuple(map(count_triplets, sides))


def test_only_triplets_with_both_ends_decide_wedge_and_zeta(world):
    sides, accuracies, counts = world
    names = [f"net-{place}" for place in range(9)]
    order = np.argsort(accuracies[0], kind="stable")
    found = own_bound(accuracies, counts, names)
    low, high = order[0], order[-1]
    assert found.ends == (names[low], names[high])
    pairs = dominance(sides[0], names).set_index(["worse", "better"])["dominance"]
    needed = [pairs[names[low], names[high]]]
    needed += [pairs[names[low], names[each]] for each in order[1:-1]]
    needed += [pairs[names[each], names[high]] for each in order[1:-1]]
    assert found.zeta == pytest.approx(max(needed))
    assert len(found.models) == 7
    assert (found.models["residual"] <= found.models["bound"]).all()
    for middle in order[1:-1]:
        three = [low, middle, high]
        few = [count_triplets(side[three]) for side in sides]
        assert closeness(*few, found.wedge).outside == 0


def test_each_piece_has_its_own_ends_and_a_smaller_bound(world):
    _, accuracies, counts = world
    names = [f"net-{place}" for place in range(9)]
    switch = float(np.sort(accuracies[0])[4])
    bounds = {bound.piece: bound for bound in own_bounds(accuracies, counts, names, switch)}
    assert set(bounds) == {WHOLE, FIRST, SECOND}
    assert bounds[FIRST].accuracies[1] == bounds[SECOND].accuracies[0] == switch
    assert len(bounds[FIRST].models) == len(bounds[SECOND].models) == 3
    assert max(bounds[FIRST].value, bounds[SECOND].value) < bounds[WHOLE].value


def test_two_models_or_equal_ones_have_no_bound(world):
    _, accuracies, counts = world
    assert own_bound(accuracies, counts, "abcdefghi", np.array([2, 5])) is None
    assert own_bound((np.full(9, 0.5), accuracies[1]), counts, "abcdefghi") is None


def test_events_of_triplets_without_both_ends_are_tolerated(world):
    sides, accuracies, counts = world
    names = [f"net-{place}" for place in range(9)]
    wedge = Wedge(0, 0.1, 0.01, 0.01)
    found = tolerated(accuracies[0], counts, names, wedge)
    order = np.argsort(accuracies[0], kind="stable")
    needed, unbound = 0, set()
    for middle in order[1:-1]:
        few = [count_triplets(side[[order[0], middle, order[-1]]]) for side in sides]
        outside = closeness(*few, wedge).outside
        needed += outside
        unbound |= {names[middle]} if outside else set()
    assert found["outside"] == closeness(*counts, wedge).outside
    assert (found["needed"], found["tolerated"]) == (needed, found["outside"] - needed)
    assert 0 < needed < found["outside"]
    assert set(found["unbound"]) == unbound
