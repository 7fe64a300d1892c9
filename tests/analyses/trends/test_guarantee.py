"""Proposition 1, corollary 1, figure 2 and the exact bound, on random distributions that meet the premises."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haptera.analyses.trends.guarantee import corollary, proposition, region, triplet_residuals
from haptera.analyses.trends.residual_bound import residual_bound, residual_bounds
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError
from haptera.statistics.line import fit
from haptera.theory.known_models import RightTogether, residual

PRINTED, MOST = Wedge(0.31, 0.38, 0.005, 0.008), Wedge(0, 0.25, 0.005, 0.005)
SIX = ("1", "2", "3", "12", "13", "23")
wedges = st.builds(Wedge, st.floats(0, 0.9), st.floats(0, 1.5), st.floats(0, 0.05), st.floats(0, 0.05))
spans = st.floats(0, 1)


def within(generator, p, wedge):
    """Probabilities under Q of the same events, anywhere in the wedge, often at an end of it."""
    low, high = np.maximum(wedge.lower(p), 0), wedge.upper(p)
    part = generator.choice([0.0, 1.0, 0.5], p.shape)
    return low + (high - low) * np.where(part == 0.5, generator.random(p.shape), part)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), wedges)
def test_ordered_models_never_break_proposition_1(seed, wedge):
    generator = np.random.default_rng(seed)
    p123, p23, p3 = generator.dirichlet(np.ones(4), 100).T[:3]
    p = np.stack([np.zeros(100), np.zeros(100), p3, np.zeros(100), np.zeros(100), p23])
    q1, q2, q3, q12, q13, q23 = q = within(generator, p, wedge)
    kept = q.sum(0) <= 1
    shifted = np.stack([q1 + q12 + q13, q2 + q12 + q23, q3 + q13 + q23])  # q123 moves all three alike
    line = shifted[0] + (shifted[2] - shifted[0]) * p23 / (p23 + p3)
    bound = proposition(p123, p123 + p23, p123 + p23 + p3, wedge)
    assert (np.abs(line - shifted[1]) <= bound + 1e-12)[kept].all()


def premises(generator, zeta, size):
    """Distributions under P in which no dominance exceeds ζ, and µ1 ≤ µ2 ≤ µ3."""
    p1, p2, p12, p13 = generator.random((4, size)) * generator.choice([0, zeta / 2, zeta], (4, size))
    p3, p23, p123, _ = generator.dirichlet(np.ones(4), size).T * (1 - p1 - p2 - p12 - p13)
    p = np.stack([p1, p2, p3, p12, p13, p23, p123])
    means = np.stack([p1 + p12 + p13, p2 + p12 + p23, p3 + p13 + p23]) + p123
    kept = (p1 + p12 <= zeta) & (p1 + p13 <= zeta) & (p2 + p12 <= zeta)
    return p[:, kept & (means[0] <= means[1]) & (means[1] <= means[2])]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), wedges, st.floats(0, 0.2))
def test_no_distribution_breaks_the_exact_bound(seed, wedge, zeta):
    generator = np.random.default_rng(seed)
    p = premises(generator, zeta, 20)[:, :1]
    if not p.size:
        return
    six = np.repeat(p[:6], 300, axis=1)
    q = within(generator, six, wedge)
    q1, q2, q3, q12, q13, q23 = q[:, q.sum(0) <= 1]
    x = [float(sum(p[i, 0] for i, event in enumerate((*SIX, "123")) if model in event)) for model in "123"]
    part = (x[1] - x[0]) / (x[2] - x[0])
    found = np.abs((q3 + q23 - q1 - q12) * part + q1 + q13 - q2 - q23)  # (6)
    assert found.max(initial=0) <= residual_bound(x, wedge, zeta).value + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.tuples(spans, spans, spans).map(sorted), wedges, st.floats(0, 0.2))
@example([0.0, 0.0, 1.0], Wedge(0.0, 0.0, 0.0, 2.0**-24), 0.0)  # the solver's own distribution adds up to more than 1
def test_the_exact_bound_is_attained_by_the_distributions_it_returns(accuracies, wedge, zeta):
    if accuracies[2] - accuracies[0] < 1e-3:
        return
    found = residual_bound(accuracies, wedge, zeta)
    p = RightTogether(found.p)
    q = RightTogether(found.q)
    assert p.accuracies == pytest.approx(accuracies, abs=1e-7)
    assert max(p.dominance(1, 2), p.dominance(1, 3), p.dominance(2, 3)) <= zeta + 1e-7
    for event in SIX:
        assert wedge.lower(found.p[event]) - 1e-7 <= found.q[event] <= wedge.upper(found.p[event]) + 1e-7
    part = (accuracies[1] - accuracies[0]) / (accuracies[2] - accuracies[0])
    low, middle, high = q.accuracies
    assert abs(low + (high - low) * part - middle) == pytest.approx(found.value, abs=1e-6)


@pytest.mark.parametrize(
    ("wedge", "zeta", "expected"), [(PRINTED, 0.05, 0.0950), (MOST, 0.05, 0.0450), (PRINTED, 0.0, 0.0530)]
)
def test_exact_bounds_at_the_accuracies_of_section_5(wedge, zeta, expected):
    assert residual_bound((0.6, 0.7, 0.8), wedge, zeta).value == pytest.approx(expected, abs=5e-5)


def test_the_exact_bound_is_above_what_a_grid_finds_and_below_proposition_1():
    assert residual_bound((0.6, 0.7, 0.8), PRINTED, 0.05).value > 0.084  # printed in section 5.2
    for middle in (0.6, 0.65, 0.7, 0.79):
        for wedge in (PRINTED, MOST):
            assert residual_bound((0.6, middle, 0.8), wedge).value <= proposition(0.6, middle, 0.8, wedge) + 1e-9


def test_bounds_along_a_curve_grow_with_zeta():
    curve = residual_bounds(0.2, 0.8, [0.3, 0.5, 0.7], MOST, (0, 0.05, 0.1)).pivot(index="accuracy", columns="zeta")
    values = curve["bound"].to_numpy()
    assert values.shape == (3, 3)
    assert (np.diff(values, axis=1) > 0).all()


@pytest.mark.parametrize("accuracies", [(0.7, 0.6, 0.8), (0.5, 0.5, 0.5), (0.5, 0.6, 1.2)])
def test_accuracies_that_make_no_sense_are_refused(accuracies):
    with pytest.raises(HapteraError, match="in ascending order"):
        residual_bound(accuracies, PRINTED)


def ordered_models(generator, size):
    """Accuracies of ordered models under P, and under a Q that keeps the wedge for every triplet of them."""
    steps = generator.dirichlet(np.ones(size + 1))[:size]
    wedge = Wedge(*generator.uniform(0, 0.6, 2), 0, 0)
    factor = generator.uniform(1 - wedge.delta1, 1 + wedge.delta2, size)
    if (steps * factor).sum() > 1:
        factor *= 0 if 1 - wedge.delta1 <= 0 else (1 - wedge.delta1) / factor.max()
        wedge = Wedge(1.0, wedge.delta2, 0, 0)
    return np.cumsum(steps), np.cumsum(steps * factor), wedge


@pytest.mark.parametrize("seed", range(40))
def test_some_line_is_as_near_to_ordered_models_as_corollary_1_says(seed):
    x, y, wedge = ordered_models(np.random.default_rng(seed), 8)
    nearest = np.abs(fit(x, y, "chebyshev").residual).max()
    assert nearest <= corollary(np.ptp(x), wedge) + 1e-12
    assert not triplet_residuals(x, y, wedge)["broken"].any()


def test_triplets_are_as_drawn_one_by_one():
    generator = np.random.default_rng(0)
    x, y = generator.random((2, 6))
    rows = triplet_residuals(x, y, MOST, list("abcdef")).set_index(["low", "middle", "high"])
    assert len(rows) == 20
    for chosen in combinations(range(6), 3):
        i, j, k = sorted(chosen, key=lambda place: x[place])
        row = rows.loc["abcdef"[i], "abcdef"[j], "abcdef"[k]]
        expected = abs(np.interp(x[j], [x[i], x[k]], [y[i], y[k]]) - y[j])
        assert row["residual"] == pytest.approx(expected)
        assert row["bound"] == pytest.approx(float(proposition(x[i], x[j], x[k], MOST)))
        assert row["broken"] == (row["residual"] > row["bound"])


def test_triplets_with_both_ends_are_all_a_line_through_them_needs():
    x, y = np.random.default_rng(1).random((2, 9))
    rows = triplet_residuals(x, y, MOST, ends=True)
    assert len(rows) == 7
    assert set(rows["low"]) == {str(x.argmin())}
    assert set(rows["high"]) == {str(x.argmax())}


def test_equally_accurate_ends_have_no_line():
    assert triplet_residuals(np.full(4, 0.5), np.linspace(0, 1, 4), MOST).empty


def test_the_region_of_figure_2():
    wedge = Wedge(0.2, 0.2, 0, 0)
    once = region(np.array([0.4, 0.8]), np.array([0.3, 0.7]), wedge, [0.5, 0.6, 0.7])
    # The harmonic means of (.1, .3), (.2, .2) and (.3, .1), times .2, around the line through both models.
    assert once["low"].tolist() == pytest.approx([0.4 - 0.03, 0.5 - 0.04, 0.6 - 0.03])
    assert once["high"].tolist() == pytest.approx([0.4 + 0.03, 0.5 + 0.04, 0.6 + 0.03])


@pytest.mark.parametrize("seed", range(20))
def test_ordered_models_lie_in_the_region_of_the_others(seed):
    x, y, wedge = ordered_models(np.random.default_rng(seed), 6)
    for new in range(6):
        known = np.delete(np.arange(6), new)
        found = region(x[known], y[known], wedge, x[[new]])
        assert found["low"][0] - 1e-9 <= y[new] <= found["high"][0] + 1e-9


def test_more_known_models_leave_less_room():
    x, y, wedge = ordered_models(np.random.default_rng(3), 5)
    at = np.linspace(x[0], x[4], 21)
    once, thrice = region(x[[0, 4]], y[[0, 4]], wedge, at), region(x[[0, 2, 4]], y[[0, 2, 4]], wedge, at)
    assert (thrice["low"] >= once["low"] - 1e-12).all()
    assert (thrice["high"] <= once["high"] + 1e-12).all()
    assert (thrice["high"] - thrice["low"]).sum() < 0.8 * (once["high"] - once["low"]).sum()
    with pytest.raises(HapteraError, match="two at least"):
        region(x[:1], y[:1], wedge, at)


def test_the_halved_residual_of_proposition_1():
    # Three points can always be halfway between the two lines that the middle one spans.
    x, y = np.array([0.2, 0.5, 0.9]), np.array([0.1, 0.6, 0.7])
    whole = triplet_residuals(x, y, MOST)["residual"][0]
    assert np.abs(fit(x, y, "chebyshev").residual) == pytest.approx(np.full(3, whole / 2))


def test_residual_agrees_with_the_construction():
    p, q = RightTogether({"123": 0.6, "23": 0.1, "3": 0.1}), RightTogether({"123": 0.5, "23": 0.4})
    rows = triplet_residuals(p.accuracies, q.accuracies, PRINTED)
    assert rows["residual"][0] == pytest.approx(residual(p, q))
